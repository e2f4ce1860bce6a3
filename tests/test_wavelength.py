"""Wavelengths of TRR3 cubes: real WA records, nominal values, and records of other cubes."""

from pathlib import Path

import numpy as np
import pytest

from archive_files import L_ROWS, S_ROWS, trr3_pixels, write_ddr, write_trr3, write_wa
from gibbsite import crism, pds, wavelength
from gibbsite.errors import InputError


def open_cube(label: Path) -> tuple[pds.Label, pds.ImageFile]:
    found = pds.read_label(label)
    return found, pds.image_file(found)


@pytest.mark.parametrize(
    ("record", "sensor", "rows", "most_nm"),
    [
        ("CDR410803692813_WA0000000L_3", "L", L_ROWS, 0.001),
        ("CDR410803692813_WA0000000S_2", "S", S_ROWS, 0.001),
        ("CDR410803692813_WA0300000L_3", "L", L_ROWS, 0.15),
        ("CDR410803692813_WA0300000S_2", "S", S_ROWS, 0.01),
    ],
)
def test_nominal_wavelengths_are_those_of_the_real_centre_column(
    shared_data: Path, record: str, sensor: str, rows: list[int], most_nm: float
) -> None:
    _, file = open_cube(shared_data / "crism/cdr" / f"{record}.LBL")
    nm = pds.open_pixels(file)[0].astype(np.float64)
    columns = np.flatnonzero(nm[:, 5] != 65535)
    centre = nm[(columns[0] + columns[-1]) // 2]
    nominal = crism.nominal_wavelength(sensor, np.array(rows)) * 1000
    assert pds.row_numbers(file).tolist() == rows
    off = np.abs(nominal - centre)[centre != 65535]
    assert off.max() < most_nm, f"nominal wavelengths of {sensor} are off by {off.max()} nm"


def test_the_gap_of_l_lies_where_it_is_documented() -> None:
    bands = np.sort(crism.nominal_wavelength("L", crism.all_rows("L")))
    gap = np.diff(bands).argmax()
    assert bands[[gap, gap + 1]] == pytest.approx([2.701, 2.760], abs=0.001)
    assert bands.size == 438


def test_the_record_gives_its_centre_column_and_its_hole_is_bridged(tmp_path: Path) -> None:
    label, cube = open_cube(write_trr3(tmp_path))
    bands = wavelength.of_trr3(label, cube, "L", write_wa(tmp_path))
    # Columns 1-10 have data, so the centre is 5, 0.2 columns from the sweet spot of the smile.
    linear = (3943.0 - 6.6 * np.array(L_ROWS) + 5 + 0.2) / 1000
    assert bands.values[1:] == pytest.approx(linear[1:], abs=1e-6)
    assert bands.values[0] - bands.values[1] == pytest.approx(0.00668, abs=1e-4)
    assert bands.source == "WA CDR CDR410803692813_WA0300000L_3"
    assert len(bands.files) == 2


def test_the_record_named_in_the_label_is_found_beside_it_in_any_case(tmp_path: Path) -> None:
    write_wa(tmp_path)
    label, cube = open_cube(write_trr3(tmp_path, record="CDR410803692813_WA0300000L_3.IMG"))
    assert wavelength.of_trr3(label, cube, "L", None).source.startswith("WA CDR")


def test_without_a_record_the_wavelengths_are_nominal(tmp_path: Path) -> None:
    label, cube = open_cube(write_trr3(tmp_path))
    bands = wavelength.of_trr3(label, cube, "L", None)
    assert bands.source == "nominal"
    assert np.array_equal(bands.values, crism.nominal_wavelength("L", np.array(L_ROWS)))


def test_bands_of_a_wavelength_filter_get_the_wavelengths_of_their_rows(tmp_path: Path) -> None:
    rows = [3, 40, 170, 190, 300, 444]
    label, cube = open_cube(write_trr3(tmp_path, pixels=trr3_pixels(bands=6), rows=rows))
    every = crism.nominal_wavelength("L", np.array(L_ROWS))
    expected = [every[L_ROWS.index(row)] for row in rows]
    assert wavelength.of_trr3(label, cube, "L", None).values.tolist() == expected


def test_a_record_of_another_cube_is_refused(tmp_path: Path) -> None:
    label, cube = open_cube(write_trr3(tmp_path))
    with pytest.raises(InputError, match="do not fit the cube's"):
        wavelength.of_trr3(label, cube, "L", write_wa(tmp_path, samples=13))
    visible = write_trr3(tmp_path, "frt0000ace5_07_if166s_trr3", pixels=trr3_pixels(bands=107), rows=S_ROWS)
    with pytest.raises(InputError, match="wavelengths of sensor L, but the cube is of sensor S"):
        wavelength.of_trr3(*open_cube(visible), "S", write_wa(tmp_path))
    with pytest.raises(InputError, match="expected a WA"):
        wavelength.of_trr3(label, cube, "L", write_ddr(tmp_path))
    with pytest.raises(InputError, match="no such file"):
        wavelength.of_trr3(label, cube, "L", tmp_path / "absent.img")


def test_rows_that_are_no_detector_rows_are_refused(tmp_path: Path) -> None:
    for rows in ([0] * 438, [*range(60, 498)]):
        label, cube = open_cube(write_trr3(tmp_path, rows=rows))
        with pytest.raises(InputError, match="detector rows behind the image are not those of 438 L bands"):
            wavelength.of_trr3(label, cube, "L", None)
