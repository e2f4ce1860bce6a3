"""Simulated observations: same seed same bytes, planted classes where they belong, no hidden symmetry."""

import hashlib
import json
import logging
from argparse import Namespace
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import rasterio
from numpy.typing import NDArray
from pyproj import CRS
from scipy.ndimage import label as connected
from scipy.stats import kurtosis, skew

from gibbsite.errors import OutputError, SettingsError
from gibbsite.settings import Settings, Simulate
from gibbsite.simulate import observation
from gibbsite.simulate.detector import L
from gibbsite.simulate.minerals import NAMES
from gibbsite.simulate.terrain import CLASSES, N_UNITS, Terrain
from gibbsite.steps import simulate as step

SMALL = Simulate(lines=41, binning=10, latitude=18.2, longitude=-130.4)
DEMO = Simulate(lines=160, binning=5)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The observation of the demo."""
    folder = tmp_path_factory.mktemp("demo")
    observation.write_observation(DEMO, 1, folder)
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small observation, written in blocks of 32 lines."""
    folder = tmp_path_factory.mktemp("small")
    observation.write_observation(SMALL, 5, folder)
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def raster(path: Path) -> NDArray[np.uint8]:
    with rasterio.open(path) as source:
        return np.asarray(source.read(1))


def spectra(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "truth_spectra.csv", index_col="wavelength_um")


def band_depth(spectrum: pd.Series, left: float, centre: float, right: float) -> float:
    """Depth below the straight line between two shoulders."""
    at = lambda place: float(np.interp(place, spectrum.index, spectrum.to_numpy()))  # noqa: E731
    part = (centre - left) / (right - left)
    return 1.0 - at(centre) / ((1 - part) * at(left) + part * at(right))


def test_the_folder_holds_exactly_the_listed_files(small: Path) -> None:
    assert sorted(path.name for path in small.iterdir()) == sorted(observation.files(SMALL))


def test_same_seed_gives_same_bytes_for_any_block_of_lines(small: Path, tmp_path: Path) -> None:
    observation.write_observation(SMALL, 5, tmp_path / "again", block_lines=7)
    assert digests(tmp_path / "again") == digests(small)


def test_another_seed_gives_other_images_labels_and_truth(small: Path, tmp_path: Path) -> None:
    observation.write_observation(SMALL, 6, tmp_path)
    changed = {name for name, digest in digests(tmp_path).items() if digest != digests(small)[name]}
    fixed = {name for name in observation.files(SMALL) if name.endswith((".lbl", ".hdr")) or name.startswith("cdr")}
    assert changed == set(observation.files(SMALL)) - fixed


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    observation.write_observation(Simulate(lines=24, binning=10), 1, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(observation, "write_map", full)
    with pytest.raises(OutputError, match="No space left on device"):
        observation.write_observation(Simulate(lines=24, binning=10), 1, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_swath_over_the_pole_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="expected at most 89"):
        observation.write_observation(Simulate(lines=6000, binning=10, latitude=80), 1, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_step_writes_the_observation_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        step.run(Namespace(out=tmp_path), Settings(simulate=Simulate(lines=24, binning=10)))
    assert (tmp_path / "frt0000ace5_07_if166l_trr3.img").exists()
    assert "24 lines of 64 samples" in caplog.text


def test_planted_classes_have_their_shares(demo: Path) -> None:
    share = {item["name"]: item["share"] for item in json.loads((demo / "truth.json").read_text())["classes"]}
    for item in CLASSES:
        assert share[item.name] == pytest.approx(item.share, rel=0.25), item.name
    assert 0.0009 < share["alunite"] < 0.0013


def test_truth_json_counts_the_pixels_of_the_rasters(demo: Path) -> None:
    truth = json.loads((demo / "truth.json").read_text())
    for grid, key in (
        ("trr3_truth", "n_pixels"),
        ("mtr3_truth", "n_map_pixels"),
        ("trr3_labels", "n_labelled_pixels"),
    ):
        counts = np.bincount(raster(demo / f"{grid}.tif").ravel(), minlength=10)
        assert [item[key] for item in truth["classes"]] == counts[1:].tolist(), grid
    assert truth["roles"]["never labelled"] == ["jarosite"]
    assert truth["roles"]["rare"] == ["alunite"]


def test_the_rare_class_crops_out_in_few_contiguous_places(demo: Path) -> None:
    rare = raster(demo / "trr3_truth.tif") == 8
    places, n_places = connected(rare, structure=np.ones((3, 3)))
    # One outcrop per third of a swath width: the swath is 160 / 128 as long as wide.
    assert n_places == round(3 * 160 / 128)
    assert np.bincount(places.ravel())[1:].min() >= 3
    assert rare.sum() >= 20


def test_the_artefact_lives_in_four_detector_columns_and_comes_and_goes(demo: Path) -> None:
    artefact = raster(demo / "trr3_truth.tif") == 9
    columns = np.flatnonzero(artefact.any(axis=0))
    assert columns.size == 4
    assert artefact[:, columns].mean(axis=0).max() < 0.4
    source = np.fromfile(demo / "frt0000ace5_07_in166j_mtr3.img", "<f4").reshape(9, -1)[5]
    on_map = raster(demo / "mtr3_truth.tif").ravel() == 9
    assert set(source[on_map]) == set(columns.astype(float))


def test_labels_cover_a_third_of_the_known_classes_and_are_nearly_pure(demo: Path) -> None:
    for grid in ("trr3", "mtr3"):
        truth, labels = raster(demo / f"{grid}_truth.tif"), raster(demo / f"{grid}_labels.tif")
        for code, item in enumerate(CLASSES, 1):
            if item.role == "known":
                assert 0.25 < (labels == code).sum() / (truth == code).sum() < 0.5, item.name
                assert (truth[labels == code] == code).mean() > 0.96, item.name
            else:
                assert not (labels == code).any(), item.name


def test_polygons_name_only_known_classes_several_times_each(demo: Path) -> None:
    frame = gpd.read_file(demo / "labels.gpkg", engine="pyogrio")
    assert frame.crs.equals(CRS("IAU_2015:49900"), ignore_axis_order=True)
    assert frame.geometry.is_valid.all()
    counts = frame["class"].value_counts()
    assert set(counts.index) == {item.name for item in CLASSES if item.role == "known"}
    assert counts.min() >= 2


def test_polygons_lie_where_the_sensor_raster_says(demo: Path) -> None:
    labels = raster(demo / "trr3_labels.tif")
    plane = np.fromfile(demo / "frt0000ace5_07_de166l_ddr1.img", "<f4").reshape(14, 160, 128)
    frame = gpd.read_file(demo / "labels.gpkg", engine="pyogrio")
    names = {item.name: code for code, item in enumerate(CLASSES, 1)}
    inside = np.zeros(labels.shape, dtype=np.uint8)
    for name, shape in zip(frame["class"], frame.geometry, strict=True):
        points = gpd.GeoSeries.from_xy(plane[4].ravel(), plane[3].ravel())
        inside[points.within(shape).to_numpy().reshape(labels.shape)] = names[name]
    assert (inside == labels).mean() > 0.998


def test_no_flip_or_turn_of_the_truth_looks_like_the_truth(demo: Path) -> None:
    truth = raster(demo / "trr3_truth.tif")[:, 6:124]
    for name, other in (("line", truth[::-1]), ("sample", truth[:, ::-1]), ("both", truth[::-1, ::-1])):
        assert (other == truth).mean() < 0.4, name
    square = truth[:100, :100]
    assert (square == square.T).mean() < 0.4


def test_bands_of_the_mean_spectra_are_where_the_literature_has_them(demo: Path) -> None:
    table = spectra(demo)
    for name, (low, centre, high) in {
        "Fe-Mg smectite": (2.25, 2.30, 2.36),
        "Mg carbonate": (2.44, 2.51, 2.58),
        "Al phyllosilicate": (2.12, 2.205, 2.26),
        "polyhydrated sulfate": (1.80, 1.94, 2.10),
        "jarosite": (2.20, 2.265, 2.34),
        "alunite": (2.08, 2.17, 2.25),
        "artefact 2.1 um": (2.06, 2.11, 2.16),
    }.items():
        part = table[name][(table.index > low) & (table.index < high)]
        assert abs(float(part.idxmin()) - centre) < 0.015, name
        assert 0.05 < band_depth(table[name], low, centre, high) < 0.30, name


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_abundance_is_skewed_and_dust_cover_has_two_modes(seed: int) -> None:
    terrain = Terrain.of(DEMO, seed)
    line, sample = (part.ravel() for part in np.meshgrid(np.arange(160), np.arange(128), indexing="ij"))
    share = terrain.fractions(line, sample)
    abundance = terrain.abundances(line, sample, share)
    np.testing.assert_allclose(abundance.sum(axis=0), 1.0, rtol=1e-12)
    for code, item in enumerate(CLASSES[:N_UNITS]):
        rows = [NAMES.index(name) for name in dict.fromkeys(item.minerals)]
        assert skew(abundance[rows].sum(axis=0)[share[code] > 0.98]) > 0.5, item.name
    # Sarle's coefficient is 5/9 for a flat distribution and above it for two modes.
    dust = abundance[NAMES.index("dust")][share[0] > 0.98]
    assert (skew(dust) ** 2 + 1) / kurtosis(dust, fisher=False) > 5 / 9


def test_carbon_dioxide_is_in_the_sensor_image_and_nearly_gone_on_the_map(demo: Path) -> None:
    image = np.fromfile(demo / "frt0000ace5_07_if166l_trr3.img", "<f4")[: 160 * 438 * 128].reshape(160, 438, 128)
    wavelength = L.wavelength(5)[:, 64] / 1000
    near = (wavelength > 1.985) & (wavelength < 2.035)
    mean = np.median(image[:, :, 64], axis=0)
    assert abs(wavelength[near][mean[near].argmin()] - 2.007) < 0.007
    at = lambda place: mean[np.abs(wavelength - place).argmin()]  # noqa: E731
    assert at(2.007) / at(2.032) < 0.8
    plane = np.fromfile(demo / "frt0000ace5_07_de166l_ddr1.img", "<f4").reshape(14, 160, 128)
    deep = image[:, np.abs(wavelength - 2.007).argmin(), 60:68] / image[:, np.abs(wavelength - 2.032).argmin(), 60:68]
    assert np.corrcoef(deep.ravel(), plane[9, :, 60:68].ravel())[0, 1] > 0.2
    truth = raster(demo / "mtr3_truth.tif")
    mapped = np.memmap(demo / "frt0000ace5_07_if166j_mtr3.img", "<f4", "r", shape=(489, *truth.shape))
    nominal = spectra(demo).index.to_numpy()
    pick = lambda place: np.median(mapped[np.abs(nominal - place).argmin()][truth == 1])  # noqa: E731
    assert pick(2.007) / pick(2.032) > 0.97


def test_light_on_slopes_follows_the_incidence_of_the_backplanes(demo: Path) -> None:
    image = np.fromfile(demo / "frt0000ace5_07_if166l_trr3.img", "<f4")[: 160 * 438 * 128].reshape(160, 438, 128)
    cosine = np.cos(np.radians(np.fromfile(demo / "frt0000ace5_07_de166l_ddr1.img", "<f4").reshape(14, 160, 128)[5]))
    bland = raster(demo / "trr3_truth.tif") == 6
    bright = image[:, 380, :][bland]
    assert np.corrcoef(bright, cosine[bland])[0, 1] > 0.4
    assert (bright / cosine[bland]).std() / (bright / cosine[bland]).mean() < bright.std() / bright.mean()
