"""Volcano-scan records: the real ADR and AT record, hand-made ones, and their fit to a cube's bands and columns."""

from pathlib import Path

import numpy as np
import pytest

from archive_files import FILL, L_ROWS, write_pds, write_wa
from gibbsite import crism, volcano
from gibbsite.errors import InputError
from gibbsite.settings import Simulate
from gibbsite.simulate.observation import write_observation


def write_adr(folder: Path, samples: int = 20, product: str = "ADR10000000000_061C4_VS00L_8", lines: int = 3) -> Path:
    """The label of a small record in which every value tells its place; its row pointer counts one line, as in real."""
    line, sample, row = np.ogrid[:lines, :samples, :438]
    values = np.where(line == 0, 0.5 + 0.01 * sample + 0.0005 * row, 0.001 * line + 1e-5 * row + 0.0 * sample)
    values[:, :2], values[:, :, 0] = FILL, FILL
    label = write_pds(folder, product, values, rows=L_ROWS)
    text = label.read_bytes().decode()
    pointer = f", {lines * 438 + 1})"
    assert pointer in text
    label.write_bytes(text.replace(pointer, ", 439)").encode())
    return label


def test_the_real_record_has_the_carbon_dioxide_triplet_in_every_column(shared_data: Path) -> None:
    scan = volcano.read_volcano_scan(shared_data / "crism/cdr/adr10000000000_061c4_vs00l_8.img")
    assert scan.product == "ADR10000000000_061C4_VS00L_8"
    assert scan.transmission.shape == (640, 438)
    assert scan.artefact.shape == (2, 640, 438)
    known = np.flatnonzero(np.isfinite(scan.transmission).any(axis=1))
    assert (known[0], known[-1], known.size) == (31, 630, 600)
    window = (scan.wavelength > 1.9) & (scan.wavelength < 2.1)
    deepest = scan.wavelength[window][np.nanargmin(scan.transmission[known][:, window], axis=1)]
    assert np.abs(deepest - 2.007).max() < 0.015, "the smile moves the line by up to 10 nm"
    assert np.abs(np.median(deepest) - 2.007) < 0.005
    clear = (scan.wavelength > 2.2) & (scan.wavelength < 2.4)
    np.testing.assert_allclose(np.nanmedian(scan.transmission[known][:, clear]), 1.0, atol=0.01)
    assert np.nanmax(np.abs(scan.artefact)) < 0.1


def test_the_real_older_record_has_transmission_but_no_artefacts(shared_data: Path) -> None:
    scan = volcano.read_volcano_scan(shared_data / "crism/cdr/CDR410000000000_AT0300020L_2.LBL")
    assert (scan.transmission.shape, scan.artefact.shape) == ((64, 70), (0, 64, 70))
    assert scan.wavelength[np.nanargmin(scan.transmission[30])] == pytest.approx(2.007, abs=0.005)


def test_values_stand_at_the_wavelength_of_their_detector_row(tmp_path: Path) -> None:
    scan = volcano.read_volcano_scan(write_adr(tmp_path))
    assert (np.diff(scan.wavelength) > 0).all()
    at = np.abs(scan.wavelength - crism.nominal_wavelength("L", np.array([L_ROWS[300]]))).argmin()
    assert scan.transmission[7, at] == pytest.approx(0.5 + 0.07 + 0.15, abs=1e-6)
    assert scan.artefact[1, 7, at] == pytest.approx(0.002 + 0.003, abs=1e-6)
    assert np.isnan(scan.transmission[:2]).all()
    assert np.isnan(scan.transmission[:, -1]).all(), "the first band of the file, the longest wavelength, is fill"


def test_a_record_is_fitted_to_the_bands_and_columns_of_a_cube(tmp_path: Path) -> None:
    scan = volcano.read_volcano_scan(write_adr(tmp_path))
    bands = np.array([0.9, scan.wavelength[40] + 0.001, scan.wavelength[300] - 0.001])
    fitted = volcano.fit_to_cube(scan, bands, 10)
    assert np.isnan(fitted.transmission[:, 0]).all(), "no band of the record is near 0.9 µm"
    assert np.isnan(fitted.transmission[0]).all(), "one of its two columns is fill"
    np.testing.assert_allclose(
        fitted.transmission[3, 1:], (scan.transmission[6, [40, 300]] + scan.transmission[7, [40, 300]]) / 2
    )
    assert fitted.artefact.shape == (2, 10, 3)


def test_records_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    scan = volcano.read_volcano_scan(write_adr(tmp_path))
    with pytest.raises(InputError, match="20 columns do not fit the cube's 64"):
        volcano.fit_to_cube(scan, scan.wavelength, 64)
    with pytest.raises(InputError, match="volcano scans are for L cubes"):
        volcano.fit_to_cube(scan, np.array([0.5, 0.6]), 20)
    with pytest.raises(InputError, match="expected a volcano scan"):
        volcano.read_volcano_scan(write_wa(tmp_path))
    with pytest.raises(InputError, match="no such file"):
        volcano.read_volcano_scan(tmp_path / "absent.img")
    with pytest.raises(InputError, match="2 lines and 438 detector rows, expected 3 lines"):
        volcano.read_volcano_scan(write_adr(tmp_path, lines=2, product="ADR10000000000_061C4_VS10L_8"))


@pytest.mark.parametrize("binning", [5, 10])
def test_the_simulated_record_is_read_like_the_real_one(tmp_path: Path, shared_data: Path, binning: int) -> None:
    write_observation(Simulate(lines=24, binning=binning), 7, tmp_path)
    ours = volcano.read_volcano_scan(tmp_path / f"adr10000000000_00000_vs{2 if binning == 5 else 3}0l_8.lbl")
    real = volcano.read_volcano_scan(shared_data / "crism/cdr/ADR10000000000_061C4_VS00L_8.LBL")
    n_columns = 640 // binning
    fitted = volcano.fit_to_cube(real, ours.wavelength, n_columns)
    assert ours.transmission.shape == fitted.transmission.shape
    middle = ours.transmission[n_columns // 2]
    assert np.flatnonzero(np.isnan(middle)).tolist() == [0, 1, 435, 436, 437]
    assert np.isnan(fitted.transmission[n_columns // 2])[np.isnan(middle)].all()
    window = (ours.wavelength > 1.9) & (ours.wavelength < 2.1)
    assert ours.wavelength[window][middle[window].argmin()] == pytest.approx(2.007, abs=0.007)
    assert 0.5 < middle[window].min() < 0.9
    assert np.nanmax(np.abs(ours.artefact)) < np.nanmax(np.abs(real.artefact))
