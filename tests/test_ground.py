"""Where pixels lie and how large they are."""

from dataclasses import replace

import numpy as np
import pyproj
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from gibbsite.errors import InputError
from gibbsite.ground import coordinates, footprint, pixel_areas
from gibbsite.scene import Grid
from handmade_results import MARS_SPHERE, ground_truth, map_grid, polar_grid, sensor_grid

Floats = NDArray[np.float64]
DEGREE = 59_274.7
"""Metres per degree of latitude on Mars."""


def areas(grid: Grid) -> Floats:
    """Of all pixels, (height, width)."""
    return np.concatenate([area for _, area in pixel_areas(grid)])


def corners(grid: Grid) -> tuple[Floats, Floats]:
    """Columns and rows of all pixel corners."""
    col, row = np.meshgrid(np.arange(grid.width + 1.0), np.arange(grid.height + 1.0))
    return col, row


def scan(row: Floats, col: Floats) -> tuple[Floats, Floats]:
    """A scan of 18 m pixels that bows by 20 pixels and wobbles by 3."""
    bend = 20 * np.square((col - 320) / 320) + 3 * np.sin(row / 60)
    east, north = 0.98 * col - 0.19 * row + 0.3 * bend, -(0.97 * row + 0.2 * col + bend)
    return 74.7 + 18 / DEGREE * east / np.cos(np.radians(21.3)), -21.3 + 18 / DEGREE * north


@pytest.mark.parametrize(("hole", "tolerance"), [(False, 0.05), (True, 0.4)])
def test_pixel_corners_of_a_bowed_scan_come_out_within_the_stated_error(hole: bool, tolerance: float) -> None:
    row, col = np.linspace(0, 479, 10).round(), np.linspace(0, 639, 10).round()
    at = [(r, c) for r in row for c in col]
    points = [(r, c, *map(float, scan(np.float64(r + 0.5), np.float64(c + 0.5)))) for r, c in at]
    if hole:
        del points[17]
    grid = Grid(480, 640, crs=MARS_SPHERE, ground_points=tuple(points))
    some_col, some_row = (values[::9, ::9] for values in corners(grid))
    longitude, latitude = coordinates(grid)[0](some_col, some_row)
    true_longitude, true_latitude = scan(some_row, some_col)
    east = (longitude - true_longitude) * np.cos(np.radians(21.3))
    assert np.hypot(east, latitude - true_latitude).max() * DEGREE / 18 < tolerance


@pytest.mark.parametrize(("longitude", "latitude"), [(179.99, 12.0), (359.999, -60.0), (-179.999, 71.0)])
def test_longitudes_are_continuous_across_the_meridian(longitude: float, latitude: float) -> None:
    grid = sensor_grid(45, 61, longitude, latitude)
    wrapped = tuple((r, c, (lon + 180) % 360 - 180, lat) for r, c, lon, lat in grid.ground_points)
    grid = Grid(45, 61, crs=MARS_SPHERE, ground_points=wrapped)
    col, row = corners(grid)
    found, _ = coordinates(grid)[0](col, row)
    true, _ = ground_truth(row, col, longitude, latitude)
    turn = found - true
    assert np.ptp(found) < 0.5
    assert_allclose(turn, np.rint(turn / 360) * 360, atol=1e-5)


def test_an_equirectangular_pixel_has_its_true_area_at_the_standard_parallel_only() -> None:
    """On the map all pixels are 18 m squares; on the ground they are as wide as the parallel they lie on."""
    radius, standard = 3_394_839.8133, np.radians(20.0)
    for top in (-1_250_077.0, 2_400_000.0, 0.0):
        grid = replace(map_grid(3, 5), transform=(18.0, 0.0, 4_211.0, 0.0, -18.0, top))
        edge = (top - 18.0 * np.arange(4)) / radius
        true = radius**2 * (18.0 / radius / np.cos(standard)) * -np.diff(np.sin(edge))
        assert_allclose(areas(grid), np.repeat(true[:, None], 5, axis=1), rtol=1e-7)


def test_a_sheared_map_pixel_loses_what_its_sides_enclose_less() -> None:
    plain, sheared = map_grid(3, 5), replace(map_grid(3, 5), transform=(18.0, 4.0, 4_211.0, -3.0, -18.0, -1_250_077.0))
    assert_allclose(areas(sheared)[0, 0] / areas(plain)[0, 0], 312.0 / 324.0, rtol=1e-5)


def test_areas_on_a_flattened_planet_add_up_to_its_surface() -> None:
    """The whole of the WGS 84 ellipsoid in cells of 0.5°: 510,065,621.7 km² (its closed form)."""
    grid = Grid(360, 720, crs=pyproj.CRS("EPSG:4326").to_wkt(), transform=(0.5, 0.0, -180.0, 0.0, -0.5, 90.0))
    assert_allclose(areas(grid).sum(), 510_065_621.7e6, rtol=2e-5)


def test_areas_do_not_depend_on_the_rows_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = sensor_grid(45, 31)
    whole = areas(grid)
    monkeypatch.setattr("gibbsite.ground.BLOCK_ROWS", 7)
    assert_allclose(areas(grid), whole, rtol=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["north", "south"])
def test_a_scene_around_a_pole_is_placed_on_a_polar_map(sign: float) -> None:
    grid = polar_grid(60, 40, sign)
    place, wkt = coordinates(grid)
    assert wkt is not None
    polar = pyproj.CRS.from_wkt(wkt)
    to_polar = pyproj.Transformer.from_crs(polar.geodetic_crs, polar, always_xy=True)
    col, row = corners(grid)
    x, y = place(col, row)
    _, _, longitude, latitude = np.array(grid.ground_points).T
    true_x, true_y = to_polar.transform(longitude, latitude)
    own = np.array(grid.ground_points)[:, :2]
    found_x, found_y = place(own[:, 1] + 0.5, own[:, 0] + 0.5)
    assert_allclose(found_x, true_x, atol=1e-3)
    assert_allclose(found_y, true_y, atol=1e-3)
    assert np.hypot(x, y).min() < 18.0, "the pole is inside"
    assert_allclose(areas(grid), 324.0, rtol=1e-3)


def test_pixels_of_a_longitude_latitude_map_shrink_towards_the_pole() -> None:
    grid = Grid(2, 3, crs=MARS_SPHERE, transform=(0.01, 0.0, 10.0, 0.0, -0.01, 60.0))
    radius = 3_396_190.0
    top, bottom = np.sin(np.radians([60.0, 59.99])), np.sin(np.radians([59.99, 59.98]))
    true = radius**2 * np.radians(0.01) * (top - bottom)
    assert_allclose(areas(grid), np.repeat(true[:, None], 3, axis=1), rtol=1e-6)


def test_sensor_pixels_have_the_area_of_their_ground_footprint() -> None:
    grid = sensor_grid(40, 50)
    col, row = corners(grid)
    lon, lat = ground_truth(row, col, 74.7, -21.3)
    x, y = np.radians(lon) * 3_396_190.0, np.sin(np.radians(lat)) * 3_396_190.0
    dx, dy = x[1:, 1:] - x[:-1, :-1], y[1:, 1:] - y[:-1, :-1]
    ex, ey = x[1:, :-1] - x[:-1, 1:], y[1:, :-1] - y[:-1, 1:]
    assert_allclose(areas(grid), np.abs(dx * ey - dy * ex) / 2, rtol=2e-3)


def test_a_scene_without_reference_has_pixel_coordinates_and_no_area() -> None:
    grid = Grid(2, 3)
    assert np.isnan(areas(grid)).all()
    x, y = coordinates(grid)[0](np.array([1.0]), np.array([2.0]))
    assert (x.item(), y.item()) == (1.0, -2.0)


def test_ground_points_of_one_line_are_refused() -> None:
    points = tuple((0.0, float(col), 1.0 + 0.01 * col, 2.0) for col in range(30))
    with pytest.raises(InputError, match="lie on one line"):
        areas(Grid(1, 30, crs=MARS_SPHERE, ground_points=points))


def test_latitudes_of_ground_points_on_a_flattened_planet_are_told_as_they_came() -> None:
    lattice = [(row, col, 10 + 0.001 * col, 45 - 0.001 * row) for row in range(8) for col in range(8)]
    grid = Grid(8, 8, crs=pyproj.CRS("EPSG:4326").to_wkt(), ground_points=tuple(map(tuple, lattice)))
    _, latitude = footprint(grid)
    assert latitude.max() == pytest.approx(45.0005, abs=1e-4)


def test_too_few_ground_points_are_refused() -> None:
    points = ((0.0, 0.0, 1.0, 1.0), (5.0, 2.0, 1.1, 1.2), (3.0, 7.0, 1.2, 1.0))
    with pytest.raises(InputError, match="has 3 ground points, at least 4"):
        areas(Grid(9, 9, crs=MARS_SPHERE, ground_points=points))
