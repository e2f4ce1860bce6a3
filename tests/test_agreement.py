"""One observation, two products: as TRR3 in the sensor's space and as MTR3 on the map, it gives the same map.

The two differ in everything but the ground: detector rows or joined detectors, I/F with or without the light's angle,
stripes or none, ground points or a projection.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from command_line import Run, gibbsite
from gibbsite import envi, image, raster, scene
from gibbsite.mars import coordinate_system, to_planetocentric

SETTINGS = {
    "simulate": {"lines": 120, "binning": 10},
    "fit": {"sweeps": 40, "chains": 1, "pre_sweeps": 20, "start_components": 48},
    "select": {"polish_sweeps": 5},
    "cluster": {"kind": "none", "threads": 2},
}


@dataclass(frozen=True)
class Pair:
    """The same observation mapped from its two products."""

    trr3: Run
    mtr3: Run

    def origin(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Line and sample of the sensor behind each pixel of the map, and whether there is one."""
        path = image.locate(self.mtr3.mtr3.with_name(self.mtr3.mtr3.name.replace("_if", "_in")))
        header = envi.read_header(path)
        stored = image.open_pixels(envi.image_file(header), header.layout)
        line, sample = (stored[:, :, envi.band_named(header, name)] for name in ("IR Line", "IR Sample"))
        is_seen = (line != 65535) & (sample != 65535)
        return np.where(is_seen, line, 0).astype(int), np.where(is_seen, sample, 0).astype(int), is_seen


def map_scene(run: Run, seed: int) -> None:
    """Take a run's scene from archive files to maps and scores."""
    settings = SETTINGS | {"seed": seed}
    if run.scene == "trr3":
        ingest = ["ingest", run.trr3, "--ddr", run.ddr, "--out", run.cube]
    else:
        ingest = ["ingest", run.mtr3, "--out", run.cube]
    assert gibbsite(*ingest, settings=settings) == 0
    for step in ("basis", "features", "labels", "fit", "select", "map"):
        assert gibbsite(*run.words(step, run), settings=settings) == 0, step
    truth = run.observation / f"{run.scene}_truth.tif"
    words = ["--cube", run.cube, "--labels", run.labels, "--raster", truth, "--out", run.truth]
    assert gibbsite("truth", *words, settings=settings) == 0
    assert gibbsite(*run.words("evaluate", run), settings=settings) == 0


def map_pair(folder: Path, seed: int) -> Pair:
    observation = folder / "observation"
    assert gibbsite("simulate", "--out", observation, settings=SETTINGS | {"seed": seed}) == 0
    pair = Pair(*(Run(folder / name, observation, name) for name in ("trr3", "mtr3")))
    map_scene(pair.trr3, seed)
    map_scene(pair.mtr3, seed)
    return pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> Pair:
    return map_pair(tmp_path_factory.mktemp("pair"), seed=1)


def known_names(run: Run) -> NDArray[np.str_]:
    """Name of the known class of each pixel of a class map, empty where it is new or there is none."""
    names = raster.class_names(run.layer("class"))
    table = np.array([names.get(code, "") for code in range(max(names) + 1)])
    table[[name.startswith("new-") for name in table]] = ""
    return table[raster.read_band(run.layer("class"))]


def agreement(pair: Pair) -> tuple[float, float]:
    """Of the ground that both maps give to known classes: the share given to the same, and how much that is of all."""
    line, sample, is_seen = pair.origin()
    on_map, in_sensor = known_names(pair.mtr3), known_names(pair.trr3)[line, sample]
    both = is_seen & (on_map != "") & (in_sensor != "")
    return float((on_map == in_sensor)[both].mean()), float(both.sum() / is_seen.sum())


# Measured over seeds 1, 2, 3 (lines 120, binning 10, 40 sweeps):
#   same known class, where both maps give a known one   1.000  1.000  1.000
#   ground that both maps give to known classes           0.573  0.468  0.519
#   the same with the sensor's map moved by 3 pixels       0.80 (seed 1, lines and samples alike)
#   jarosite, never labelled: overlap of the new classes   0.574  0.646  0.447 (intersection over union)
# So few sweeps leave mixed pixels at the borders in small new classes of their own, which differ between the maps;
# what they call by a known name must not. Limits lie well below what was seen and far above a map that is shifted.
LEAST_AGREEMENT = 0.98
LEAST_SHARED = 0.35
MOST_WHEN_MOVED = 0.90
LEAST_OVERLAP = 0.30


def test_both_maps_give_the_same_ground_the_same_known_class(pair):
    share_same, share_known = agreement(pair)
    assert share_known >= LEAST_SHARED
    assert share_same >= LEAST_AGREEMENT


@pytest.mark.parametrize("shift", [(3, 0), (-3, 0), (0, 3), (0, -3)])
def test_the_agreement_would_not_survive_a_shift_of_three_pixels(pair, shift):
    line, sample, is_seen = pair.origin()
    on_map, in_sensor = known_names(pair.mtr3), known_names(pair.trr3)
    height, width = in_sensor.shape
    moved = in_sensor[np.clip(line + shift[0], 0, height - 1), np.clip(sample + shift[1], 0, width - 1)]
    both = is_seen & (on_map != "") & (moved != "")
    assert (on_map == moved)[both].mean() <= MOST_WHEN_MOVED


def test_every_known_class_is_on_both_maps(pair):
    names = set(np.unique(known_names(pair.trr3))) - {""}
    assert names == set(np.unique(known_names(pair.mtr3))) - {""}
    assert len(names) == 6


def test_both_maps_discover_the_never_labelled_mineral_in_the_same_place(pair):
    line, sample, is_seen = pair.origin()
    on_map, in_sensor = (matched_with("jarosite", run) for run in (pair.mtr3, pair.trr3))
    in_sensor = in_sensor[line, sample] & is_seen
    assert (on_map & in_sensor).sum() >= LEAST_OVERLAP * (on_map | in_sensor).sum()


def matched_with(mineral: str, run: Run) -> NDArray[np.bool_]:
    """Where the map has the class that the evaluation matched with a mineral; a new one, as it was never labelled."""
    scores = json.loads(run.evaluation.read_text())["classes"]
    (score,) = [item for item in scores if item["name"] == mineral]
    assert not score["is_observed"]
    assert score["matched"].startswith("new-")
    codes = {name: code for code, name in raster.class_names(run.layer("class")).items()}
    return raster.read_band(run.layer("class")) == codes[score["matched"]]


def test_a_pixel_of_the_map_lies_where_the_geometry_puts_its_line_and_sample(pair):
    line, sample, is_seen = pair.origin()
    grid = raster.read_grid(pair.mtr3.layer("class"))
    row, col = np.nonzero(is_seen)
    a, b, c, d, e, f = grid.transform
    x, y = a * (col + 0.5) + b * (row + 0.5) + c, d * (col + 0.5) + e * (row + 0.5) + f
    longitude, latitude = to_planetocentric(x, y, coordinate_system(grid.crs, "the map"))
    cube = scene.open_cube(pair.trr3.cube)
    seen = line[is_seen], sample[is_seen]
    east = (cube["longitude"].values[seen] - longitude + 180.0) % 360.0 - 180.0
    north = cube["latitude"].values[seen] - latitude
    # The map takes the nearest spectrum: half a pixel away in each direction at most, and some for the map's stretch.
    degrees = a / 59_275.0  # metres per degree on Mars
    apart = np.hypot(east * np.cos(np.radians(latitude)), north) / degrees
    assert len(apart) > 5000
    assert apart.max() <= 0.80
    assert apart.mean() > 0.2, "too good to be true: the map is not a resampled one"


def test_ground_points_of_the_sensor_map_lie_where_the_geometry_has_them(pair):
    grid = raster.read_grid(pair.trr3.layer("class"))
    cube = scene.open_cube(pair.trr3.cube)
    row, col, longitude, latitude = np.array(grid.ground_points).T
    at = np.rint(row).astype(int), np.rint(col).astype(int)
    np.testing.assert_allclose(cube["longitude"].values[at], longitude, atol=1e-6)
    np.testing.assert_allclose(cube["latitude"].values[at], latitude, atol=1e-6)
    assert len(row) >= 16
