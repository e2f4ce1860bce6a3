"""Where pixels lie and which pixel holds a place: across the 180° meridian, near a pole, in slanted swaths."""

from collections.abc import Callable
from pathlib import Path

import geopandas
import numpy as np
import pytest
import shapely
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from pyproj import CRS

import handmade_cubes
import label_formats
from command_line import gibbsite
from gibbsite import mars, places, scene, store
from gibbsite.scene import Grid
from handmade_cubes import HEIGHT, WIDTH, Cube
from label_formats import SHAPES, expected_known, write_csv

DEGREE = 0.004
"""Pixels on a side, in degrees."""
WEST, NORTH = 180.0 - 3.4 * DEGREE, -7.3
"""Corner of a scene that lies astride the 180° meridian: it cuts through column 3, and so through two of the shapes."""
RADIUS = 3_394_839.8133


def meridian(col: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Longitude (up to 180.02) and latitude."""
    return WEST + DEGREE * np.asarray(col), NORTH - DEGREE * np.asarray(row)


def to_180(col: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    longitude, latitude = meridian(col, row)
    return np.where(longitude > 180, longitude - 360, longitude), latitude


def plate(centre: float) -> CRS:
    return CRS.from_dict({"proj": "eqc", "lon_0": centre, "R": RADIUS})


def eqc_grid(centre: float) -> Grid:
    """The scene on a map whose seam is 180° from the centre; x goes on beyond the seam."""
    unit = np.radians(1.0) * RADIUS
    transform = (DEGREE * unit, 0.0, (WEST - centre) * unit, 0.0, -DEGREE * unit, NORTH * unit)
    return Grid(HEIGHT, WIDTH, crs=plate(centre).to_wkt(), transform=transform)


def write_cube(folder: Path, kind: str) -> Path:
    if kind == "sensor":
        row, col = np.mgrid[0:HEIGHT, 0:WIDTH] + 0.5
        longitude, latitude = to_180(col, row)
        cube = Cube(handmade_cubes.spectra(), Grid(HEIGHT, WIDTH), extra={"longitude": longitude, "latitude": latitude})
    else:
        cube = Cube(handmade_cubes.spectra(), eqc_grid({"map at 180": 180.0, "map beyond its seam": 0.0}[kind]))
    return handmade_cubes.write_cube(folder / "scene.zarr", cube)


def in_system(crs: CRS) -> Callable:
    """Places in a system, as a GIS that reprojects corner by corner gives them."""

    def place(col: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return mars.from_planetocentric(*to_180(np.asarray(col, float), np.asarray(row, float)), crs)

    return place


def layer(folder: Path, place: Callable, crs: object) -> Path:
    label_formats.frame(place, crs).to_file(folder / "labels.gpkg")
    return folder / "labels.gpkg"


def split(folder: Path) -> Path:
    """Polygons cut at the meridian, as GeoJSON wants them."""
    whole = label_formats.frame(meridian, "IAU_2015:49900")
    east = whole.geometry.intersection(shapely.box(180, -90, 540, 90)).translate(-360)
    whole.geometry = whole.geometry.intersection(shapely.box(-180, -90, 180, 90)).union(east)
    whole.to_file(folder / "labels.geojson")
    return folder / "labels.geojson"


def table(folder: Path, place: Callable) -> Path:
    rows = []
    for name in SHAPES:
        for row, col in np.argwhere(label_formats.pixels(name)):
            longitude, latitude = place(col + 0.7, row + 0.1)
            rows.append((name, float(latitude), float(longitude) % 360 if place is meridian else float(longitude)))
    return write_csv(folder / "labels.csv", ("class", "lat", "lon"), rows)


LAYERS = {
    "0 to 360": lambda folder: layer(folder, meridian, "IAU_2015:49900"),
    "-180 to 180, broken": lambda folder: layer(folder, to_180, "IAU_2015:49900"),
    "-180 to 180, cut": split,
    "map with its seam there": lambda folder: layer(folder, in_system(plate(0)), plate(0).to_wkt()),
    "map without": lambda folder: layer(folder, in_system(plate(190)), plate(190).to_wkt()),
    "polar": lambda folder: layer(folder, in_system(CRS("IAU_2015:49935")), "IAU_2015:49935"),
    "points, 0 to 360": lambda folder: table(folder, meridian),
    "points, -180 to 180": lambda folder: table(folder, to_180),
}


@pytest.mark.parametrize("kind", ["sensor", "map at 180", "map beyond its seam"])
@pytest.mark.parametrize("drawn", LAYERS)
def test_labels_across_the_180_meridian_are_those_anywhere_else(tmp_path, kind, drawn):
    cube, out = write_cube(tmp_path, kind), tmp_path / "labels.zarr"
    assert gibbsite("labels", "--cube", cube, "--shapes", LAYERS[drawn](tmp_path), "--out", out) == 0
    np.testing.assert_array_equal(store.read(out, "labels")["known"][...], expected_known())


def test_a_polygon_around_the_whole_planet_stays_one(tmp_path):
    everywhere = geopandas.GeoDataFrame(
        {"class": ["dust"]}, geometry=[shapely.box(-180, -90, 180, 90)], crs="IAU_2015:49900"
    )
    everywhere.to_file(tmp_path / "labels.gpkg")
    cube, out = write_cube(tmp_path, "map at 180"), tmp_path / "labels.zarr"
    assert gibbsite("labels", "--cube", cube, "--shapes", tmp_path / "labels.gpkg", "--out", out) == 0
    assert (store.read(out, "labels")["known"][...] == 0).all()


def test_a_turn_is_known_where_x_runs_with_longitude_alone():
    assert mars.turn(CRS("IAU_2015:49900")) == 360.0
    circle = 2 * np.pi * 3_396_190.0
    assert mars.turn(CRS("IAU_2015:49910")) == pytest.approx(circle)
    for centre in (0.0, 180.5, 181.5):
        at_20 = CRS.from_dict({"proj": "eqc", "lat_ts": 20, "lon_0": centre, "R": 3_396_190.0})
        assert mars.turn(at_20) == pytest.approx(circle * np.cos(np.radians(20)))
    for other in ("IAU_2015:49930", CRS.from_dict({"proj": "sinu", "R": 3_396_190.0})):
        assert mars.turn(CRS(other)) is None


# Points in sensor space


@st.composite
def swaths(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, Callable]:
    """Longitude and latitude of a slanted swath's centres, and the place of (col, row) in it."""
    angle, slant = draw(st.floats(0, 2 * np.pi)), draw(st.floats(-0.8, 0.8))
    length, size = draw(st.floats(0.3, 4.0)), draw(st.floats(0.0002, 0.01))
    middle = draw(st.sampled_from([0.0, 74.7, 180.0, 359.99]))
    right = size * np.array([np.cos(angle), np.sin(angle)])
    down = length * size * np.array([-np.sin(angle), np.cos(angle)]) + slant * right

    def place(col: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        east, north = np.multiply.outer(right, np.asarray(col)) + np.multiply.outer(down, np.asarray(row))
        return (middle + east + 180) % 360 - 180, north

    row, col = np.mgrid[0:HEIGHT, 0:WIDTH] + 0.5
    return *place(col, row), place


@given(swaths(), st.floats(0.03, 0.97), st.floats(0.03, 0.97))
def test_a_place_in_a_slanted_swath_is_in_the_pixel_that_holds_it(swath, right, down):
    longitude, latitude, place = swath
    cube = swath_cube(longitude, latitude)
    row, col = np.mgrid[0:HEIGHT, 0:WIDTH]
    found = places.pixels_of(*(axis.ravel() for axis in place(col + right, row + down)), mars.DEGREES, cube)
    np.testing.assert_array_equal(found, np.arange(HEIGHT * WIDTH))


@given(swaths())
def test_a_place_beside_a_slanted_swath_is_in_none(swath):
    longitude, latitude, place = swath
    col = np.array([-0.05, -3.0, WIDTH + 0.05, WIDTH + 40.0, 4.5, 4.5, 4.5])
    row = np.array([3.5, 3.5, 7.5, 7.5, -0.05, HEIGHT + 0.05, 900.0])
    found = places.pixels_of(*place(col, row), mars.DEGREES, swath_cube(longitude, latitude))
    assert (found == places.OUTSIDE).all()


def test_pixels_without_a_place_hold_none_and_do_not_hide_their_neighbours():
    longitude, latitude = (np.array(axis) for axis in handmade_cubes.degrees_of(handmade_cubes.map_grid()))
    missing = np.zeros((HEIGHT, WIDTH), bool)
    missing[:, :2] = missing[10, 5] = True
    cube = swath_cube(np.where(missing, np.nan, longitude), np.where(missing, np.nan, latitude))
    found = places.pixels_of(longitude.ravel(), latitude.ravel(), mars.DEGREES, cube)
    np.testing.assert_array_equal(found, np.where(missing.ravel(), places.OUTSIDE, np.arange(HEIGHT * WIDTH)))


def test_a_scene_whose_places_are_all_unknown_holds_none():
    unknown = np.full((HEIGHT, WIDTH), np.nan)
    found = places.pixels_of(np.array([74.7]), np.array([-21.3]), mars.DEGREES, swath_cube(unknown, unknown))
    assert found.tolist() == [places.OUTSIDE]


def swath_cube(longitude: np.ndarray, latitude: np.ndarray) -> xr.Dataset:
    grid = Grid(HEIGHT, WIDTH).to_json()
    arrays = {"longitude": (("y", "x"), longitude), "latitude": (("y", "x"), latitude)}
    return xr.Dataset(arrays, attrs={"scene": "swath", "grid": grid})


@pytest.mark.parametrize("crs", [None, mars.DEGREES])
def test_a_pixels_centre_is_in_the_pixel(tmp_path, crs):
    for kind in ("sensor", "map at 180", "map beyond its seam"):
        cube = scene.open_cube(write_cube(tmp_path, kind))
        x, y = places.centres(cube, slice(0, HEIGHT), crs)
        np.testing.assert_array_equal(
            places.pixels_of(x.ravel(), y.ravel(), crs, cube), np.arange(HEIGHT * WIDTH), err_msg=kind
        )
