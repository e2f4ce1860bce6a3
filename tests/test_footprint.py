"""Footprints: right on a plain map, across the 180° meridian and around a pole."""

from dataclasses import replace

import numpy as np
import pytest
import shapely
from numpy.testing import assert_allclose

from gibbsite.footprint import outline
from gibbsite.scene import Grid
from handmade_results import MARS_SPHERE, ground_truth, map_grid, polar_grid, sensor_grid


def degrees(west: float, north: float, step: float, height: int, width: int) -> Grid:
    return Grid(height, width, crs=MARS_SPHERE, transform=(step, 0.0, west, 0.0, -step, north))


def test_a_plain_map_has_its_box_and_turns_counter_clockwise() -> None:
    geometry, box = outline(degrees(10.0, 60.0, 0.5, 4, 9))
    assert geometry is not None
    assert box == [10.0, 58.0, 14.5, 60.0]
    shape = shapely.geometry.shape(geometry)
    assert shape.exterior.is_ccw
    assert shape.area == pytest.approx(9.0)


def test_a_map_of_the_whole_planet_has_all_longitudes() -> None:
    geometry, box = outline(degrees(0.0, 90.0, 1.0, 180, 360))
    assert box == [-180.0, -90.0, 180.0, 90.0]
    assert shapely.geometry.shape(geometry).area == pytest.approx(360 * 180)


def test_a_scene_in_sensor_space_lies_inside_its_footprint() -> None:
    geometry, box = outline(sensor_grid(47, 31))
    assert geometry is not None
    assert box is not None
    shape = shapely.geometry.shape(geometry)
    for row, col, is_inside in ((2.0, 2.0, True), (45.0, 29.0, True), (-3.0, 5.0, False), (30.0, 36.0, False)):
        assert shape.contains(shapely.Point(*ground_truth(row, col, 74.7, -21.3))) == is_inside
    assert_allclose(shape.bounds, box)


@pytest.mark.parametrize("west", [179.0, -181.0, 539.0])
def test_a_scene_across_the_meridian_is_cut_there(west: float) -> None:
    geometry, box = outline(degrees(west, 10.0, 0.5, 4, 6))
    assert geometry is not None
    assert box == [179.0, 8.0, -178.0, 10.0], "west > east, as RFC 7946 has it"
    assert geometry["type"] == "MultiPolygon"
    parts = sorted(shapely.geometry.shape(geometry).geoms, key=lambda part: part.bounds)
    assert [part.bounds for part in parts] == [(-180.0, 8.0, -178.0, 10.0), (179.0, 8.0, 180.0, 10.0)]
    assert all(part.exterior.is_ccw for part in parts)


def test_ground_points_on_both_sides_of_the_meridian_are_one_scene() -> None:
    grid = sensor_grid(45, 61, 179.99, 12.0)
    wrapped = tuple((r, c, (lon + 180) % 360 - 180, lat) for r, c, lon, lat in grid.ground_points)
    geometry, box = outline(replace(grid, ground_points=wrapped))
    assert geometry is not None
    assert box is not None
    assert box[0] > 179.9
    assert box[2] < -179.9
    assert shapely.geometry.shape(geometry).area < 0.01


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["north", "south"])
def test_a_scene_around_a_pole_is_told_as_the_cap_that_holds_it(sign: float) -> None:
    grid = polar_grid(60, 40, sign)
    geometry, box = outline(grid)
    assert geometry is not None
    assert box is not None
    assert (box[0], box[2]) == (-180.0, 180.0)
    farthest = np.abs(np.array(grid.ground_points)[:, 3]).min()
    assert np.abs(box[1:4:2]).min() <= farthest
    assert np.abs(box[1:4:2]).max() == 90.0
    assert np.sign(box[1]) == sign


def test_a_map_in_the_product_s_own_projection_lies_at_its_longitude() -> None:
    _, box = outline(map_grid(100, 50))
    assert box is not None
    assert 74.7 < box[0] < box[2] < 75.0
    assert -21.3 < box[1] < box[3] < -21.0


def test_a_scene_that_lies_nowhere_has_none() -> None:
    assert outline(Grid(3, 4)) == (None, None)
