"""Gaps, slant light and stripes: laws of the corrections, on lopsided scenes."""

import numpy as np
import pytest

from gibbsite import clean


def naive_fill(spectrum: np.ndarray, wavelength: np.ndarray) -> np.ndarray:
    """What fill_gaps does, for one spectrum."""
    known = np.isfinite(spectrum)
    return np.interp(wavelength, wavelength[known], spectrum[known]) if known.any() else spectrum


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaps_are_bridged_as_by_one_spectrum_at_a_time(dtype: type) -> None:
    random = np.random.default_rng(7)
    wavelength = np.cumsum(random.uniform(0.01, 0.3, 23))
    spectra = random.normal(0.3, 0.1, (5, 40, 23)).astype(dtype)
    spectra[random.random(spectra.shape) < 0.4] = np.nan
    spectra[0, 3], spectra[1, 2, :5], spectra[1, 4, -6:], spectra[4, 7] = np.nan, np.nan, np.nan, 0.25
    before = spectra.copy()
    filled = clean.fill_gaps(spectra, wavelength)
    expected = np.apply_along_axis(naive_fill, -1, spectra.astype(np.float64), wavelength)
    np.testing.assert_allclose(filled, expected, rtol=1e-6 if dtype is np.float32 else 1e-12)
    assert filled.dtype == dtype
    assert np.isnan(filled[0, 3]).all()
    assert np.array_equal(filled[np.isfinite(before)], before[np.isfinite(before)]), "measured values changed"
    np.testing.assert_array_equal(spectra, before, err_msg="the input was changed")


def test_whole_spectra_come_back_untouched() -> None:
    spectra = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    assert np.array_equal(clean.fill_gaps(spectra, np.arange(4.0)), spectra)
    assert clean.fill_gaps(np.empty((0, 4), np.float32), np.arange(4.0)).shape == (0, 4)


def test_light_is_made_vertical_up_to_the_steepest_angle() -> None:
    spectra = np.full((4, 3), 0.2, np.float32)
    bright = clean.divide_by_cos_incidence(spectra, np.array([0.0, 60.0, 89.9, np.nan], np.float32))
    assert bright[:3, 0] == pytest.approx([0.2, 0.4, 0.2 / np.cos(np.deg2rad(85))], rel=1e-5)
    assert np.isnan(bright[3]).all()
    assert bright.dtype == np.float32


def test_medians_are_those_of_each_column_without_its_gaps() -> None:
    random = np.random.default_rng(3)
    column = random.integers(-1, 6, 500)
    column[column == 4] = 2
    spectra = random.normal(size=(500, 7)).astype(np.float32)
    spectra[random.random(spectra.shape) < 0.2] = np.nan
    spectra[column == 3, 5] = np.nan
    medians = clean.column_medians(spectra, column, 6)
    for index in (0, 1, 2, 5):
        expected = np.nanmedian(spectra[column == index].astype(np.float64), axis=0)
        np.testing.assert_allclose(medians[index], expected, rtol=1e-12)
    assert np.isnan(medians[4]).all()
    assert np.isnan(medians[3]).tolist() == [False] * 5 + [True, False]


def test_medians_do_not_depend_on_the_order_or_grouping_of_pixels() -> None:
    random = np.random.default_rng(5)
    column = random.integers(0, 9, 700)
    spectra = random.normal(size=(700, 5)).astype(np.float32)
    whole = clean.column_medians(spectra, column, 9)
    shuffled = random.permutation(700)
    assert np.array_equal(clean.column_medians(spectra[shuffled], column[shuffled], 9), whole)
    for some in ([0, 1, 2, 3], [4, 5, 6, 7, 8]):
        chosen = np.isin(column, some)
        assert np.array_equal(clean.column_medians(spectra[chosen], column[chosen], 9)[some], whole[some])
    assert np.array_equal(clean.column_medians(spectra[:, 2:4], column, 9), whole[:, 2:4])


def test_sampled_pixels_are_valid_few_and_spread_over_each_column() -> None:
    column = np.broadcast_to(np.arange(5, dtype=np.int16), (1003, 5)).copy()
    column[:, 4] = -1
    valid = np.ones((1003, 5), bool)
    valid[30:, 3] = False
    pixel = clean.sample_columns(column, valid, most=100)
    line, owner = np.divmod(pixel, 5)
    assert (np.diff(pixel) > 0).all()
    assert np.bincount(owner).tolist() == [100, 100, 100, 30]
    assert np.diff(line[owner == 1]).min() >= 10
    assert np.diff(line[owner == 1]).max() <= 11
    assert clean.sample_columns(column, np.zeros_like(valid)).size == 0


def striped_scene() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A scene (line, column, band) without stripes, gains (column, band) that stripe it, columns that see it.

    Brightness doubles across the scene, with a broad hill on top; two columns stick out by 30 %.
    """
    random = np.random.default_rng(11)
    n_lines, n_columns, n_bands = 150, 128, 6
    place = np.linspace(0, 1, n_columns)
    broad = 0.15 * (1 + place) + 0.02 * np.exp(-0.5 * ((place - 0.7) / 0.15) ** 2)
    tint = np.linspace(1, 1.4, n_bands)
    texture = random.gamma(400, 1 / 400, (n_lines, n_columns, 1))
    scene = broad[:, None] * tint * texture + random.normal(0, 0.002, (n_lines, n_columns, n_bands))
    gains = 1 + random.normal(0, 0.03, (n_columns, n_bands))
    gains[[40, 90]] *= 1.3
    in_scene = np.ones(n_columns, bool)
    in_scene[:6], in_scene[-2:] = False, False
    return scene, gains, in_scene


def test_destriping_cuts_stripes_to_a_fifth_and_keeps_broad_gradients() -> None:
    scene, gains, in_scene = striped_scene()
    n_lines, n_columns, n_bands = scene.shape
    spectra = (scene * gains)[:, in_scene].reshape(-1, n_bands)
    column = np.tile(np.flatnonzero(in_scene), n_lines)
    found = clean.column_gains(clean.column_medians(spectra, column, n_columns), 31)
    left = (gains / found)[in_scene] - 1
    before, after = np.sqrt(np.mean((gains[in_scene] - 1) ** 2)), np.sqrt(np.mean(left**2))
    assert after < before / 5, f"stripes went from {before:.4f} to {after:.4f} only"
    # What is left is smooth: the broad course of the scene changes by less than 2 %, at its edges too.
    kernel = np.ones(15) / 15
    course = np.array([np.convolve(left[:, band], kernel, mode="valid") for band in range(n_bands)])
    assert np.abs(course).max() < 0.025
    assert np.array_equal(found[~in_scene], np.ones_like(found[~in_scene]))


def test_a_scene_without_stripes_is_left_alone_up_to_its_edges() -> None:
    medians = np.linspace(0.1, 0.3, 100)[:, None] * np.array([1.0, 2.0])
    medians[:7] = np.nan
    np.testing.assert_allclose(clean.column_gains(medians, 25), 1.0, atol=1e-9)


def test_one_broken_column_does_not_bend_its_neighbours() -> None:
    medians = np.linspace(0.2, 0.3, 80)[:, None] + np.random.default_rng(2).normal(0, 1e-4, (80, 1))
    medians[33] *= 1.8
    gains = clean.column_gains(medians, 21)
    assert gains[33, 0] == pytest.approx(1.8, rel=0.01)
    assert np.abs(np.delete(gains[:, 0], 33) - 1).max() < 0.002


def test_dark_and_empty_bands_have_no_gains() -> None:
    medians = np.column_stack([np.full(30, np.nan), np.full(30, -0.01), np.zeros(30), np.full(30, 0.2)])
    medians[4, 3] = 2.0
    gains = clean.column_gains(medians)
    assert np.array_equal(gains[:, :3], np.ones((30, 3)))
    assert gains[4, 3] == 2.0, "a gain beyond 2 is not a stripe"


def test_gains_do_not_depend_on_how_bands_are_grouped() -> None:
    medians = np.random.default_rng(9).uniform(0.1, 0.3, (50, 6))
    whole = clean.column_gains(medians)
    assert np.array_equal(whole[:, 2:5], clean.column_gains(medians[:, 2:5]))
