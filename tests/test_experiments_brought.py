"""Data that users bring to the paper's experiments: CSV tables and FCS files."""

from pathlib import Path

import numpy as np
import pytest

from gibbsite.errors import InputError
from gibbsite.experiments import data
from gibbsite.experiments.brought import COFACTOR, csv_table, fcs_cells, fcs_samples


def write_csv(path: Path, rows: int = 60, channels: int = 6, classes: str = "AB0") -> Path:
    values = np.random.default_rng(1).normal(size=(rows, channels)).round(4)
    head = ",".join([*(f"ch{c}" for c in range(channels)), "class"])
    lines = [",".join([*map(str, row), classes[i % len(classes)]]) for i, row in enumerate(values.tolist())]
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def write_fcs(path: Path, events: np.ndarray, names: tuple[str, ...]) -> Path:
    """An FCS 3.1 file of float32 values, written by hand after the standard: header, text, data."""
    body = events.astype("<f4").tobytes()
    words = {
        "BEGINANALYSIS": 0, "ENDANALYSIS": 0, "BEGINSTEXT": 0, "ENDSTEXT": 0, "BEGINDATA": "{:<8}", "ENDDATA": "{:<8}",
        "BYTEORD": "1,2,3,4", "DATATYPE": "F", "MODE": "L", "NEXTDATA": 0, "PAR": len(names), "TOT": len(events),
    }  # fmt: skip
    for n, name in enumerate(names, 1):
        words |= {f"P{n}B": 32, f"P{n}E": "0,0", f"P{n}N": name, f"P{n}R": 262144}
    text = "/" + "".join(f"${key}/{value}/" for key, value in words.items())
    start = 58 + len(text.format(0, 0))
    text = text.format(start, start + len(body) - 1)
    header = f"FCS3.1    {58:>8}{57 + len(text):>8}{start:>8}{start + len(body) - 1:>8}{0:>8}{0:>8}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header.encode() + text.encode() + body)
    return path


# ---------------------------------------------------------------------------------------------------- CSV


def test_a_table_is_read_with_its_classes_and_without_rows_that_have_none(tmp_path):
    table = csv_table(write_csv(tmp_path / "stemcell.csv"), 6)
    assert table.x.shape == (40, 6)
    assert table.names == ("A", "B")
    assert np.bincount(table.truth).tolist() == [20, 20]


def test_the_table_of_the_paper_is_found_by_its_name(tmp_path):
    write_csv(tmp_path / "stemcell.csv")
    table = data.load("stemcell", tmp_path)
    assert table.x.T @ table.x / len(table.x) == pytest.approx(np.eye(6), abs=1e-9)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text: text.replace(",class", ",kind"), "expected one called 'class'"),
        (lambda text: text.replace("ch5,", "").replace(",A", ",1,A"), "cannot be read as CSV|holds text"),
        (lambda text: text.splitlines()[0] + "\n", "has a header and no line"),
        (lambda text: text.replace(",B", ",A"), "found 1 classes"),
        (lambda text: "\n".join([*text.splitlines()[:3], "1,2,,4,5,6,A", *text.splitlines()[4:]]), "holds text|line 4"),
        (lambda text: text.replace("ch0", "ch0").replace("\n", "\nx", 1), "column 'ch0' holds text"),
    ],
)
def test_a_table_that_is_none_is_refused_in_the_users_words(tmp_path, change, told):
    path = write_csv(tmp_path / "stemcell.csv")
    path.write_text(change(path.read_text()))
    with pytest.raises(InputError, match=told):
        csv_table(path, 6)


def test_a_table_with_other_channels_than_the_papers_is_refused(tmp_path):
    with pytest.raises(InputError, match="found 4 channels; expected 12"):
        csv_table(write_csv(tmp_path / "flc1.csv", channels=4), 12)


def test_a_table_that_is_not_there_names_its_file(tmp_path):
    with pytest.raises(InputError, match=r"nddg1\.csv: no such file"):
        data.load("nddg1", tmp_path)
    with pytest.raises(InputError, match="no table is called 'iris'"):
        data.load("iris", tmp_path)


# ---------------------------------------------------------------------------------------------------- FCS

CHANNELS = ("FSC-A", "FITC-A", "PE-A", "Time")


def cells(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(1.0, 1000.0, size=(n, len(CHANNELS)))


def test_cells_come_with_fluorescence_as_arcsinh_and_without_time(tmp_path):
    events = cells(7, 1).astype("f4")
    found, names = fcs_cells(write_fcs(tmp_path / "a.fcs", events, CHANNELS))
    assert names == ("FSC-A", "FITC-A", "PE-A")
    assert found[:, 0] == pytest.approx(events[:, 0])
    assert found[:, 1:] == pytest.approx(np.arcsinh(events[:, 1:3].astype(float) / COFACTOR), rel=1e-6)


def samples(folder: Path) -> Path:
    write_fcs(folder / "known.fcs", cells(8, 1), CHANNELS)
    write_fcs(folder / "mixed.fcs", cells(6, 2), CHANNELS)
    (folder / "mixed.csv").write_text("class\ncommon\nplasma\ncommon\n0\nstem\ncommon\n")
    return folder


def test_both_samples_make_one_search_in_which_the_first_is_given(tmp_path):
    table = fcs_samples(samples(tmp_path / "cytometry"))
    assert table.names == ("common", "plasma", "stem")
    assert table.is_given.tolist() == [True] * 8 + [False] * 5
    assert table.truth.tolist() == [0] * 8 + [0, 1, 0, 2, 0]
    assert np.array_equal(data.load("cytometry-fcs", tmp_path).x, table.x)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda folder: (folder / "known.fcs").unlink(), r"known\.fcs: no such file"),
        (lambda folder: (folder / "mixed.fcs").write_bytes(b"no FCS at all"), "not a readable FCS file"),
        (lambda folder: (folder / "mixed.csv").write_text("class\ncommon\n"), "found 1 classes for 6 cells"),
        (lambda folder: (folder / "mixed.csv").write_text("class\n" + "x\n" * 6), "no cell is 'common'"),
        (lambda folder: write_fcs(folder / "mixed.fcs", cells(6, 2)[:, :2], CHANNELS[:2]), "found the channels FSC-A"),
    ],
)
def test_files_that_do_not_fit_are_refused_in_the_users_words(tmp_path, spoil, told):
    folder = samples(tmp_path)
    spoil(folder)
    with pytest.raises(InputError, match=told):
        fcs_samples(folder)
