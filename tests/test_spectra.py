"""Class-mean spectra against the plain mean over the map's pixels."""

import argparse
import csv
import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread
from numpy.testing import assert_allclose, assert_array_equal

from gibbsite import raster, store
from gibbsite.errors import InputError
from gibbsite.scene import open_cube
from gibbsite.settings import Settings
from gibbsite.spectra import (
    finish,
    gaps,
    open_gaps,
    positions_of,
    read_table,
    spread_out,
    sum_block,
    table_text,
)
from gibbsite.steps import spectra as step
from handmade_results import Results, make_results


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return make_results(tmp_path_factory.mktemp("results"))


def arguments(results: Results, out: Path) -> argparse.Namespace:
    return argparse.Namespace(
        cubes=[results.cube(scene) for scene in results.scenes],
        maps=[results.layer(scene, "class") for scene in results.scenes],
        model=results.model,
        out_dir=out,
    )


def test_class_means_equal_the_plain_mean_over_the_maps_pixels(results: Results, tmp_path: Path) -> None:
    step.run(arguments(results, tmp_path), Settings())
    found = read_table(tmp_path / "spectra.csv", results.classes)
    pixels, code = [], []
    for scene in results.scenes:
        cube = open_cube(results.cube(scene))
        is_valid = cube["valid"].values
        pixels.append(cube["reflectance"].values[is_valid][:, cube["good_band"].values].astype(float))
        code.append(results.code[scene][is_valid])
    every, codes = np.concatenate(pixels), np.concatenate(code)
    for k in range(1, 7):
        own = every[codes == k]
        assert_allclose(found.mean[k - 1], np.nanmean(own, axis=0), rtol=2e-6)
        assert_allclose(found.std[k - 1], np.nanstd(own, axis=0), rtol=2e-5)
        assert_array_equal(found.n_pixels[k - 1], np.isfinite(own).sum(axis=0))
        assert_allclose(found.ratio[k - 1], np.nanmean(own, axis=0) / np.nanmean(every, axis=0), rtol=2e-6)
    assert len(set(found.n_pixels.sum(axis=0))) > 1, "the missing values of one band must not count there"


def test_bad_bands_and_invalid_pixels_stay_out(results: Results, tmp_path: Path) -> None:
    step.run(arguments(results, tmp_path), Settings())
    with (tmp_path / "spectra.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["wavelength_um"]) == pytest.approx(1.076)
    assert max(float(row["mean"]) for row in rows) < 1.0
    assert {row["name"] for row in rows} == {item["name"] for item in results.classes}
    assert {row["is_known"] for row in rows if row["name"].startswith("new")} == {"false"}


def test_a_rerun_gives_the_same_bytes(results: Results, tmp_path: Path) -> None:
    digests = set()
    for name in ("one", "two"):
        step.run(arguments(results, tmp_path / name), Settings())
        files = sorted((tmp_path / name).iterdir())
        assert [file.name for file in files] == ["spectra.csv", "spectra.png"]
        digests.add(tuple(hashlib.sha256(file.read_bytes()).hexdigest() for file in files))
    assert len(digests) == 1


def test_the_figure_is_wide_and_shows_the_class_colours(results: Results, tmp_path: Path) -> None:
    step.run(arguments(results, tmp_path), Settings())
    picture = np.rint(imread(tmp_path / "spectra.png")[..., :3] * 255).astype(int)
    assert picture.shape[1] >= 1600
    for item in results.classes:
        own = (picture == raster.rgba(str(item["colour"]))[:3]).all(axis=-1)
        assert own.sum() > 200, f"{item['name']} is not drawn in its colour"


def test_maps_in_the_wrong_order_are_refused(results: Results, tmp_path: Path) -> None:
    args = arguments(results, tmp_path)
    args.maps.reverse()
    with pytest.raises(InputError, match="give cubes and maps in the same order"):
        step.run(args, Settings())
    args.maps.pop()
    with pytest.raises(InputError, match="found 2 cubes and 1 class maps"):
        step.run(args, Settings())
    assert not any(tmp_path.iterdir())


def test_scenes_of_different_sensors_are_refused(results: Results, tmp_path: Path) -> None:
    args = arguments(results, tmp_path / "out")
    other = tmp_path / "other.zarr"
    cube = open_cube(args.cubes[1])
    with store.create(other, "cube", **{key: cube.attrs[key] for key in ("scene", "grid", "provenance")}) as group:
        for name in ("reflectance", "good_band", "valid", "detector_column"):
            store.add_array(group, name, cube[name].dims, cube[name].values)
        store.add_array(group, "wavelength", ("band",), cube["wavelength"].values + 0.02)
    args.cubes[1] = other
    with pytest.raises(InputError, match=r"differ from the .* by more than half a band"):
        step.run(args, Settings())


def test_a_map_of_another_model_is_refused(results: Results) -> None:
    with pytest.raises(InputError, match="found class code 9, but the model's codes end at 6"):
        positions_of(np.array([[0, 3], [9, 1]]), results.classes, "S_class.tif")


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 4), st.integers(0, 2**32))
def test_sums_of_a_block_equal_the_sum_over_its_parts(n_first: int, n_second: int, n_classes: int, seed: int) -> None:
    random = np.random.Generator(np.random.Philox(seed))
    spectrum = random.normal(0.2, 0.05, (n_first + n_second, 3))
    spectrum[random.uniform(size=spectrum.shape) < 0.1] = np.nan
    position = random.integers(0, n_classes + 1, n_first + n_second)
    whole = sum_block(spectrum, position, n_classes)
    parts = sum_block(spectrum[:n_first], position[:n_first], n_classes) + sum_block(
        spectrum[n_first:], position[n_first:], n_classes
    )
    assert_array_equal(parts.n, whole.n)
    assert_allclose(parts.total, whole.total, atol=1e-12)
    assert_allclose(parts.square, whole.square, atol=1e-12)


def test_a_class_without_pixels_has_empty_fields_and_one_pixel_no_spread(tmp_path: Path) -> None:
    spectrum = np.array([[0.3, 0.1], [0.5, np.nan]])
    classes = [{"code": k, "name": f"c{k}", "is_known": k < 3} for k in (1, 2, 3)]
    spectra = finish(sum_block(spectrum, np.array([2, 0]), 3), np.array([1.0, 2.0]))
    assert_array_equal(spectra.std[1], [0.0, 0.0])
    assert_allclose(spectra.ratio[1], [0.75, 1.0])
    text = table_text(spectra, classes)
    assert "1,c1,true,1.000000,,,0,\n" in text
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    found = read_table(tmp_path / "t.csv", classes)
    assert_array_equal(found.mean, spectra.mean)
    assert_array_equal(found.n_pixels, [[0, 0], [1, 1], [0, 0]])


def test_a_strange_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "spectra.csv"
    with pytest.raises(InputError, match="cannot read the spectra"):
        read_table(path, [{"code": 1}])
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="not a table of the spectra"):
        read_table(path, [{"code": 1}])


def test_lines_break_at_gaps_and_nowhere_else() -> None:
    wavelength = np.array([1.00, 1.01, 1.02, 1.04, 1.05, 1.20, 1.21])
    assert gaps(wavelength).tolist() == [5]
    x, y = open_gaps(wavelength, np.arange(14.0).reshape(2, 7))
    assert np.isnan(y[:, 5]).all()
    assert np.isnan(y).sum() == 2
    assert x[5] == pytest.approx(1.125)
    assert gaps(np.array([2.0])).size == gaps(np.array([])).size == 0


def test_labels_are_moved_apart_in_their_order() -> None:
    y = np.array([0.50, 0.1, 0.51, 0.49, 0.9])
    moved = spread_out(y, 0.1, (0.0, 1.0))
    assert_array_equal(np.argsort(moved), np.argsort(y))
    assert np.diff(np.sort(moved)).min() >= 0.1 * (1 - 1e-6)
    assert moved[1] == 0.1


@pytest.mark.parametrize("n", [0, 1, 6, 30])
def test_labels_stay_within_their_limits(n: int) -> None:
    moved = spread_out(np.linspace(0.97, 1.04, n), 0.1, (0.2, 1.0))
    assert moved.size == n
    assert ((moved >= 0.2) & (moved <= 1.0)).all()
    if 1 < n < 8:
        assert np.diff(np.sort(moved)).min() >= 0.1 * (1 - 1e-3)
