"""`gibbsite inspect`: one screen that tells what a file is, for every product, and a quick look."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from archive_files import trr3_pixels, write_ddr, write_envi, write_in, write_mtr3, write_trr3, write_wa
from command_line import gibbsite
from gibbsite import inspection, quicklook, survey
from gibbsite.errors import InputError
from gibbsite.product import open_product
from gibbsite.settings import Ingest


def told(path: Path) -> str:
    return inspection.describe(inspection.inspect(path, Ingest()))


def test_the_real_l_cube_is_told_with_its_garbage_and_its_fill_columns(shared_data: Path) -> None:
    text = told(shared_data / "crism/trr3/frt0001458f_01_if156l_trr3.img")
    assert "TRR3 of FRT0001458F_01: I/F, in sensor space, sensor L" in text
    assert "15 lines × 64 samples × 438 bands" in text
    assert "falling in the file, from: nominal; 428 of 438 bands good" in text
    assert "93.8 % of the pixels valid" in text
    assert "garbage in bands 1-3: values from -4.754e+04 to 4.746e+04" in text
    assert "fill only in samples 0-2, 63" in text
    assert "--ddr DDR --wavelengths WA" in text
    assert len(text.splitlines()) <= 24, "one screen"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("trr3/frt0001e5c3_07_if124s_trr3_cropped.lbl", ["truncated", "1 line × 640", "every pixel is fill: there"]),
        ("ddr/frt00003e25_01_de156l_ddr1.lbl", ["geometry of every pixel", "-9.2325° E", "does not take it", "--ddr"]),
        (
            "cdr/ADR10000000000_061C4_VS00L_8.LBL",
            ["volcano scan", "3 lines × 640", "unbinned", "in band 0\n"],
        ),
        ("cdr/CDR410803692813_WA0300000L_3.IMG", ["wavelength of every detector pixel", "--wavelengths"]),
        ("mtrdr_headers/frt00016438_07_sr164j_mtr3.hdr", ["summary parameters", "3393.833 km", "27.2695°", "R770"]),
        ("mtrdr_headers/frt00016438_07_if164j_mtr3.hdr", ["0.4361 to 3.8968 µm", "18 × 18 m", "no image beside it"]),
        ("mtrdr/frt0000932c_07_if164j_mtr3_subsampled.tif", ["3391.159 km", "489 bands", "needs wavelengths"]),
        ("mrdr/T0897_MRRAL_05S113_0256_1_cropped.LBL", ["MRDR tile T0897", "was cropped", "72 wavelengths"]),
        (
            "mrdr/t1865_mrrde_70n185_0256_1_cropped.lbl",
            ["tile T1865", "do not lie about their centre 185"],
        ),
    ],
)
def test_every_kind_of_real_product_is_told(shared_data: Path, name: str, words: list[str]) -> None:
    text = told(shared_data / "crism" / name)
    for word in words:
        assert word in text
    assert str(shared_data) not in text, "folders only take room"


@pytest.mark.parametrize("name", ["no_pid", "no_prod_type"])
def test_the_broken_real_labels_are_refused_for_what_they_lack(shared_data: Path, name: str) -> None:
    with pytest.raises(InputError, match="lacks PRODUCT_ID" if name == "no_pid" else "lacks PRODUCT_TYPE"):
        told(shared_data / f"crism/mrdr/t1865_mrrde_70n185_0256_1_cropped_{name}.lbl")


def test_the_counts_are_those_of_the_pixels(tmp_path: Path) -> None:
    pixels = trr3_pixels()
    pixels[2] = 65535.0
    found = survey.take(open_product(write_trr3(tmp_path, pixels=pixels)), (-0.05, 1.5))
    assert found.empty_lines.tolist() == [2]
    assert found.empty_samples.tolist() == [0, 11]
    assert found.n_seen == 60
    assert found.n_measured[[0, 1, 50]].tolist() == [0, 60, 60]
    assert found.n_outside[[1, 50]].tolist() == [60, 0]
    assert (found.lowest[1], found.highest[1]) == (-47000.0, 47000.0)
    assert np.isnan(found.lowest[0])


def test_the_valid_share_is_the_one_that_ingest_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pixels = trr3_pixels(lines=30)
    pixels[2, 5, 100:122] = np.inf
    found = inspection.inspect(write_trr3(tmp_path, pixels=pixels), Ingest())
    assert found.n_valid == 299
    assert capsys.readouterr().out == ""


def test_ranges_of_numbers_are_short() -> None:
    assert inspection.spans([]) == ""
    assert inspection.spans([0, 1, 2, 63]) == "0-2, 63"
    assert inspection.spans(range(0, 40, 2)) == "0, 2, 4, 6, 8, 10 and 14 ranges more"


@pytest.mark.parametrize("make", [write_trr3, write_ddr, write_wa, write_mtr3, write_in])
def test_every_product_has_a_quick_look_of_the_same_bytes_twice(tmp_path: Path, make) -> None:
    found = inspection.inspect(make(tmp_path), Ingest())
    for name in ("one.png", "two.png"):
        quicklook.write(tmp_path / name, found)
    with Image.open(tmp_path / "one.png") as picture:
        assert min(picture.size) > 200
        assert len(picture.convert("RGB").getcolors(1 << 20)) > 20, "an empty picture"
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_the_command_prints_one_screen_and_writes_the_picture(tmp_path: Path, capsys) -> None:
    label = write_trr3(tmp_path)
    assert gibbsite("inspect", label, "--out", tmp_path / "look.png") == 0
    out = capsys.readouterr().out
    assert out.startswith("what         CRISM TRR3")
    assert (tmp_path / "look.png").stat().st_size > 1000


def test_a_file_without_an_image_has_no_quick_look(tmp_path: Path) -> None:
    header = write_envi(tmp_path, "field", np.ones((3, 4, 2)), wavelength="{500, 600}")
    (tmp_path / "field.img").unlink()
    with pytest.raises(InputError, match="no quick look; leave --out out"):
        quicklook.write(tmp_path / "look.png", inspection.inspect(header, Ingest()))
    assert not (tmp_path / "look.png").exists()
