"""Class spectra against plain numpy over the map's pixels, and back from every file that holds them."""

import argparse
import csv
import hashlib
import warnings
from pathlib import Path

import numpy as np
import pytest
import spectral
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from gibbsite import raster, store
from gibbsite.continuum import gaps
from gibbsite.errors import InputError
from gibbsite.scene import open_cube
from gibbsite.settings import Settings, Spectra
from gibbsite.spectra import ClassSpectra, ClassSums, Sample, finish, open_gaps, positions_of, spread_out
from gibbsite.spectra_files import read_table, table_text, write_library
from gibbsite.steps import spectra as step
from handmade_results import NAMES, Results, make_results

FILES = [
    *(f"spectra.{kind}" for kind in ("csv", "hdr", "nc", "pdf", "png", "sli")),
    *(f"spectra_{quantity}.{kind}" for quantity in ("continuum_removed", "ratio") for kind in ("hdr", "sli")),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return make_results(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def written(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("spectra")
    step.run(arguments(results, out), Settings())
    return out


def arguments(results: Results, out: Path) -> argparse.Namespace:
    return argparse.Namespace(
        cubes=[results.cube(scene) for scene in results.scenes],
        maps=[results.layer(scene, "class") for scene in results.scenes],
        model=results.model,
        out_dir=out,
    )


def pixels_of(results: Results) -> list[tuple[NDArray[np.float64], NDArray[np.uint16], NDArray[np.int16]]]:
    """Of each scene: spectra (good bands), class codes and detector columns of its valid pixels."""
    found = []
    for scene in results.scenes:
        cube = open_cube(results.cube(scene))
        valid = cube["valid"].values
        spectra = cube["reflectance"].values[valid][:, cube["good_band"].values].astype(float)
        found.append((spectra, results.code[scene][valid], cube["detector_column"].values[valid]))
    return found


def plain_bland(wavelength: NDArray[np.float64], spectra: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far spectra are from a line, said with polyfit: the slow twin of `bland.blandness`."""
    used = ~((wavelength > 1.94) & (wavelength < 2.09))
    cell = np.floor(wavelength[used] / 0.04)
    x = np.array([wavelength[used][cell == c].mean() for c in np.unique(cell)])
    score = []
    for spectrum in spectra[:, used]:
        y = np.array([np.nanmean(spectrum[cell == c]) for c in np.unique(cell)])
        rest = y - np.polyval(np.polyfit(x, y, 1), x)
        score.append(np.sqrt(np.mean(rest**2)) / y.mean())
    return np.array(score)


def test_class_means_spreads_and_quantiles_equal_those_over_the_maps_pixels(results: Results, written: Path) -> None:
    found = read_table(written / "spectra.csv", results.classes)
    parts = pixels_of(results)
    every, codes = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    for k in range(len(NAMES)):
        own = every[codes == k + 1]
        assert_allclose(found.reflectance.mean[k], np.nanmean(own, axis=0), rtol=2e-6)
        assert_allclose(found.reflectance.std[k], np.nanstd(own, axis=0), rtol=2e-5)
        assert_allclose(found.reflectance.low[k], np.nanquantile(own, 0.1, axis=0), rtol=2e-6)
        assert_allclose(found.reflectance.high[k], np.nanquantile(own, 0.9, axis=0), rtol=2e-6)
        assert_array_equal(found.n_pixels[k], np.isfinite(own).sum(axis=0))
    assert len(set(found.n_pixels.sum(axis=0))) > 1, "the missing values of one band must not count there"


def test_ratios_are_to_the_blandest_pixels_of_the_same_detector_column(results: Results, written: Path) -> None:
    found = read_table(written / "spectra.csv", results.classes)
    ratio, codes = [], []
    cube = open_cube(results.cube(results.scenes[0]))
    wavelength = cube["wavelength"].values[cube["good_band"].values]
    for spectra, code, column in pixels_of(results):
        score = plain_bland(wavelength, spectra)
        lowest = {}
        for c in np.unique(column):
            mine = np.flatnonzero(column == c)
            if mine.size >= 20:
                lowest[c] = mine[np.argsort(score[mine], kind="stable")[: max(3, int(np.ceil(0.05 * mine.size)))]]
        all_bland = np.nanmean(spectra[np.concatenate(list(lowest.values()))], axis=0)
        for c in np.unique(column):
            below = np.nanmean(spectra[lowest[c]], axis=0) if c in lowest else all_bland
            ratio.append(spectra[column == c] / below)
            codes.append(code[column == c])
    every, of_class = np.concatenate(ratio), np.concatenate(codes)
    for k in range(len(NAMES)):
        assert_allclose(found.ratio.mean[k], np.nanmean(every[of_class == k + 1], axis=0), rtol=1e-5)


def test_bad_bands_and_invalid_pixels_stay_out(results: Results, written: Path) -> None:
    with (written / "spectra.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[0]["wavelength_um"]) == pytest.approx(1.076)
    assert max(float(row["mean"]) for row in rows) < 1.0
    assert {row["name"] for row in rows} == {item["name"] for item in results.classes}
    assert {row["is_known"] for row in rows if row["name"].startswith("new")} == {"false"}


def test_a_rerun_gives_the_same_bytes(results: Results, written: Path, tmp_path: Path) -> None:
    step.run(arguments(results, tmp_path), Settings())
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(FILES)
    for name in FILES:
        digests = {hashlib.sha256((folder / name).read_bytes()).hexdigest() for folder in (written, tmp_path)}
        assert len(digests) == 1, name


def test_the_result_does_not_depend_on_the_chunks_of_the_cube(results: Results, written: Path, tmp_path: Path) -> None:
    args = arguments(results, tmp_path / "out")
    for n, path in enumerate(args.cubes):
        cube = open_cube(path)
        args.cubes[n] = tmp_path / path.name
        facts = {key: cube.attrs[key] for key in ("scene", "grid", "provenance")}
        with store.create(args.cubes[n], "cube", **facts) as group:
            for name in ("wavelength", "good_band", "valid", "detector_column"):
                store.add_array(group, name, cube[name].dims, cube[name].values)
            chunks = (13, cube.sizes["x"], cube.sizes["band"])
            store.add_array(group, "reflectance", ("y", "x", "band"), cube["reflectance"].values, chunks=chunks)
    step.run(args, Settings())
    for name in ("spectra.csv", "spectra.nc"):
        assert (tmp_path / "out" / name).read_bytes() == (written / name).read_bytes()


def test_spectral_python_reads_the_libraries(results: Results, written: Path) -> None:
    found = read_table(written / "spectra.csv", results.classes)
    expected = {
        "spectra": found.reflectance.mean,
        "spectra_ratio": found.ratio.mean,
        "spectra_continuum_removed": found.ratio.removed,
    }
    for name, values in expected.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library = spectral.envi.open(written / f"{name}.hdr", written / f"{name}.sli")
        assert_allclose(library.spectra, values, rtol=1e-6)
        assert_allclose(library.bands.centers, found.wavelength, atol=1e-6)
        assert library.bands.band_unit == "Micrometers"
        assert library.names == list(NAMES)


def test_names_with_commas_and_braces_do_not_break_a_library(tmp_path: Path) -> None:
    classes = [{"name": "a, b {c}"}, {"name": "../Ätna\n"}]
    write_library(tmp_path / "x.sli", np.array([1.0, 1.1, 1.2]), np.arange(6.0).reshape(2, 3), classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = spectral.envi.open(tmp_path / "x.hdr", tmp_path / "x.sli")
    assert library.names == ["a b 'c'", "../Ätna"]
    assert_array_equal(library.spectra, np.arange(6.0).reshape(2, 3))


def test_netcdf_holds_all_numbers_and_no_time(results: Results, written: Path) -> None:
    found = read_table(written / "spectra.csv", results.classes)
    with xr.open_dataset(written / "spectra.nc", engine="scipy") as dataset:
        assert dataset["name"].values.tolist() == list(NAMES)
        assert_allclose(dataset["reflectance_mean"].values, found.reflectance.mean, rtol=1e-6)
        assert_allclose(dataset["ratio_high"].values, found.ratio.high, rtol=1e-6)
        assert_allclose(dataset["wavelength"].values, found.wavelength, atol=1e-6)
        assert dataset.attrs == {"low_quantile": 0.1, "high_quantile": 0.9}


def test_the_figure_is_wide_and_shows_the_class_colours(results: Results, written: Path) -> None:
    picture = np.rint(imread(written / "spectra.png")[..., :3] * 255).astype(int)
    assert picture.shape[1] >= 1600
    for item in results.classes:
        own = (picture == raster.rgba(str(item["colour"]))[:3]).all(axis=-1)
        assert own.sum() > 200, f"{item['name']} is not drawn in its colour"
    document = (written / "spectra.pdf").read_bytes()
    assert document.startswith(b"%PDF")
    assert b"CreationDate" not in document


def test_quantiles_must_rise() -> None:
    with pytest.raises(ValueError, match="quantiles must rise within 0 and 1"):
        Spectra(quantiles=(0.9, 0.1))


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


@given(st.integers(1, 4), st.integers(0, 12), st.integers(0, 2**32))
def test_sums_over_lines_are_those_over_all_pixels(n_lines: int, n_pixels: int, seed: int) -> None:
    random = np.random.Generator(np.random.Philox(seed))
    spectrum = random.normal(0.2, 0.05, (n_lines, n_pixels, 3))
    spectrum[random.uniform(size=spectrum.shape) < 0.1] = np.nan
    position = random.integers(0, 4, (n_lines, n_pixels))
    sums = ClassSums.none(3, 3)
    for line, own in zip(spectrum, position, strict=True):
        sums.add(line, own)
    for k in range(3):
        mine = spectrum[position == k + 1]
        assert_array_equal(sums.n[k], np.isfinite(mine).sum(axis=0))
        assert_allclose(sums.total[k], np.nansum(mine, axis=0), atol=1e-12)
        assert_allclose(sums.square[k], np.nansum(mine**2, axis=0), atol=1e-12)


@pytest.mark.parametrize("size", [1, 7, 50, 51, 1000])
def test_a_sample_is_exact_when_it_can_be_and_even_when_not(size: int) -> None:
    sample = Sample(np.array([size]), np.zeros(1, np.int64), 50, [[]])
    for rows in np.array_split(np.arange(float(size))[:, None], 1 + size // 9):
        sample.add(rows, np.ones(len(rows), np.intp))
    taken = np.concatenate(sample.rows[0])[:, 0]
    assert len(taken) == min(size, 50)
    assert np.diff(taken).max(initial=0) <= np.ceil(size / 50)
    low, high = sample.quantiles(1, (0.1, 0.9))
    if size <= 50:
        assert_allclose([low[0, 0], high[0, 0]], np.quantile(np.arange(size), (0.1, 0.9)))
    assert abs(low[0, 0] - 0.1 * (size - 1)) <= size / 25


def test_a_class_without_pixels_has_empty_fields_and_one_pixel_no_spread(tmp_path: Path) -> None:
    line, position = np.array([[0.3, 0.1], [0.5, np.nan]]), np.array([2, 0])
    sums, sample = ClassSums.none(3, 2), Sample.of(np.array([0, 1, 0]), 2)
    sums.add(line, position)
    sample.add(line.astype(np.float32), position)
    wavelength = np.array([1.0, 2.0])
    found = finish(sums, sample.quantiles(2, (0.1, 0.9)), wavelength, (1.0, 2.6))
    assert_array_equal(found.std[1], [0.0, 0.0])
    assert_allclose(found.low[1], found.high[1])
    spectra = ClassSpectra(wavelength, sums.n, found, found)
    classes = [{"code": k, "name": f"c{k}", "is_known": k < 3} for k in (1, 2, 3)]
    text = table_text(spectra, classes)
    assert "1,c1,true,1.000000,0,,,,,,,,,,\n" in text
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    again = read_table(tmp_path / "t.csv", classes)
    assert_array_equal(again.reflectance.mean, found.mean)
    assert_array_equal(again.n_pixels, [[0, 0], [1, 1], [0, 0]])


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
