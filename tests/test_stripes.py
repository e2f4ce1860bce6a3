"""Stripes of detector columns: laws of the correction, on lopsided scenes."""

from pathlib import Path

import numpy as np
import pytest

import handmade_cubes
from gibbsite import kernels
from gibbsite.clean import stripes
from gibbsite.cleaned import open_cleaned
from gibbsite.kernels.stripes import STEP
from gibbsite.scene import Grid
from gibbsite.settings import Settings
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


def found_medians(scene: np.ndarray, in_scene: np.ndarray | None = None) -> np.ndarray:
    """Median ratios (column, band) of the next column to each, of a scene (line, column, band); column c is its
    c-th."""
    n_lines, n_columns, n_bands = scene.shape
    valid = np.broadcast_to(True if in_scene is None else in_scene, (n_lines, n_columns))
    pair = stripes.neighbour_columns(np.broadcast_to(np.arange(n_columns), valid.shape), valid)
    place = stripes.places(pair, most=n_lines)
    lines = np.ascontiguousarray(scene.transpose(0, 2, 1).astype(np.float32))
    keys = np.zeros((n_lines, n_bands, n_columns + -n_columns % kernels.LANES), np.uint16)
    kernels.keep_ratios(lines, place, pair, np.zeros(valid.shape, bool), keys)
    return kernels.median_keys(keys, 0, n_bands)[:, :n_columns].T


def test_ratios_of_samples_that_are_columns_are_those_of_any_columns() -> None:
    n_columns, n_lines = 100, 7
    lines = np.random.default_rng(5).gamma(400, 1 / 1600, (n_lines, 3, n_columns)).astype(np.float32)
    lines[:, :, 30:33], lines[2, 1, 50], lines[3, 2, 51] = np.nan, -0.1, 0.0
    column = np.broadcast_to(np.arange(n_columns), (n_lines, n_columns))
    pair = stripes.neighbour_columns(column, np.ones(column.shape, bool))
    slow, fast = (np.zeros((5, 3, n_columns + kernels.LANES), np.uint16) for _ in range(2))
    place = stripes.line_places(n_lines, most=5)
    assert sorted(place[place >= 0]) == [0, 1, 2, 3, 4]
    everywhere = np.ascontiguousarray(np.broadcast_to(place[:, None], column.shape))
    kernels.keep_ratios(lines, everywhere, pair, np.zeros(column.shape, bool), slow)
    padded = np.pad(lines, ((0, 0), (0, 0), (0, 2 * kernels.LANES)), constant_values=np.nan)
    for start in range(0, n_columns, kernels.LANES):
        strip, following = (
            np.ascontiguousarray(padded[:, :, at : at + kernels.LANES]) for at in (start, start + kernels.LANES)
        )
        kernels.keep_level_ratios(strip, following, place, start, fast)
    assert (slow > 0).sum() > 1000
    np.testing.assert_array_equal(fast[:, :, : n_columns - 1], slow[:, :, : n_columns - 1])


def found_gains(scene: np.ndarray, in_scene: np.ndarray | None = None) -> np.ndarray:
    """Gains (column, band) of a scene (line, column, band) read in full."""
    return stripes.column_gains(found_medians(scene, in_scene).T).T


def test_medians_are_those_of_the_ratios_of_neighbours_without_their_gaps() -> None:
    random = np.random.default_rng(3)
    scene = random.gamma(400, 1 / 1600, (101, 12, 7)).astype(np.float32)
    scene[random.random(scene.shape) < 0.2] = np.nan
    scene[random.random(scene.shape) < 0.1] *= -1
    scene[:, 5, 3] = np.nan
    found = found_medians(scene)
    above, below = scene[:, 1:].astype(float), scene[:, :-1].astype(float)
    ratio = np.where((above > 0) & (below > 0), above / below, np.nan)
    for column in range(11):
        for band in range(7):
            known = np.sort(ratio[np.isfinite(ratio[:, column, band]), column, band])
            if not known.size:
                assert np.isnan(found[column, band])
                continue
            assert found[column, band] == pytest.approx(known[(len(known) - 1) // 2], abs=STEP)
    assert np.isnan(found[11]).all()
    assert np.isnan(found[4, 3])


def test_medians_do_not_depend_on_the_order_of_lines() -> None:
    scene = np.random.default_rng(5).gamma(400, 1 / 1600, (70, 9, 5))
    shuffled = np.random.default_rng(6).permutation(70)
    assert np.array_equal(found_medians(scene)[:-1], found_medians(scene[shuffled])[:-1])


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
