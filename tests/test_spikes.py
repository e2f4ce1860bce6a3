"""Spikes: found against obvious medians, and not mistaken for absorptions or for what neighbours show as well."""

import numpy as np
import pytest

from gibbsite import kernels
from gibbsite.kernels.medians import AT_ONCE, ENDS, band_residuals

NOISE = 0.0007
"""Of a good scene at I/F 0.25."""


def noisy(n_lines: int = 5, n_bands: int = 60, n_samples: int = 37, seed: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    slope = np.linspace(0.24, 0.27, n_bands)[None, :, None]
    return (slope + random.normal(0, NOISE, (n_lines, n_bands, n_samples))).astype(np.float32)


def strip(lines: np.ndarray) -> np.ndarray:
    """The lines as wide as the kernels want them, NaN beyond."""
    return np.pad(lines, ((0, 0), (0, 0), (0, -lines.shape[2] % kernels.LANES)), constant_values=np.nan)


def along(
    lines: np.ndarray, windows: tuple[int, ...] = (11, 7, 3), sigma: float = 8.0
) -> tuple[np.ndarray, np.ndarray]:
    found, counts = [], []
    for start in range(0, lines.shape[2], kernels.LANES):
        here = strip(lines[:, :, start : start + kernels.LANES])
        n = np.zeros((len(lines), kernels.LANES), np.int32)
        kernels.despike_spectra(here, np.array(windows), np.float32(sigma), 0, len(lines), n)
        found.append(here)
        counts.append(n)
    width = lines.shape[2]
    return np.concatenate(found, axis=2)[:, :, :width], np.concatenate(counts, axis=1)[:, :width]


def down(lines: np.ndarray, sigma: float = 8.0) -> tuple[np.ndarray, np.ndarray]:
    found, counts = strip(lines), np.zeros((len(lines), kernels.LANES), np.int32)
    kernels.despike_columns(found, np.float32(sigma), 0, len(lines), counts)
    return found[:, :, : lines.shape[2]], counts[:, : lines.shape[2]]


@pytest.mark.parametrize("windows", [(3,), (5,), (7,), (9,), (11,), (11, 7, 3), (7, 11), (3, 7, 11)])
@pytest.mark.parametrize("n_bands", [11, 12, 13, 14, 15, 16, 60])
@pytest.mark.parametrize("level", [0, 9])
def test_residuals_are_values_less_the_median_of_the_nearest_bands(
    windows: tuple[int, ...], n_bands: int, level: float
) -> None:
    values = np.random.default_rng(n_bands).normal(level, 1, (n_bands, 48)).astype(np.float32)
    assert (values < 0).any() == (level == 0)
    # Ties and steps: what a network of comparisons could get wrong.
    values[:, ::5] = np.round(values[:, ::5])
    residual = np.full((len(windows), *values.shape), np.nan, np.float32)
    largest = np.full((-(-n_bands // AT_ONCE), 48), np.nan, np.float32)
    band_residuals(values, np.array(windows), residual, largest)
    for group, first in enumerate(range(ENDS, n_bands - ENDS, AT_ONCE)):
        inner = abs(residual[:, first : min(first + AT_ONCE, n_bands - ENDS)])
        assert (largest[group] >= inner.max(axis=(0, 1))).all()
    for window, found in zip(windows, residual, strict=True):
        for b in range(n_bands):
            first = min(max(b - window // 2, 0), n_bands - window)
            expected = values[b] - np.median(values[first : first + window], axis=0)
            np.testing.assert_array_equal(found[b], expected, err_msg=f"band {b}, window {window}")


@pytest.mark.parametrize("window", [3, 5, 7, 9, 11])
def test_a_spike_becomes_the_median_of_the_bands_around_it(window: int) -> None:
    lines = noisy()
    places = [(0, 20, 3), (2, 40, 36), (4, 13, 0)]
    for place in places:
        lines[place] += 0.08
    found, counts = along(lines, (window,))
    for y, b, i in places:
        expected = np.median(lines[y, b - window // 2 : b + window // 2 + 1, i])
        assert found[y, b, i] == pytest.approx(expected, abs=1e-7)
    changed = found != lines
    assert changed.sum() == len(places), "values that are no spikes were replaced"
    assert np.array_equal(counts, changed.sum(axis=1))


def test_two_bands_side_by_side_can_both_be_spikes() -> None:
    lines = noisy()
    lines[2, 30:32, 5] += 0.08
    found, counts = along(lines)
    assert np.abs(found[2, 30:32, 5] - 0.255).max() < 0.01
    assert counts[2, 5] == 2


def test_without_spikes_hardly_anything_is_replaced() -> None:
    _, counts = along(noisy(n_lines=40, n_bands=240, n_samples=100), sigma=5.0)
    # A normal value is beyond 5 standard deviations once in 1.7 million; medians of few bands are a little noisy too.
    assert counts.sum() / (40 * 240 * 100) < 5e-5


@pytest.mark.parametrize("width", [5.0, 9.0, 14.0])
def test_absorptions_of_one_pixel_keep_their_depth(width: float) -> None:
    lines = noisy(n_bands=240)
    band = np.arange(240)
    shape = np.exp(-4 * np.log(2) * ((band - 120) / width) ** 2)
    lines[2, :, 7] *= (1 - 0.2 * shape).astype(np.float32)
    found, _ = along(lines)
    lost = np.abs(found[2, 115:126, 7] - lines[2, 115:126, 7]).max() / (0.2 * 0.255)
    assert lost < 0.1, f"{lost:.0%} of the depth was taken for a spike"


def test_what_the_lines_above_and_below_show_as_well_is_no_spike() -> None:
    lines = noisy()
    lines[:, 30] += 0.05
    found, counts = along(lines)
    assert counts.sum() == 0
    assert np.array_equal(found, lines)


def test_down_the_columns_a_spike_becomes_the_median_of_three_lines() -> None:
    lines = noisy()
    lines[2, 20, 3] -= 0.05
    found, counts = down(lines)
    assert found[2, 20, 3] == pytest.approx(np.median(lines[1:4, 20, 3]), abs=1e-7)
    assert (found != lines).sum() == counts.sum() == 1


def test_down_the_columns_a_bright_pixel_and_a_slope_stay() -> None:
    lines = noisy(n_bands=240)
    lines *= np.linspace(1, 2, 5, dtype=np.float32)[:, None, None]
    lines[2, :, 7] *= np.float32(1.5)
    found, counts = down(lines)
    assert counts.sum() == 0
    assert np.array_equal(found, lines)


def test_pixels_without_data_stay_so_and_do_not_touch_others() -> None:
    lines = noisy()
    lines[2, 20, 3] += 0.08
    spoilt = lines.copy()
    spoilt[1, :, 3], spoilt[2, :, 4] = np.nan, np.nan
    for despike in (along, down):
        found, counts = despike(spoilt)
        assert np.isnan(found[1, :, 3]).all()
        assert np.isnan(found[2, :, 4]).all()
        assert counts[1, 3] == counts[2, 4] == 0
    assert abs(along(spoilt)[0][2, 20, 3] - lines[2, 19, 3]) < 0.01, "a spike beside missing pixels was left"


@pytest.mark.parametrize("cut", [1, 2, 4])
def test_a_line_is_despiked_the_same_with_only_its_neighbours_at_hand(cut: int) -> None:
    lines = noisy(n_lines=6, seed=4)
    lines[np.random.default_rng(2).random(lines.shape) < 0.004] += 0.05
    whole, counts = along(lines)
    some, part = np.zeros((1, kernels.LANES), np.int32), strip(lines[cut - 1 : cut + 2])
    kernels.despike_spectra(part, np.array([11, 7, 3]), np.float32(8), 1, 2, some)
    n_samples = lines.shape[2]
    assert np.array_equal(part[1, :, :n_samples], whole[cut])
    assert np.array_equal(part[0::2, :, :n_samples], lines[[cut - 1, cut + 1]]), "lines beside it are only looked at"
    assert np.array_equal(some[0, :n_samples], counts[cut])


def test_the_only_line_of_a_scene_is_judged_by_its_bands_alone() -> None:
    line = noisy(1, seed=4)
    line[0, 30, 5] += 40 * NOISE
    found, counts = along(line)
    assert counts.sum() == counts[0, 5] == 1
    assert abs(found[0, 30, 5] - noisy(1, seed=4)[0, 30, 5]) < 5 * NOISE
    # What other work left in memory has no say.
    for filler in (0.0, 1e3, np.nan):
        np.full((9, 60, kernels.LANES), filler, np.float32).sum()
        np.testing.assert_array_equal(along(line)[1], counts)
