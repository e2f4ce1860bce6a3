"""Stripes of detector columns: laws of the correction, on lopsided scenes."""

from pathlib import Path

import numpy as np
import pytest

import handmade_cubes
from gibbsite import kernels
from gibbsite.clean import stripes
from gibbsite.cleaned import open_cleaned
from gibbsite.corrections import Corrections
from gibbsite.gains import column_gains
from gibbsite.kernels.stripes import LOWEST, PARTS, STEP
from gibbsite.scene import Grid
from gibbsite.settings import Settings
from gibbsite.sources import Source, Strips
from handmade_cubes import Cube


def test_places_are_few_and_spread_over_each_column() -> None:
    pair = np.broadcast_to(np.arange(5), (1003, 5)).copy()
    pair[:, 4], pair[30:, 3] = -1, -1
    place = stripes.places(pair, most=100)
    for column, n_expected in enumerate((100, 100, 100, 30, 0)):
        line = np.flatnonzero(place[:, column] >= 0)
        assert sorted(place[line, column]) == list(range(n_expected))
        assert n_expected < 100 or (np.diff(line).min() >= 10 and np.diff(line).max() <= 11)
    assert stripes.places(np.full((3, 2), -1)).max() == -1


@pytest.mark.parametrize("n_lines", [1, 71, 72, 73, 79, 100, 480, 10_003])
def test_lines_looked_at_first_are_whole_groups_spread_over_the_scene(n_lines: int) -> None:
    place = stripes.line_places(np.zeros((n_lines, 2), np.int16))
    assert place is not None
    line = np.flatnonzero(place >= 0)
    assert place[line].tolist() == list(range(len(line)))
    assert min(n_lines, 32) <= len(line) <= 72
    if n_lines > 72:
        assert line[0] < n_lines / 4
        assert line[-1] > 3 * n_lines / 4
        assert np.diff(np.unique(line // stripes.GROUP_LINES)).max() <= n_lines / 36 + 1


def test_lines_without_pairs_are_not_looked_at() -> None:
    pair = np.full((1000, 3), -1)
    some = np.flatnonzero(np.arange(1000) % 37 < 3)
    pair[some] = 1
    place = stripes.line_places(pair)
    assert place is not None
    line = np.flatnonzero(place >= 0)
    assert np.isin(line, some).all()
    assert len(line) >= 32


def test_whole_lines_will_not_do_where_they_leave_out_columns() -> None:
    pair = np.zeros((480, 5), np.int16)
    pair[23:, 2] = -1
    assert stripes.line_places(pair) is None
    pair[:, 2] = -1
    assert stripes.line_places(pair) is not None


def ratios_of(scene: np.ndarray) -> np.ndarray:
    """Ratios (line, column, band) of the next column to each of a scene; NaN where one is not positive."""
    above, below = scene[:, 1:].astype(np.float64), scene[:, :-1].astype(np.float64)
    return np.where((above > 0) & (below > 0), above / below, np.nan)


def kept(scene: np.ndarray) -> np.ndarray:
    """The keys (line, band, column) of a scene (line, column, band); column c is its c-th."""
    n_lines, n_columns, n_bands = scene.shape
    column = np.broadcast_to(np.arange(n_columns), (n_lines, n_columns))
    pair = stripes.neighbour_columns(column, np.ones(column.shape, bool))
    lines = np.ascontiguousarray(scene.transpose(0, 2, 1).astype(np.float32))
    keys = np.zeros((n_lines, n_bands, n_columns + -n_columns % kernels.LANES), np.uint16)
    kernels.keep_ratios(lines, stripes.places(pair, most=n_lines), pair, np.zeros(column.shape, bool), keys)
    return keys


def scene_with_gaps() -> np.ndarray:
    """A scene (line, column, band) in which values are missing, negative or beyond all keys."""
    random = np.random.default_rng(3)
    scene = random.gamma(400, 1 / 1600, (101, 12, 7)).astype(np.float32)
    scene[random.random(scene.shape) < 0.2] = np.nan
    scene[random.random(scene.shape) < 0.1] *= -1
    scene[random.random(scene.shape) < 0.05] *= 5
    scene[:, 5, 3] = np.nan
    return scene


def test_quantiles_are_those_of_the_ratios_of_neighbours_without_their_gaps() -> None:
    scene = scene_with_gaps()
    found = kernels.quantiles_of_keys(kept(scene), 0, 7)[:, :, :12]
    ratio = np.clip(ratios_of(scene), LOWEST + STEP, 2.0)
    for column in range(11):
        for band in range(7):
            known = np.sort(ratio[np.isfinite(ratio[:, column, band]), column, band])
            for quarters, quantile in ((2, found[0, band, column]), (1, found[1, band, column])):
                if known.size:
                    expected = known[-(-quarters * len(known) // 4) - 1]
                    assert quantile == pytest.approx(expected, abs=STEP)
                else:
                    assert np.isnan(quantile)
    assert np.isnan(found[:, :, 11]).all()
    assert np.isnan(found[:, 3, 4]).all()


def test_quantiles_do_not_depend_on_the_order_of_lines() -> None:
    scene = np.random.default_rng(5).gamma(400, 1 / 1600, (70, 9, 5))
    shuffled = np.random.default_rng(6).permutation(70)
    both = [kernels.quantiles_of_keys(kept(some), 0, 5) for some in (scene, scene[shuffled])]
    np.testing.assert_array_equal(*both)


def test_sums_are_those_of_held_distances_from_the_middle() -> None:
    scene = scene_with_gaps()
    lines = np.ascontiguousarray(scene.transpose(0, 2, 1))
    column = np.broadcast_to(np.arange(12), (101, 12))
    pair = stripes.neighbour_columns(column, np.ones(column.shape, bool))
    random = np.random.default_rng(4)
    middle = random.normal(1, 0.02, (7, 12)).astype(np.float32)
    middle[2, 3] = np.nan
    limit = random.uniform(0.01, 0.1, (7, 12)).astype(np.float32)
    sums = np.zeros((2, 7, 12), np.float32)
    kernels.add_ratios(lines, pair, np.zeros(pair.shape, bool), middle, limit, sums)
    away = (ratios_of(scene).transpose(0, 2, 1) - middle[:, :11]) / limit[:, :11]
    is_known = np.isfinite(away)
    expected = np.where(is_known, np.clip(away, -1, 1), 0.0).sum(axis=0)
    # A part of the limit is what each of at most 101 ratios may be rounded by.
    np.testing.assert_allclose(sums[0, :, :11] / PARTS, expected, atol=101 * 0.6 / PARTS)
    np.testing.assert_allclose(sums[1, :, :11], (np.abs(away) < 1).sum(axis=0), atol=1)
    assert sums[:, 2, 3].tolist() == [0.0, 0.0], "without a middle nothing is added"
    assert np.array_equal(sums, np.rint(sums)), "sums are of whole numbers, so that their order does not matter"


def test_ratios_of_samples_that_are_columns_are_those_of_any_columns() -> None:
    n_columns, n_lines = 100, 7
    lines = np.random.default_rng(5).gamma(400, 1 / 1600, (n_lines, 3, n_columns)).astype(np.float32)
    lines[:, :, 30:33], lines[2, 1, 50], lines[3, 2, 51] = np.nan, -0.1, 0.0
    column = np.broadcast_to(np.arange(n_columns), (n_lines, n_columns))
    pair = stripes.neighbour_columns(column, np.ones(column.shape, bool))
    room = n_columns + kernels.LANES
    slow, fast = (np.zeros((5, 3, room), np.uint16) for _ in range(2))
    slow_sums, fast_sums = (np.zeros((2, 3, room), np.float32) for _ in range(2))
    middle, limit = np.full((3, room), np.float32(1.01)), np.full((3, room), np.float32(0.05))
    limit[1], limit[:, 7] = 0.02, 0.1
    place = np.array([0, -1, 1, 2, -1, 3, 4], np.int32)
    everywhere = np.ascontiguousarray(np.broadcast_to(place[:, None], column.shape))
    turn = np.zeros(column.shape, bool)
    kernels.keep_ratios(lines, everywhere, pair, turn, slow)
    kernels.add_ratios(lines, pair, turn, middle, limit, slow_sums)
    padded = np.pad(lines, ((0, 0), (0, 0), (0, 2 * kernels.LANES)), constant_values=np.nan)
    for start in range(0, n_columns, kernels.LANES):
        strip, following = (
            np.ascontiguousarray(padded[:, :, at : at + kernels.LANES]) for at in (start, start + kernels.LANES)
        )
        kernels.keep_level_ratios(strip, following, place, start, fast)
        kernels.add_level_ratios(strip, following, start, middle, limit, fast_sums)
    assert (slow > 0).sum() > 1000
    assert (slow_sums[1] > 0).sum() > 100
    np.testing.assert_array_equal(fast[:, :, : n_columns - 1], slow[:, :, : n_columns - 1])
    np.testing.assert_array_equal(fast_sums[:, :, : n_columns - 1], slow_sums[:, :, : n_columns - 1])


def found_gains(scene: np.ndarray, in_scene: np.ndarray | None = None) -> np.ndarray:
    """Gains (column, band) of a scene (line, column, band), whose sample c was seen by column c."""
    n_lines, n_columns, n_bands = scene.shape
    valid = np.broadcast_to(True if in_scene is None else in_scene, (n_lines, n_columns)).copy()
    column = np.broadcast_to(np.arange(n_columns, dtype=np.int16), valid.shape)
    lines = np.ascontiguousarray(scene.transpose(0, 2, 1).astype(np.float32))
    everything = np.array([-np.inf, np.inf, np.nan], np.float32)

    def read(rows: slice, band: np.ndarray, factor: np.ndarray) -> Strips:
        stored = lines[rows]
        return lambda start: kernels.take_stored(stored, band, everything, factor, start)

    wavelength = np.linspace(1.0, 2.0, n_bands)
    source = Source(
        Path("scene"), "scene", Grid(n_lines, n_columns), wavelength, np.ones(n_bands, bool), valid, column, None, None,
        1, read,
    )  # fmt: skip
    found = column_gains(source, Corrections(np.arange(n_bands), np.arange(n_bands), wavelength))
    assert found is not None
    return found.T.astype(np.float64)


def test_gains_hardly_differ_from_those_of_the_median_of_all_ratios() -> None:
    random = np.random.default_rng(12)
    n_lines, n_columns, n_bands = 400, 90, 4
    gains = 1 + random.normal(0, 0.01, (n_columns, n_bands))
    # Long tails: one ratio in ten is of two kinds of ground.
    ground = np.where(random.random((n_lines, n_columns, 1)) < 0.1, 0.3, 0.2)
    scene = ground * gains * (1 + random.normal(0, 0.01, (n_lines, n_columns, n_bands)))
    ratio = np.vstack([np.median(ratios_of(scene), axis=0), np.full((1, n_bands), np.nan)])
    by_median = stripes.column_gains(ratio.T).T
    by_steps = found_gains(scene)
    error = [np.std(np.log(found / gains) - np.log(found / gains).mean(0)) for found in (by_median, by_steps)]
    assert error[1] < 1.02 * error[0], f"errors by medians and by steps: {error}"
    np.testing.assert_allclose(by_steps, by_median, atol=0.002)


def test_a_dark_column_puts_no_stripes_into_its_neighbours() -> None:
    scene = 0.2 * (1 + np.random.default_rng(8).normal(0, 0.02, (300, 60, 2)))
    scene[:, 30] *= 0.3
    gains = found_gains(scene)
    assert np.abs(gains[[28, 29, 31, 32]] - 1).max() < 0.006
    assert gains[30].max() < 0.6


def test_columns_noisier_than_most_are_moved_as_far_as_they_need() -> None:
    random = np.random.default_rng(9)
    noise = np.where(np.arange(100) % 10 == 5, 0.1, 0.005)[:, None]
    gains = 1 + random.normal(0, 0.01, (100, 3))
    scene = 0.2 * gains * (1 + noise * random.normal(0, 1, (480, 100, 3)))
    ratio = np.vstack([np.median(ratios_of(scene), axis=0), np.full((1, 3), np.nan)])
    left = [np.log(found / gains).var() for found in (stripes.column_gains(ratio.T).T, found_gains(scene))]
    assert left[1] < 1.05 * left[0], f"variance left by medians of all lines and by steps: {left}"


def test_columns_seen_in_a_few_lines_only_are_evened_out() -> None:
    random = np.random.default_rng(10)
    gains = 1 + random.normal(0, 0.01, (40, 3))
    scene = 0.2 * gains * (1 + random.normal(0, 0.002, (480, 40, 3)))
    scene[np.ix_(np.r_[0:5, 24:480], np.arange(10, 30))] = np.nan
    valid = np.isfinite(scene[:, :, 0])
    found = found_gains(scene, valid)[12:28]
    assert np.log(found / gains[12:28]).var() < 0.6 * np.log(gains[12:28]).var()


def test_neighbours_are_valid_pixels_of_a_line_whose_columns_differ_by_one() -> None:
    column = np.array([[4, 5, 6, 8, 7], [6, 6, 5, -1, 4], [0, 1, 2, 3, 4]], np.int16)
    valid = np.ones(column.shape, bool)
    valid[2, 2] = False
    expected = [[4, 5, -1, 7, -1], [-1, 5, -1, -1, -1], [0, -1, -1, 3, -1]]
    assert stripes.neighbour_columns(column, valid).tolist() == expected


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


def test_destriping_takes_out_stripes_and_keeps_broad_gradients() -> None:
    scene, gains, in_scene = striped_scene()
    found = found_gains(scene * gains, in_scene)
    left = np.log(gains / found)[in_scene]
    removed = 1 - left.var() / np.log(gains[in_scene]).var()
    # Of stripes without any order, a window of 5 columns takes the 23 % that look like a slow trend for the scene.
    assert removed > 0.75, f"{removed:.0%} of the stripes' variance was removed"
    np.testing.assert_allclose(found[[40, 90]].mean(axis=1), 1.3, rtol=0.03, err_msg="a broken column is not mended")
    # What is taken out of the scene itself has no slow course, at its edges either.
    taken = np.log(found_gains(scene, in_scene))[in_scene]
    kernel = np.ones(15) / 15
    course = np.array([np.convolve(taken[:, band], kernel, mode="valid") for band in range(scene.shape[2])])
    assert np.abs(course).max() < 0.005
    assert np.array_equal(found[~in_scene], np.ones_like(found[~in_scene]))


def test_columns_that_one_mineral_fills_are_left_alone() -> None:
    random = np.random.default_rng(3)
    n_lines, n_columns = 200, 60
    edge = 20 + np.cumsum(random.integers(-1, 2, n_lines))[:, None]
    column = np.arange(n_columns)
    inside = (column >= edge) & (column < edge + 14)
    scene = np.where(inside, 0.20, 0.30)[..., None] * (1 + random.normal(0, 0.003, (n_lines, n_columns, 1)))
    medians = np.median(scene[..., 0], axis=0)
    assert np.ptp(medians) > 0.08, "the mineral's columns have another median; else this test shows nothing"
    assert np.abs(found_gains(scene) - 1).max() < 0.002


def test_a_scene_without_stripes_is_left_alone_up_to_its_edges() -> None:
    level = np.linspace(0.1, 0.3, 100)[:, None] * np.array([1.0, 2.0])
    level[:7] = np.nan
    ratio = np.vstack([level[1:] / level[:-1], np.full((1, 2), np.nan)])
    np.testing.assert_allclose(stripes.column_gains(ratio.T, 25), 1.0, atol=0.01)


def test_one_broken_column_does_not_bend_its_neighbours() -> None:
    level = np.linspace(0.2, 0.3, 80)[:, None] * (1 + np.random.default_rng(2).normal(0, 1e-4, (80, 1)))
    level[33] *= 1.8
    gains = stripes.column_gains(np.vstack([level[1:] / level[:-1], [[np.nan]]]).T).T
    assert gains[33, 0] == pytest.approx(1.8, rel=0.01)
    assert np.abs(np.delete(gains[:, 0], 33) - 1).max() < 0.002


def test_unknown_ratios_count_as_none_and_gains_beyond_2_are_no_stripes() -> None:
    ratio = np.ones((30, 3))
    ratio[:, 0] = np.nan
    ratio[11:14, 1], ratio[-1] = np.nan, np.nan
    ratio[3, 2], ratio[4, 2] = 10.0, 0.1
    gains = stripes.column_gains(ratio.T).T
    assert np.array_equal(gains[:, :2], np.ones((30, 2)))
    assert gains[4, 2] == 2.0


def test_gains_do_not_depend_on_how_bands_are_grouped() -> None:
    ratio = np.random.default_rng(9).uniform(0.9, 1.1, (50, 6))
    assert np.array_equal(stripes.column_gains(ratio.T)[2:5], stripes.column_gains(ratio[:, 2:5].T))


@pytest.mark.parametrize("chunk_lines", [1, 4, 30])
def test_a_mirrored_scene_has_the_same_gains_for_any_chunks(chunk_lines: int, tmp_path: Path) -> None:
    spectra = handmade_cubes.spectra(height=30, width=12)
    column = np.tile(np.arange(12, dtype=np.int16), (30, 1))
    spectra[:, 7] *= 1.1
    gain = []
    for name, turn in (("plain", 1), ("mirrored", -1)):
        extra = {"detector_column": np.ascontiguousarray(column[:, ::turn])}
        cube = Cube(np.ascontiguousarray(spectra[:, ::turn]), Grid(30, 12), chunk_lines=chunk_lines, extra=extra)
        path = handmade_cubes.write_cube(tmp_path / f"{name}.zarr", cube)
        gain.append(open_cleaned(path, Settings.model_validate({"clean": {"destripe": "auto"}})).corrections.gain)
    assert gain[0] is not None
    assert np.array_equal(*gain)
    assert gain[0][:, 7].mean() == pytest.approx(1.1, abs=0.03)
