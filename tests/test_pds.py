"""PDS3 labels and images: real CRISM files, small hand-made ones, and broken ones."""

from pathlib import Path

import numpy as np
import pytest

from archive_files import L_ROWS, trr3_pixels, write_ddr, write_trr3
from gibbsite import pds
from gibbsite.errors import InputError


def edit(path: Path, old: str, new: str) -> Path:
    """The file with `old` replaced, which must be there once."""
    text = path.read_bytes().decode()
    assert text.count(old) == 1
    path.write_bytes(text.replace(old, new).encode())
    return path


def test_pixels_come_back_as_line_sample_band_from_both_interleaves(tmp_path: Path) -> None:
    cube = pds.open_pixels(pds.image_file(pds.read_label(write_trr3(tmp_path))))
    assert np.array_equal(cube, trr3_pixels())
    planes = pds.open_pixels(pds.image_file(pds.read_label(write_ddr(tmp_path))))
    assert planes.shape == (7, 12, 14)
    assert planes[3, 2, 3] == np.float32(-21 - 0.03 + 0.002)


def test_an_unquoted_image_pointer_reads_the_same_pixels(tmp_path: Path) -> None:
    label = write_trr3(tmp_path)
    edit(label, '^IMAGE = "FRT0000ACE5_07_IF166L_TRR3.IMG"', "^IMAGE = frt0000ace5_07_if166l_trr3.img")
    assert np.array_equal(pds.open_pixels(pds.image_file(pds.read_label(label))), trr3_pixels())


def test_row_numbers_are_read_from_behind_the_image(tmp_path: Path) -> None:
    file = pds.image_file(pds.read_label(write_trr3(tmp_path)))
    assert pds.row_numbers(file).tolist() == L_ROWS
    assert pds.row_numbers(pds.image_file(pds.read_label(write_ddr(tmp_path)))) is None


def test_facts_keep_the_values_with_their_units(tmp_path: Path) -> None:
    facts = pds.read_label(write_trr3(tmp_path)).facts
    assert facts["SOLAR_DISTANCE"] == {"value": 218928627.228202, "unit": "KM"}
    assert facts["MRO:WAVELENGTH_FILTER"] == "0"
    assert facts["MRO:DETECTOR_TEMPERATURE"] == -146.202
    assert facts["SPACECRAFT_CLOCK_START_COUNT"] == "7/0934686406.23361"
    assert facts["START_TIME"].startswith("2009-08-14T03:06:23.829")


@pytest.mark.parametrize("change", [-1, -400, +1, +2560])
def test_an_image_of_another_size_than_the_label_says_is_refused(tmp_path: Path, change: int) -> None:
    label = pds.read_label(write_trr3(tmp_path))
    image = tmp_path / "frt0000ace5_07_if166l_trr3.img"
    content = image.read_bytes()
    image.write_bytes(content[:change] if change < 0 else content + bytes(change))
    expected = "truncated" if change < 0 else "do not belong together"
    with pytest.raises(InputError, match=expected):
        pds.image_file(label)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    BANDS = 438", "    BANDS = 437", "438 row numbers for 437 bands"),
        ("    BANDS = 438\r\n", "", "lacks BANDS"),
        ("    LINES = 7", "    LINES = 70", "contradicts itself"),
        ("    LINES = 7", '    LINES = "N/A"', "found LINES = N/A"),
        ("PC_REAL", "IEEE_REAL", "IEEE_REAL"),
        ("LINE_INTERLEAVED", "DIAGONAL", "DIAGONAL"),
        ("  ^IMAGE = ", "  ^PICTURE = ", "without an image"),
        ('PRODUCT_ID = "FRT0000ACE5_07_IF166L_TRR3"\r\n', "", "lacks PRODUCT_ID"),
        ("PDS_VERSION_ID = PDS3\r\n", "", "not a PDS3 label"),
        ("MRO:DETECTOR_TEMPERATURE = ", 'MRO:DETECTOR_TEMPERATURE = "', "broken label|lacks|without"),
        ('"FRT0000ACE5_07_IF166L_TRR3.IMG"\r\n', '"OTHER.IMG"\r\n', "OTHER.IMG, which is not beside"),
    ],
)
def test_a_broken_label_gives_one_clear_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    label = edit(write_trr3(tmp_path), old, new)
    with pytest.raises(InputError, match=message) as caught:
        pds.image_file(pds.read_label(label))
    assert "\n" not in str(caught.value)
    assert "trr3" in str(caught.value)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
def test_a_label_that_is_cut_short_says_so(tmp_path: Path, share: float) -> None:
    label = write_trr3(tmp_path).with_suffix(".lbl")
    whole = label.read_bytes()
    label.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(InputError, match="it is cut short: there is no END"):
        pds.read_label(label)


def test_real_labels_agree_with_the_size_of_their_images(shared_data: Path) -> None:
    found = {}
    for folder, suffix in (("trr3", "*_trr3.lbl"), ("ddr", "*.lbl"), ("cdr", "*_WA*.LBL")):
        for path in sorted((shared_data / "crism" / folder).glob(suffix)):
            file = pds.image_file(pds.read_label(path))
            found[path.stem.lower()] = (file.layout.shape, file.n_rows)
    assert found["frt0001458f_01_if156l_trr3"] == ((15, 64, 438), 438)
    assert found["frt0001458f_01_if156s_trr3"] == ((15, 64, 107), 107)
    assert found["frt00003e25_01_de156l_ddr1"] == ((15, 64, 14), 0)
    assert len(found) == 7


def test_the_real_cropped_cube_without_its_row_table_is_truncated(shared_data: Path) -> None:
    label = pds.read_label(shared_data / "crism/trr3/frt0001e5c3_07_if124s_trr3_cropped.lbl")
    with pytest.raises(InputError, match=r"truncated, found 273920 bytes but .* describes 276480"):
        pds.image_file(label)


def test_real_l_cubes_start_with_fill_and_garbage(shared_data: Path) -> None:
    label = pds.read_label(shared_data / "crism/trr3/frt0001458f_01_if156l_trr3.lbl")
    file = pds.image_file(label)
    pixels = pds.open_pixels(file)
    assert (pixels[:, :, 0] == 65535).all()
    assert np.abs(pixels[:, 30, 1]).max() > 1000
    assert pds.row_numbers(file)[[0, 178, 179, 437]].tolist() == [0, 178, 187, 445]
