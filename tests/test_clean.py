"""Gaps, slant light and stripes: laws of the corrections, on lopsided scenes."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import f1_score

import handmade_cubes
from command_line import Run, gibbsite
from gibbsite import clean, features
from gibbsite.cleaned import CleanedScene, open_cleaned
from gibbsite.scene import Grid
from gibbsite.settings import Settings, Simulate
from gibbsite.simulate.detector import L, sensor_channels
from gibbsite.simulate.instrument import sensor_recorder
from handmade_cubes import Cube


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


def test_sampled_pixels_are_few_and_spread_over_each_column() -> None:
    column = np.broadcast_to(np.arange(5, dtype=np.int16), (1003, 5)).copy()
    column[:, 4], column[30:, 3] = -1, -1
    pixel = clean.sample_columns(column, most=100)
    line, owner = np.divmod(pixel, 5)
    assert (np.diff(pixel) > 0).all()
    assert np.bincount(owner).tolist() == [100, 100, 100, 30]
    assert np.diff(line[owner == 1]).min() >= 10
    assert np.diff(line[owner == 1]).max() <= 11
    assert clean.sample_columns(np.full((3, 2), -1)).size == 0


def test_neighbours_are_valid_pixels_of_a_line_whose_columns_differ_by_one() -> None:
    column = np.array([[4, 5, 6, 8, 7], [6, 6, 5, -1, 4], [0, 1, 2, 3, 4]], np.int16)
    valid = np.ones(column.shape, bool)
    valid[2, 2] = False
    expected = [[4, 5, -1, 7, -1], [-1, 5, -1, -1, -1], [0, -1, -1, 3, -1]]
    assert clean.neighbour_columns(column, valid).tolist() == expected


def test_ratios_are_missing_where_a_value_is_not_positive() -> None:
    above = np.array([[0.2, 0.2, -0.1, 0.0, np.nan]], np.float32)
    below = np.array([[0.1, 0.0, -0.1, 0.1, 0.1]], np.float32)
    np.testing.assert_array_equal(clean.ratios(above, below), np.array([[2.0, *[np.nan] * 4]], np.float32))


def found_gains(scene: np.ndarray, in_scene: np.ndarray | None = None) -> np.ndarray:
    """Gains (column, band) of a scene (line, column, band) read in full; column c is its c-th."""
    n_lines, n_columns, n_bands = scene.shape
    valid = np.broadcast_to(True if in_scene is None else in_scene, (n_lines, n_columns))
    pair = clean.neighbour_columns(np.broadcast_to(np.arange(n_columns), valid.shape), valid)
    pixel = clean.sample_columns(pair, most=n_lines)
    spectra = scene.reshape(-1, n_bands)
    ratio = clean.ratios(spectra[pixel + 1], spectra[pixel])
    return clean.column_gains(clean.column_medians(ratio, pair.ravel()[pixel], n_columns))


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
    np.testing.assert_allclose(clean.column_gains(ratio, 25), 1.0, atol=0.01)


def test_one_broken_column_does_not_bend_its_neighbours() -> None:
    level = np.linspace(0.2, 0.3, 80)[:, None] * (1 + np.random.default_rng(2).normal(0, 1e-4, (80, 1)))
    level[33] *= 1.8
    gains = clean.column_gains(np.vstack([level[1:] / level[:-1], [[np.nan]]]))
    assert gains[33, 0] == pytest.approx(1.8, rel=0.01)
    assert np.abs(np.delete(gains[:, 0], 33) - 1).max() < 0.002


def test_unknown_ratios_count_as_none_and_gains_beyond_2_are_no_stripes() -> None:
    ratio = np.ones((30, 3))
    ratio[:, 0] = np.nan
    ratio[11:14, 1], ratio[-1] = np.nan, np.nan
    ratio[3, 2], ratio[4, 2] = 10.0, 0.1
    gains = clean.column_gains(ratio)
    assert np.array_equal(gains[:, :2], np.ones((30, 2)))
    assert gains[4, 2] == 2.0


def test_gains_do_not_depend_on_how_bands_are_grouped() -> None:
    ratio = np.random.default_rng(9).uniform(0.9, 1.1, (50, 6))
    assert np.array_equal(clean.column_gains(ratio)[:, 2:5], clean.column_gains(ratio[:, 2:5]))


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
        gain.append(open_cleaned(path, Settings.model_validate({"clean": {"destripe": "auto"}})).gain)
    assert gain[0] is not None
    assert np.array_equal(*gain)
    assert gain[0][7].mean() == pytest.approx(1.1, abs=0.03)


# ---------------------------------------------------------------------------------------------------- simulated TRR3


SIMULATED = Simulate(lines=120, binning=5)


@pytest.fixture(scope="module")
def trr3(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A simulated observation with the cube of its TRR3 image: stripes of 0.4 %, no stronger than its noise."""
    folder = tmp_path_factory.mktemp("trr3")
    run = Run(folder, folder / "observation")
    settings = {"seed": 2, "simulate": SIMULATED.model_dump()}
    assert gibbsite("simulate", "--out", run.observation, settings=settings) == 0
    assert gibbsite("ingest", run.trr3, "--ddr", run.ddr, "--out", run.cube, settings=settings) == 0
    return run


def cleaned(run: Run, destripe: bool) -> CleanedScene:
    return open_cleaned(run.cube, Settings.model_validate({"clean": {"destripe": destripe}}))


def test_planted_stripes_of_a_simulated_scene_are_weakened(trr3: Run) -> None:
    scene = cleaned(trr3, destripe=True)
    assert scene.gain is not None
    rising = np.argsort(sensor_channels(L, SIMULATED.binning).wavelength.mean(axis=1))
    planted = sensor_recorder(L, SIMULATED, seed=2).gain[rising][scene.band].T
    seen = L.scene_columns(SIMULATED.binning)
    left = np.log(planted / scene.gain[: len(planted)])[seen]
    removed = 1 - left.var() / np.log(planted[seen]).var()
    assert removed > 0.3, f"{removed:.0%} of the stripes' variance was removed"


def test_destriping_does_not_blur_the_classes_of_a_simulated_scene(trr3: Run) -> None:
    plain, destriped = (separability(cleaned(trr3, destripe), trr3.observation) for destripe in (False, True))
    assert destriped > plain - 0.003, f"mean F1 of a linear classifier fell from {plain:.4f} to {destriped:.4f}"


def separability(scene: CleanedScene, observation: Path) -> float:
    """Mean F1 of a linear classifier that learns the true classes in strips of 8 lines and maps the others."""
    pixel, spectra = (np.concatenate(parts) for parts in zip(*scene.blocks(), strict=True))
    fences = features.fences(spectra)
    basis = features.fit_basis(features.band_sums(spectra, fences), fences, scene.wavelength, 10)
    with rasterio.open(observation / "trr3_truth.tif") as source:
        truth = source.read(1).ravel()[pixel]
    is_taught = (pixel // scene.cube.sizes["x"] // 8) % 2 == 0
    feature = features.project(spectra, basis)
    fitted = LinearDiscriminantAnalysis().fit(feature[is_taught & (truth > 0)], truth[is_taught & (truth > 0)])
    is_asked = ~is_taught & (truth > 0)
    return float(f1_score(truth[is_asked], fitted.predict(feature[is_asked]), average="macro"))
