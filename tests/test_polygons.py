"""Class polygons: patches of one class, without the specks."""

import geopandas as gpd
import numpy as np
import pytest
import shapely
from numpy.testing import assert_allclose, assert_array_equal

from gibbsite.polygons import LAYER, class_polygons, geopackage, label_patches, outline, without_specks
from gibbsite.scene import Grid
from handmade_results import class_map, ground_truth, map_grid, sensor_grid

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


def frame_of(code: np.ndarray, grid: Grid) -> gpd.GeoDataFrame:
    patch, code_of_patch = label_patches(code)
    layers = {
        "area": np.full(code.shape, 2.5),
        "probability": np.where(code > 0, np.arange(code.size).reshape(code.shape) / code.size, np.nan),
    }
    return class_polygons(patch, code_of_patch, layers, grid, CLASSES)


def test_specks_go_to_their_neighbour_and_missing_pixels_stay() -> None:
    expected = SMALL.copy()
    expected[1, 1] = 1
    expected[5, 2:4] = 1
    assert_array_equal(without_specks(SMALL, 3), expected)
    assert_array_equal(without_specks(SMALL, 1), SMALL)


def test_specks_that_touch_only_specks_are_merged_in_the_end() -> None:
    code = class_map(40, 30, 6, 3)
    random = np.random.Generator(np.random.Philox(8))
    code[10:20, 5:15] = random.integers(1, 7, (10, 10))
    sieved = without_specks(code, 4)
    assert_array_equal(sieved == 0, code == 0)
    assert_array_equal(without_specks(sieved, 4), sieved, err_msg="a second run must change nothing")


def test_patches_share_sides_not_corners() -> None:
    patch, code_of_patch = label_patches(np.array([[1, 2], [2, 1]], dtype=np.uint16))
    assert code_of_patch.tolist() == [1, 1, 2, 2]
    assert sorted(patch.ravel().tolist()) == [1, 2, 3, 4]


def test_each_patch_has_its_class_size_and_mean_probability() -> None:
    frame = frame_of(SMALL, map_grid(6, 5))
    assert frame["code"].tolist() == [1, 2, 2, 3, 3]
    assert frame["n_pixels"].tolist() == [15, 6, 2, 1, 1]
    assert frame["is_known"].tolist() == [True, True, True, False, False]
    assert_allclose(frame["area_m2"], 2.5 * frame["n_pixels"])
    assert_allclose(frame["mean_probability"].iloc[3:], [6 / 30, 20 / 30])
    assert_allclose(frame.geometry.area, 324.0 * frame["n_pixels"])


@pytest.mark.parametrize("seed", range(3))
def test_map_polygons_cover_the_mapped_pixels_exactly(seed: int) -> None:
    code = class_map(47, 31, 6, seed)
    frame = frame_of(code, map_grid(47, 31))
    assert frame.is_valid.all()
    assert frame["n_pixels"].sum() == (code > 0).sum()
    assert_allclose(frame.geometry.area.sum(), 324.0 * (code > 0).sum())
    assert_allclose(shapely.union_all(frame.geometry).area, 324.0 * (code > 0).sum(), rtol=1e-9)
    row, col = 30, 7
    at = shapely.Point(4_211.0 + 18 * (col + 0.5), -1_250_077.0 - 18 * (row + 0.5))
    assert frame[frame.contains(at)]["code"].tolist() == [code[row, col]]


def test_sensor_polygons_lie_on_the_ground_without_gaps_or_overlaps() -> None:
    code = class_map(47, 31, 6, 5)
    frame = frame_of(code, sensor_grid(47, 31))
    assert frame.is_valid.all()
    assert_allclose(shapely.union_all(frame.geometry.values).area, shapely.area(frame.geometry.values).sum(), rtol=1e-9)
    for row, col in ((40, 3), (11, 29), (25, 16)):
        at = shapely.Point(*ground_truth(row + 0.5, col + 0.5, 74.7, -21.3))
        assert frame[frame.contains(at)]["code"].tolist() == [code[row, col]]


def test_an_empty_map_gives_an_empty_layer() -> None:
    frame = frame_of(np.zeros((4, 7), np.uint16), map_grid(4, 7))
    assert len(frame) == 0
    assert len(outline(np.zeros((4, 7), np.int32), map_grid(4, 7))) == 0
    assert geopackage(frame).startswith(b"SQLite format 3")


def test_a_scene_without_reference_gets_polygons_in_pixels() -> None:
    frame = frame_of(SMALL, Grid(6, 5))
    assert frame.crs is None
    assert frame.total_bounds.tolist() == [0.0, -6.0, 5.0, 0.0]
    assert geopackage(frame).startswith(b"SQLite format 3")


def test_a_geopackage_is_read_back_and_is_the_same_bytes_twice(tmp_path) -> None:
    frame = frame_of(SMALL, map_grid(6, 5))
    packed = geopackage(frame)
    assert geopackage(frame) == packed
    path = tmp_path / "S_classes.gpkg"
    path.write_bytes(packed)
    found = gpd.read_file(path, layer=LAYER)
    assert found.crs == frame.crs
    assert found.geometry.geom_equals(frame.geometry).all()
    for column in ("code", "name", "is_known", "n_pixels", "area_m2", "mean_probability"):
        assert found[column].tolist() == frame[column].tolist()
