"""Gaps, light, air, bland pixels, smile and smoothing: each correction against an obvious twin."""

import numpy as np
import pytest
from scipy.signal import savgol_filter

from gibbsite import kernels
from gibbsite.clean import bland, light
from gibbsite.clean.air import PAIRS, fit_air
from gibbsite.clean.smile import resampling
from gibbsite.clean.smooth import smoothing
from gibbsite.errors import InputError, SettingsError
from gibbsite.settings import validate


def naive_fill(spectrum: np.ndarray, wavelength: np.ndarray) -> np.ndarray:
    """What bridge_gaps does, for one spectrum."""
    known = np.isfinite(spectrum)
    return np.interp(wavelength, wavelength[known], spectrum[known]) if known.any() else spectrum


def test_gaps_are_bridged_as_by_one_spectrum_at_a_time() -> None:
    random = np.random.default_rng(7)
    wavelength = np.cumsum(random.uniform(0.01, 0.3, 23))
    lines = random.normal(0.3, 0.1, (5, 23, 40)).astype(np.float32)
    lines[random.random(lines.shape) < 0.4] = np.nan
    lines[0, :, 3], lines[1, :5, 2], lines[1, -6:, 4], lines[4, :, 7] = np.nan, np.nan, np.nan, 0.25
    before = lines.copy()
    kernels.bridge_gaps(lines, np.isnan(lines).any(axis=(1, 2)), wavelength)
    expected = np.apply_along_axis(naive_fill, 1, before.astype(np.float64), wavelength)
    np.testing.assert_allclose(lines, expected, rtol=1e-6)
    assert np.isnan(lines[0, :, 3]).all()
    assert np.array_equal(lines[np.isfinite(before)], before[np.isfinite(before)]), "measured values changed"


def test_light_is_that_of_the_sun_overhead_up_to_the_steepest_angle() -> None:
    found = light.cosine(np.array([[0.0, 60.0, 89.9, np.nan]], np.float32))
    assert found[0, :3] == pytest.approx([1.0, 0.5, np.cos(np.deg2rad(85))], rel=1e-5)
    assert np.isnan(found[0, 3])


@pytest.mark.parametrize("is_stored", [False, True])
def test_strips_hold_the_wanted_bands_and_pixels_times_their_light(is_stored: bool) -> None:
    random, n_samples = np.random.default_rng(1), 2 * kernels.LANES + 21
    lines = random.uniform(0, 1, (3, 8, n_samples)).astype(np.float32)
    factor = random.uniform(1, 2, (3, n_samples)).astype(np.float32)
    factor[random.random(factor.shape) < 0.3] = np.nan
    gap = random.random(lines.shape) < 0.1
    gap[1] = False
    band, starts = np.array([6, 4, 1]), range(0, n_samples, kernels.LANES)
    if is_stored:
        lines[gap] = random.choice([-5.0, 1.01, 0.5, 65535.0, np.nan, np.inf], gap.sum())
        bounds = np.array([0.0, 1.0, 0.5], np.float32)
        strips = [
            kernels.take_stored(lines, band, bounds, factor, start) for start in range(0, n_samples, kernels.LANES)
        ]
    else:
        lines[gap] = np.nan
        cube = np.ascontiguousarray(lines.transpose(0, 2, 1))
        strips = [kernels.take_lines(cube, band, factor, start) for start in starts]
    found, has_gaps = np.concatenate([strip for strip, _ in strips], axis=-1), [some for _, some in strips]
    expected = np.where(gap, np.float32(np.nan), lines)[:, band]
    np.testing.assert_array_equal(found[:, :, :n_samples], expected * factor[:, None])
    assert np.isnan(found[:, :, n_samples:]).all(), "a strip is NaN beyond the image"
    is_lost = np.isnan(expected).any(axis=1) & np.isfinite(factor)
    for start, some in zip(starts, has_gaps, strict=True):
        np.testing.assert_array_equal(some, is_lost[:, start : start + kernels.LANES].any(axis=1))


# ---------------------------------------------------------------------------------------------------- air


@pytest.mark.parametrize("pair", sorted(PAIRS))
def test_any_amount_of_the_scanned_air_is_taken_out(pair: str) -> None:
    wavelength = np.linspace(1.8, 2.2, 60)
    depth = 0.8 * np.exp(-(((wavelength - 2.008) / 0.02) ** 2)) + 0.3 * np.exp(-(((wavelength - 1.962) / 0.012) ** 2))
    column_depth = depth * np.array([1.0, 0.9, 1.1, 1.0])[:, None]
    transmission = np.exp(-column_depth)
    transmission[3] = np.nan
    air = fit_air(transmission, wavelength, pair)
    amount = np.array([0.4, 1.0, 1.7, 1.0], np.float32)
    lines = (0.25 * np.exp(-amount[:, None] * column_depth)).T[None].astype(np.float32).copy()
    column = np.array([[0, 1, 2, 3]], np.int16)
    kernels.divide_air(lines, air.log_transmission, column, air.inside, air.outside)
    # The band beside the absorption is not quite free of it, so what is left is flat, not 0.25.
    assert np.ptp(lines[0, :, :3], axis=0).max() < 0.002
    assert np.isnan(lines[0, :, 3]).all(), "a column without a scan is corrected"


def test_pixels_whose_air_cannot_be_told_are_not_used() -> None:
    wavelength = np.linspace(1.8, 2.2, 60)
    air = fit_air(np.exp(-np.exp(-(((wavelength - 2.007) / 0.02) ** 2)))[None], wavelength, "2007/1980")
    lines = np.full((1, 60, 3), 0.2, np.float32)
    lines[0, air.inside[0], 1] = -0.01
    kernels.divide_air(lines, air.log_transmission, np.array([[0, 0, -1]], np.int16), air.inside, air.outside)
    assert np.isfinite(lines[0, :, 0]).all()
    assert np.isnan(lines[0, :, 1:]).all()


def test_what_the_scan_leaves_is_patched_by_its_artefact_and_a_broad_band_stays() -> None:
    wavelength = np.linspace(1.7, 2.3, 80)
    inside = (wavelength > 1.76) & (wavelength < 2.24)
    # A bowl with teeth, of another strength in each column; the first record column has none.
    shape = np.where(inside, 0.01 + 0.01 * np.sin(90 * wavelength), 0.0)
    artefact = shape * np.array([0.0, 1.0, 1.5, 0.7])[:, None]
    transmission = np.exp(-0.8 * np.exp(-(((wavelength - 2.007) / 0.02) ** 2)))[None] * np.ones((4, 1))
    air = fit_air(transmission, wavelength, "2007/1980", artefact)
    mineral = 0.3 - 0.03 * np.exp(-(((wavelength - 1.93) / 0.06) ** 2))
    lines = (mineral[:, None] - np.array([0.0, 0.8, 2.0, -0.5]) * artefact.T)[None].astype(np.float32)
    spiked = lines.copy()
    spiked[0, 30] += 0.5
    column = np.array([[0, 1, 2, 3]], np.int16)
    kernels.add_artefact(lines, air.artefact, air.tooth, column)
    # The mineral's own curvature counts as a few teeth.
    assert np.abs(lines[0] - mineral[:, None]).max() < 2e-3
    kernels.add_artefact(spiked, air.artefact, air.tooth, column)
    assert np.abs(np.delete(spiked[0], 30, axis=0) - mineral[1, None]).max() < 0.15, "a spike is held to 3 artefacts"


def test_air_without_its_bands_is_refused() -> None:
    with pytest.raises(InputError, match="no band with a known transmission near 2007 nm"):
        fit_air(np.ones((3, 20)), np.linspace(1.0, 1.5, 20), "2007/1980")


# ---------------------------------------------------------------------------------------------------- bland


def naive_ratio(lines: np.ndarray, column: np.ndarray, wavelength: np.ndarray, reach: int, n_bland: int) -> np.ndarray:
    """Every pixel over the mean of the straightest of its detector column, one per line, next lines left out."""
    n_lines, _, n_samples = lines.shape
    score = np.full((n_lines, n_samples), np.inf)
    for y in range(n_lines):
        for x in range(n_samples):
            spectrum = lines[y, :, x].astype(float)
            fit = np.polyval(np.polyfit(wavelength, spectrum, 1), wavelength)
            score[y, x] = np.mean((spectrum - fit) ** 2) / spectrum.mean() ** 2
    ratio = np.full(lines.shape, np.nan)
    for y in range(n_lines):
        for x in range(n_samples):
            candidates = []
            for other in range(max(0, y - reach), min(n_lines, y + reach + 1)):
                same = np.flatnonzero(column[other] == column[y, x])
                if abs(other - y) > 1 and column[y, x] >= 0 and same.size:
                    best = same[score[other, same].argmin()]
                    candidates.append((score[other, best], other, best))
            chosen = sorted(candidates)[:n_bland]
            if chosen:
                ratio[y, :, x] = lines[y, :, x] / np.mean([lines[row, :, col] for _, row, col in chosen], axis=0)
    return ratio


@pytest.mark.parametrize("in_map_space", [False, True])
def test_pixels_are_divided_by_the_blandest_of_their_own_detector_column(in_map_space: bool) -> None:
    random = np.random.default_rng(3)
    lines = random.gamma(50, 1 / 200, (30, 9, 8)).astype(np.float32)
    wavelength = np.linspace(1.0, 2.6, 9)
    column = np.broadcast_to(np.arange(8, dtype=np.int16), (30, 8)).copy()
    if in_map_space:
        # Columns run aslant over a map, some twice in a line, some pixels are of none.
        column = ((np.arange(30)[:, None] // 4 + np.arange(8)) // 2).astype(np.int16)
        column[random.random(column.shape) < 0.1] = -1
    score = kernels.crookedness(lines, wavelength)
    around = kernels.best_of_columns(score, column, int(column.max()) + 1)
    found = kernels.divide_by_bland(lines, 5, 25, around, column, (7, 3))
    expected = naive_ratio(lines, column, wavelength, 7, 3)[5:25]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_ratio_is_refused_with_few_lines_or_unknown_columns() -> None:
    column = np.zeros((99, 3), np.int16)
    with pytest.raises(InputError, match=r"scene: clean.ratio found 99 lines .* expected at least 100"):
        bland.check(column, np.ones((99, 3), bool), "scene")
    with pytest.raises(InputError, match="needs the detector column of each pixel"):
        bland.check(np.full((120, 3), -1), np.ones((120, 3), bool), "scene")
    bland.check(np.zeros((120, 3), np.int16), np.ones((120, 3), bool), "scene")


# ---------------------------------------------------------------------------------------------------- smile, smoothing


def test_columns_of_shifted_wavelengths_show_the_same_spectrum_afterwards() -> None:
    wanted = np.linspace(1.0, 2.6, 240)
    shift = np.array([-0.010, -0.003, 0.0, 0.0045, 0.010])
    by_column = wanted + shift[:, None] * np.linspace(0.7, 1.0, 240)
    by_column[3] = np.nan

    def spectrum(at: np.ndarray) -> np.ndarray:
        return 0.25 + 0.02 * at - 0.05 * np.exp(-4 * np.log(2) * ((at - 2.3) / 0.06) ** 2)

    lines = spectrum(by_column).T[None].astype(np.float32).copy()
    inner = wanted[3:-3]
    weights = resampling(by_column, inner)
    column = np.array([[0, 1, 2, 3, 4]], np.int16)
    found = kernels.combine_bands_by_column(lines, weights.start, weights.weight, column)
    assert np.isnan(found[0, :, 3]).all(), "a column of unknown wavelengths is not usable"
    off_before = np.abs(lines[0, 3:-3, [0, 1, 4]] - spectrum(inner)).max()
    off_after = np.abs(found[0, :, [0, 1, 2, 4]] - spectrum(inner)).max()
    assert off_before > 0.01
    assert off_after < 1e-4, "the spectrum at the wanted wavelengths is known; cubics come this near"


def test_a_column_in_any_sample_is_resampled_as_the_column_it_is() -> None:
    by_column = np.linspace(1.0, 1.5, 12) + np.array([0.0, 0.004, 0.009])[:, None]
    weights = resampling(by_column, np.linspace(1.05, 1.4, 7))
    lines = np.random.default_rng(1).random((2, 12, 3)).astype(np.float32)
    straight = kernels.combine_bands_by_column(lines, weights.start, weights.weight, np.tile(np.arange(3), (2, 1)))
    turned = kernels.combine_bands_by_column(
        np.ascontiguousarray(lines[:, :, ::-1]), weights.start, weights.weight, np.tile(np.arange(3)[::-1], (2, 1))
    )
    assert np.array_equal(turned[:, :, ::-1], straight)


def test_strips_are_resampled_as_by_the_columns_they_are() -> None:
    by_column = np.linspace(1.0, 1.5, 12) + np.linspace(0, 0.02, kernels.LANES)[:, None]
    weights = resampling(by_column, np.linspace(1.05, 1.4, 7))
    lines = np.random.default_rng(1).random((2, 12, kernels.LANES)).astype(np.float32)
    column = np.tile(np.arange(kernels.LANES), (2, 1))
    expected = kernels.combine_bands_by_column(lines, weights.start, weights.weight, column)
    found = kernels.combine_bands_of_strip(lines, weights.start, weights.weight)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(("window", "order"), [(5, 2), (7, 2), (11, 3), (3, 0)])
def test_smoothing_of_even_bands_is_that_of_savitzky_and_golay(window: int, order: int) -> None:
    lines = np.random.default_rng(2).random((3, 40, 6)).astype(np.float32)
    weights = smoothing(np.linspace(1.0, 2.0, 40), np.arange(40), window, order)
    found = kernels.combine_bands(lines, weights.start, weights.weight)
    np.testing.assert_allclose(
        found, savgol_filter(lines.astype(float), window, order, axis=1, mode="interp"), atol=2e-6
    )


def test_smoothing_keeps_parabolas_over_uneven_bands() -> None:
    wavelength = np.cumsum(np.random.default_rng(4).uniform(0.005, 0.03, 30))
    lines = (0.3 + 0.1 * wavelength - 0.2 * wavelength**2)[None, :, None].astype(np.float32)
    weights = smoothing(wavelength, np.array([0, 3, 15, 29]), 7, 2)
    found = kernels.combine_bands(lines, weights.start, weights.weight)
    np.testing.assert_allclose(found[0, :, 0], lines[0, [0, 3, 15, 29], 0], atol=1e-6)


def test_a_window_wider_than_the_bands_is_refused() -> None:
    with pytest.raises(SettingsError, match="found a window of 11 for 8 bands"):
        smoothing(np.linspace(1, 2, 8), np.arange(8), 11, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"atmosphere": "2007/1980"}, "atmosphere is 2007/1980 but no volcano_scan is given"),
        ({"atmosphere": "2020/1980"}, "2007/1980"),
        ({"smooth": 5, "smooth_order": 5}, "smooth_order 5 must be below smooth"),
        ({"smooth": 4}, "smooth"),
        ({"despike_windows": [4]}, "despike_windows"),
        ({"ratio_pixels": 0}, "ratio_pixels"),
    ],
)
def test_settings_that_cannot_work_are_refused_naming_the_key(given: dict, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        validate({"clean": given}, "test")


def test_a_column_with_two_bands_at_one_wavelength_spoils_no_other() -> None:
    by_column = np.linspace(1.0, 1.5, 12) + np.zeros((3, 1))
    by_column[1, 5] = by_column[1, 6]
    wanted = np.linspace(1.1, 1.4, 5)
    weights = resampling(by_column, wanted)
    lines = np.broadcast_to(by_column.T.astype(np.float32), (2, 12, 3)).copy()
    column = np.broadcast_to(np.arange(3, dtype=np.int16), (2, 3)).copy()
    found = kernels.combine_bands_by_column(lines, weights.start, weights.weight, column)
    np.testing.assert_allclose(found[:, :, [0, 2]], np.broadcast_to(wanted[:, None], (2, 5, 2)), rtol=1e-6)


@pytest.mark.parametrize("width", [1, 15, 16, 40, 64, 70, 131])
def test_strips_of_a_cube_are_its_values_whatever_the_bands_and_the_width(width: int) -> None:
    random = np.random.default_rng(width)
    cube = random.gamma(2, 1, (3, width, 77)).astype(np.float32)
    cube[random.random(cube.shape) < 0.1] = np.nan
    cube[0] = 0.5
    factor = random.uniform(0.5, 2, (3, width)).astype(np.float32)
    factor[1, width // 2] = np.nan
    # Runs of more and of fewer bands than a square has, and single ones.
    band = np.r_[2:30, 33, 36:38, 40:77]
    for start in range(0, width, kernels.LANES):
        lines, has_gaps = kernels.take_lines(cube, band, factor, start)
        n = min(kernels.LANES, width - start)
        inside = slice(start, start + n)
        expected = cube[:, inside][:, :, band].transpose(0, 2, 1) * factor[:, None, inside]
        np.testing.assert_array_equal(lines[:, :, :n], expected)
        assert np.isnan(lines[:, :, n:]).all()
        is_lost = np.isnan(cube[:, inside][:, :, band]).any(axis=2) & np.isfinite(factor[:, inside])
        np.testing.assert_array_equal(has_gaps, is_lost.any(axis=1))
