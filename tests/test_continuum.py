"""Continuum removal and band measurement on spectra whose bands are known."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gibbsite import library
from gibbsite.continuum import find_bands, gaps, remove_continuum

WAVELENGTH = np.arange(1.0, 2.6, 0.00655)
ALL = (0.0, 9.0)


def dip(centre: float, width: float, depth: float) -> np.ndarray:
    return 1.0 - depth * np.exp(-4 * np.log(2) * ((WAVELENGTH - centre) / width) ** 2)


@settings(max_examples=20)
@given(st.floats(0.05, 0.4), st.floats(-0.1, 0.1), st.integers(0, 2**32))
def test_a_continuum_lies_on_the_spectrum_and_never_below(level: float, slope: float, seed: int) -> None:
    random = np.random.Generator(np.random.Philox(seed))
    line = level * (1 + slope * (WAVELENGTH - 1))
    spectrum = line * random.uniform(0.7, 1.0, len(WAVELENGTH))
    removed = remove_continuum(WAVELENGTH, spectrum, ALL)
    assert (removed <= 1 + 1e-12).all()
    assert removed[0] == pytest.approx(1)
    assert removed[-1] == pytest.approx(1)
    hull = spectrum / removed
    bend = np.diff(hull) / np.diff(WAVELENGTH)
    assert (np.diff(bend) <= 1e-9).all(), "the hull must never bend upwards"


def test_a_straight_line_has_a_flat_quotient_and_no_bands() -> None:
    removed = remove_continuum(WAVELENGTH, 0.2 + 0.05 * WAVELENGTH, ALL)
    assert_allclose(removed, 1.0)
    assert find_bands(WAVELENGTH, removed, 0.01) == []


@pytest.mark.parametrize("centre", [1.2, 1.4712, 1.913, 2.2651, 2.5])
@pytest.mark.parametrize("slope", [-0.08, 0.0, 0.1])
def test_centre_depth_and_width_of_a_band_are_measured(centre: float, slope: float) -> None:
    spectrum = (0.25 + slope * (WAVELENGTH - 1.8)) * dip(centre, 0.07, 0.12)
    (band,) = find_bands(WAVELENGTH, remove_continuum(WAVELENGTH, spectrum, ALL), 0.01)
    assert band.centre == pytest.approx(centre, abs=0.003)
    assert band.depth == pytest.approx(0.12, rel=0.06)
    assert band.width == pytest.approx(0.07, rel=0.12)


def test_a_narrow_band_keeps_its_place_inside_a_broad_one() -> None:
    spectrum = 0.2 * dip(1.9, 0.6, 0.2) * dip(2.1, 0.045, 0.1)
    bands = find_bands(WAVELENGTH, remove_continuum(WAVELENGTH, spectrum, ALL), 0.02)
    narrow = min(bands, key=lambda band: abs(band.centre - 2.1))
    assert narrow.centre == pytest.approx(2.1, abs=0.005)
    assert narrow.width < 0.06


def test_noise_makes_no_bands() -> None:
    random = np.random.Generator(np.random.Philox(11))
    spectrum = 0.2 * dip(2.2, 0.08, 0.15) * (1 + random.normal(0, 0.004, len(WAVELENGTH)))
    bands = find_bands(WAVELENGTH, remove_continuum(WAVELENGTH, spectrum, ALL), 0.01)
    assert [round(band.centre, 2) for band in bands] == [2.2]


def test_a_band_of_a_coarsely_sampled_spectrum_keeps_its_depth_and_width() -> None:
    coarse = np.arange(1.0, 2.6, 0.02)
    spectrum = 1.0 - 0.2 * np.exp(-4 * np.log(2) * ((coarse - 2.2) / 0.06) ** 2)
    (band,) = find_bands(coarse, spectrum, 0.02)
    assert band.depth == pytest.approx(0.2, rel=0.1)
    assert band.width == pytest.approx(0.06, rel=0.25)


def test_a_dip_at_a_gap_is_no_band() -> None:
    spectrum = 0.2 * dip(2.0, 0.10, 0.2)
    spectrum[(WAVELENGTH > 2.0) & (WAVELENGTH < 2.1)] = np.nan
    used = np.isfinite(spectrum)
    assert gaps(WAVELENGTH[used]).size == 1
    removed = remove_continuum(WAVELENGTH, spectrum, ALL)
    assert np.isnan(removed[~used]).all()
    assert find_bands(WAVELENGTH, removed, 0.01) == []


def test_outside_the_limits_and_without_positive_values_there_is_no_quotient() -> None:
    spectra = np.stack([np.full(len(WAVELENGTH), 0.3), np.linspace(-0.1, 0.3, len(WAVELENGTH))])
    removed = remove_continuum(WAVELENGTH, spectra, (1.2, 2.0))
    inside = (WAVELENGTH >= 1.2) & (WAVELENGTH <= 2.0)
    assert_allclose(removed[0, inside], 1.0)
    assert np.isnan(removed[0, ~inside]).all()
    assert np.isnan(removed[1, inside & (spectra[1] < 0)]).all()


def test_bands_of_real_type_spectra_are_those_of_the_literature(shared_data: Path) -> None:
    published = {"al smectite": 2.21, "kaolinite": 2.20, "prehnite": 2.353, "mono hyd sulf": 2.12, "talc": 2.31}
    spectra = {item.name: item for item in library.read(shared_data / "crism" / "mica")}
    for name, centre in published.items():
        item = spectra[name]
        bands = find_bands(item.wavelength, remove_continuum(item.wavelength, item.spectrum, (1.0, 2.6)), 0.01)
        assert min(abs(band.centre - centre) for band in bands) < 0.015, name
