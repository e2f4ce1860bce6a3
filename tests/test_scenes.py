"""The table of scenes: what a user may write into it, and what is refused before anything runs."""

from pathlib import Path

import pytest

from gibbsite.errors import InputError
from gibbsite.scenes import COLUMNS, SceneFiles, read_scenes

HEAD = "scene\tcube\tddr\twavelengths\tlabels\ttruth"
NILI = "nili\tin/frt1.lbl\tin/de1.lbl\t\tshapes/nili.gpkg\t"


@pytest.fixture
def write(tmp_path):
    """Writes the bytes of a table and gives back its path."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "scenes.tsv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def refusal(path: Path) -> str:
    """The one line with which the table is refused."""
    with pytest.raises(InputError) as caught:
        read_scenes(path)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text
    return text


def test_scenes_come_back_in_the_order_of_the_table_with_their_files(write):
    found = read_scenes(write(f"{HEAD}\n{NILI}\naram_chaos-2.b\tin/frt2.hdr\t\t\t\tin/truth.tif\n"))
    assert list(found) == ["nili", "aram_chaos-2.b"]
    assert found["nili"] == SceneFiles("nili", "in/frt1.lbl", ddr="in/de1.lbl", labels="shapes/nili.gpkg")
    assert found["aram_chaos-2.b"] == SceneFiles("aram_chaos-2.b", "in/frt2.hdr", truth="in/truth.tif")


def test_columns_may_stand_in_any_order_and_optional_ones_be_absent(write):
    found = read_scenes(write("labels\tcube\tscene\nshapes/a.gpkg\tin/a.hdr\ta\n"))
    assert found == {"a": SceneFiles("a", "in/a.hdr", labels="shapes/a.gpkg")}


def test_trailing_tabs_may_be_left_out_and_blank_lines_are_no_rows(write):
    found = read_scenes(write(f"\n{HEAD}\n\nnili\tin/frt1.lbl\n\n  \nares\tin/frt2.lbl\tde2.lbl\n\n"))
    assert found == {"nili": SceneFiles("nili", "in/frt1.lbl"), "ares": SceneFiles("ares", "in/frt2.lbl", "de2.lbl")}


@pytest.mark.parametrize(
    "disguise",
    [
        pytest.param(lambda text: text.replace("\n", "\r\n").encode(), id="CRLF"),
        pytest.param(lambda text: text.encode("utf-8-sig"), id="BOM"),
        pytest.param(lambda text: text.replace("\n", "\r\n").encode("utf-8-sig"), id="BOM and CRLF"),
        pytest.param(lambda text: text.encode("utf-16"), id="UTF-16, which spreadsheets call Unicode text"),
    ],
)
def test_a_table_saved_by_a_spreadsheet_reads_the_same(write, disguise):
    plain = f"{HEAD}\n{NILI}\n"
    assert read_scenes(write(disguise(plain))) == read_scenes(write(plain))


def test_blanks_around_a_field_are_not_part_of_it(write):
    assert read_scenes(write("scene\tcube\n nili \t in/frt 1.lbl \n")) == {"nili": SceneFiles("nili", "in/frt 1.lbl")}


def test_blanks_around_a_column_name_are_not_part_of_it(write):
    assert read_scenes(write("scene \t cube\nnili\tin/frt1.lbl\n")) == {"nili": SceneFiles("nili", "in/frt1.lbl")}


@pytest.mark.parametrize("content", ["", "\n\n", f"{HEAD}\n", "scene\tcube", f"{HEAD}\r\n\r\n", "\ufeff"])
def test_a_table_without_rows_has_no_scene(write, content):
    assert read_scenes(write(content)) == {}


def test_a_scene_listed_twice_is_refused_with_its_row_and_name(write):
    text = refusal(write(f"{HEAD}\n{NILI}\nares\tin/frt2.lbl\nnili\tin/frt3.lbl\n"))
    assert "row 4" in text
    assert "'nili' is listed twice" in text


def test_a_row_is_counted_as_an_editor_counts_lines(write):
    text = refusal(write(f"{HEAD}\n\n{NILI}\n\n\nnili\tin/frt3.lbl\n"))
    assert "row 6" in text


def test_scenes_that_differ_only_in_letter_case_are_refused(write):
    # Their files would be one on file systems that ignore case.
    text = refusal(write(f"{HEAD}\n{NILI}\nNili\tin/frt3.lbl\n"))
    assert "'Nili'" in text
    assert "listed twice" in text


@pytest.mark.parametrize("name", ["../up", "a/b", "two words", ".hidden", "-flag", "nili'", "mañana", ""])
def test_a_name_that_cannot_be_a_file_name_is_refused(write, name):
    text = refusal(write(f"{HEAD}\n{NILI}\n{name}\tin/frt2.lbl\n"))
    assert repr(name) in text
    assert "row 3" in text


def test_a_scene_without_cube_is_refused_with_its_row(write):
    text = refusal(write(f"{HEAD}\n{NILI}\nares\t\tde.lbl\n"))
    assert "row 3" in text
    assert "'ares' has no cube" in text


@pytest.mark.parametrize("head", ["scene\tddr", "cube\tlabels", "nili\tin/frt1.lbl"])
def test_a_table_without_the_required_columns_is_refused(write, head):
    text = refusal(write(f"{head}\nnili\tin/frt1.lbl\n"))
    assert "'scene' and 'cube' required" in text


def test_an_unknown_column_is_refused_with_the_columns_there_are(write):
    text = refusal(write("scene\tcube\tgeometry\nnili\tin/frt1.lbl\tde.lbl\n"))
    assert "'geometry'" in text
    for column in COLUMNS:
        assert column in text


def test_a_column_named_twice_is_refused(write):
    text = refusal(write("scene\tcube\tcube\nnili\tin/frt1.lbl\tin/frt2.lbl\n"))
    assert "'cube'" in text
    assert "twice" in text


def test_a_row_with_more_fields_than_columns_is_refused(write):
    text = refusal(write("scene\tcube\nnili\tin/frt1.lbl\tde.lbl\n"))
    assert "row 2" in text
    assert "3 fields" in text


def test_a_table_separated_by_commas_is_refused_as_not_tab_separated(write):
    assert "tab separated" in refusal(write("scene,cube\nnili,in/frt1.lbl\n"))


def test_a_missing_table_is_refused(tmp_path):
    assert "cannot read the table of scenes" in refusal(tmp_path / "absent.tsv")


def test_a_table_that_is_no_text_is_refused(write):
    assert "not a text file" in refusal(write(b"PK\x03\x04\xff\xfe\x00\x81scene\tcube\n"))
