"""Class polygons: outlines of the patches, in all kinds of coordinates."""

from dataclasses import replace
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from numpy.testing import assert_allclose

from gibbsite import patches, polygons
from gibbsite.patches import find_patches
from gibbsite.polygons import frames
from gibbsite.scene import Grid
from handmade_results import class_map, ground_truth, map_grid, polar_grid, sensor_grid

CLASSES = [{"code": k, "name": f"class {k}", "is_known": k != 3} for k in range(1, 7)]
SMALL = np.array(
    [
        [1, 1, 1, 1, 2],
        [1, 3, 1, 1, 2],
        [1, 1, 1, 2, 2],
        [0, 0, 1, 2, 2],
        [3, 0, 1, 1, 1],
        [0, 0, 2, 2, 1],
    ],
    dtype=np.uint16,
)


def tables_of(code: np.ndarray, grid: Grid, folder: Path) -> list[gpd.GeoDataFrame]:
    probability = np.where(code > 0, np.arange(code.size).reshape(code.shape) / code.size, np.nan)
    found = find_patches(code, folder)
    return list(frames(found, patches.measure(found, probability, grid), grid, CLASSES, folder))


def frame_of(code: np.ndarray, grid: Grid, folder: Path) -> gpd.GeoDataFrame:
    return pd.concat(tables_of(code, grid, folder), ignore_index=True)


def test_each_patch_has_its_class_size_and_mean_probability(tmp_path: Path) -> None:
    frame = frame_of(SMALL, map_grid(6, 5), tmp_path)
    assert frame["code"].tolist() == [1, 2, 3, 3, 2], "by the row they begin in"
    assert frame["n_pixels"].tolist() == [15, 6, 1, 1, 2]
    assert frame["is_known"].tolist() == [True, True, False, False, True]
    # The map's pixels are 18 m squares; on the sphere they are by cos(latitude) / cos(20°) smaller.
    shrink = np.cos(1_250_077.0 / 3_394_839.8133) / np.cos(np.radians(20.0))
    assert_allclose(frame["area_m2"], 324.0 * shrink * frame["n_pixels"], rtol=1e-4)
    assert_allclose(frame["mean_probability"].iloc[2:4], [6 / 30, 20 / 30])
    assert_allclose(frame.geometry.area, 324.0 * frame["n_pixels"])


@pytest.mark.parametrize("seed", range(3))
def test_map_polygons_cover_the_mapped_pixels_exactly(tmp_path: Path, seed: int) -> None:
    code = class_map(47, 31, 6, seed)
    frame = frame_of(code, map_grid(47, 31), tmp_path)
    assert frame.is_valid.all()
    assert frame["n_pixels"].sum() == (code > 0).sum()
    assert_allclose(frame.geometry.area.sum(), 324.0 * (code > 0).sum())
    assert_allclose(shapely.union_all(frame.geometry).area, 324.0 * (code > 0).sum(), rtol=1e-9)
    row, col = 30, 7
    at = shapely.Point(4_211.0 + 18 * (col + 0.5), -1_250_077.0 - 18 * (row + 0.5))
    assert frame[frame.contains(at)]["code"].tolist() == [code[row, col]]


def test_sensor_polygons_lie_on_the_ground_without_gaps_or_overlaps(tmp_path: Path) -> None:
    code = class_map(47, 31, 6, 5)
    frame = frame_of(code, sensor_grid(47, 31), tmp_path)
    assert frame.is_valid.all()
    assert_allclose(shapely.union_all(frame.geometry.values).area, shapely.area(frame.geometry.values).sum(), rtol=1e-9)
    for row, col in ((40, 3), (11, 29), (25, 16)):
        at = shapely.Point(*ground_truth(row + 0.5, col + 0.5, 74.7, -21.3))
        assert frame[frame.contains(at)]["code"].tolist() == [code[row, col]]


def test_batches_of_patches_are_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, grid = class_map(60, 45, 6, 9), sensor_grid(60, 45)
    whole = frame_of(code, grid, tmp_path)
    monkeypatch.setattr(polygons, "BATCH_PATCHES", 3)
    tables = tables_of(code, grid, tmp_path)
    assert len(tables) > 10
    assert max(map(len, tables)) <= 3
    joined = pd.concat(tables, ignore_index=True)
    assert joined["code"].tolist() == whole["code"].tolist()
    assert joined.geometry.geom_equals(whole.geometry).all()


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["north", "south"])
def test_polygons_around_a_pole_are_whole(tmp_path: Path, sign: float) -> None:
    code = class_map(60, 40, 3, 2)
    frame = frame_of(code, polar_grid(60, 40, sign), tmp_path)
    assert frame.is_valid.all()
    assert_allclose(frame.geometry.area, frame["area_m2"], rtol=1e-3)
    at_pole = frame[frame.intersects(shapely.Point(0.0, 0.0))]
    assert code[30, 20] in at_pole["code"].tolist()


def test_polygons_across_the_meridian_are_whole(tmp_path: Path) -> None:
    code = class_map(47, 31, 6, 5)
    grid = sensor_grid(47, 31, 179.999, 12.0)
    wrapped = tuple((r, c, (lon + 180) % 360 - 180, lat) for r, c, lon, lat in grid.ground_points)
    frame = frame_of(code, replace(grid, ground_points=wrapped), tmp_path)
    assert frame.is_valid.all()
    assert np.ptp(frame.total_bounds[[0, 2]]) < 0.05, "no polygon reaches once around the planet"


def test_an_empty_map_gives_an_empty_table(tmp_path: Path) -> None:
    frame = frame_of(np.zeros((4, 7), np.uint16), map_grid(4, 7), tmp_path)
    assert len(frame) == 0
    assert "geometry" in frame


def test_a_scene_without_reference_gets_polygons_in_pixels_and_no_area(tmp_path: Path) -> None:
    frame = frame_of(SMALL, Grid(6, 5), tmp_path)
    assert frame.crs is None
    assert frame.total_bounds.tolist() == [0.0, -6.0, 5.0, 0.0]
    assert frame["area_m2"].isna().all()
