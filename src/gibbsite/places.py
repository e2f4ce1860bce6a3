"""Where pixels lie, and which pixel holds a place.

A place has coordinates in a system of Mars, or in the scene's own pixels (system None): x = column, y = row, counted
from the outer corner of the first pixel, so pixel (row, col) reaches from (col, row) to (col + 1, row + 1).
"""

from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pyproj import CRS
from scipy.spatial import cKDTree

from gibbsite import mars
from gibbsite.errors import InputError
from gibbsite.mars import Floats
from gibbsite.scene import Grid, grid_of

OUTSIDE = -1
"""Pixel of a place outside the scene."""
WALK = 16
"""Steps from the nearest centre to the pixel that holds a place; it takes some where pixels are long or slanted."""

Indices = NDArray[np.int64]


def check_placeable(crs: CRS, cube: xr.Dataset, what: str) -> None:
    """Refuse what, in this system, cannot be brought to the pixels of the scene."""
    grid = grid_of(cube)
    if grid.transform is not None and crs.equals(_system(cube, grid), ignore_axis_order=True):
        return
    mars.coordinate_system(crs, what)
    if grid.transform is not None:
        mars.coordinate_system(grid.crs, f"{_path(cube)}: the scene")
    if grid.transform is None and ("latitude" not in cube.variables or "longitude" not in cube.variables):
        raise InputError(
            f"{what} lies on the ground, but the scene has neither a map grid nor latitudes and longitudes; ingest it "
            "with its DDR, or give the labels in its own pixels (raster, ROI, CSV of row and col)"
        )
    mars.check_sphere(crs, what)


def centres(cube: xr.Dataset, rows: slice, crs: CRS | None) -> tuple[Floats, Floats]:
    """x and y (rows, width) of the centres of some lines' pixels, in the system; not finite where unknown."""
    grid = grid_of(cube)
    row, col = np.mgrid[rows, 0 : grid.width] + 0.5
    if crs is None:
        return col, row
    if grid.transform is None:
        return mars.from_planetocentric(cube["longitude"][rows].values, cube["latitude"][rows].values, crs)
    a, b, c, d, e, f = grid.transform
    return _between(a * col + b * row + c, d * col + e * row + f, _system(cube, grid), crs)


def pixels_of(x: Floats, y: Floats, crs: CRS | None, cube: xr.Dataset) -> Indices:
    """The pixel (flat index) that holds each place, OUTSIDE where none does."""
    grid = grid_of(cube)
    if crs is None:
        row, col = np.floor(y), np.floor(x)
    elif grid.transform is None:
        row, col = _in_swath(*mars.to_planetocentric(x, y, crs), cube)
    else:
        row, col = _on_map(x, y, crs, cube)
    inside = (row >= 0) & (row < grid.height) & (col >= 0) & (col < grid.width)
    pixel = np.full(len(x), OUTSIDE, np.int64)
    pixel[inside] = row[inside].astype(np.int64) * grid.width + col[inside].astype(np.int64)
    return pixel


def _on_map(x: Floats, y: Floats, crs: CRS, cube: xr.Dataset) -> tuple[Floats, Floats]:
    """Row and column, whole numbers, of places; also beyond the edges of the map."""
    grid = grid_of(cube)
    assert grid.transform is not None
    system = _system(cube, grid)
    x, y = _between(x, y, crs, system)
    a, b, c, d, e, f = grid.transform
    turn = mars.turn(system)
    if turn is not None:
        x = mars.near(x, a * grid.width / 2 + b * grid.height / 2 + c, turn)
    determinant = a * e - b * d
    col = (e * (x - c) - b * (y - f)) / determinant
    row = (a * (y - f) - d * (x - c)) / determinant
    return np.floor(row), np.floor(col)


def _in_swath(longitude: Floats, latitude: Floats, cube: xr.Dataset) -> tuple[Floats, Floats]:
    """Row and column, whole numbers, of places in a scene that knows its pixels' centres; -1 outside.

    A pixel reaches half-way to its neighbours. The search starts at the nearest centre and goes on, in the pixels'
    own slanted frame, until the place lies in the pixel.
    """
    centre = _directions(cube["longitude"].values, cube["latitude"].values)
    place = _directions(longitude, latitude)
    down, right = _stride(centre, 0), _stride(centre, 1)
    frame = np.asarray(np.isfinite(centre + down + right).all(axis=-1))
    if not frame.any():
        return np.full(len(place), -1.0), np.full(len(place), -1.0)
    _, nearest = cKDTree(centre[frame]).query(place)
    row, col = (axis[nearest] for axis in np.nonzero(frame))
    for _ in range(WALK):
        offset = _offset(place - centre[row, col], down[row, col], right[row, col])
        step = np.where(np.abs(offset) <= 0.5, 0, np.rint(np.clip(offset, -WALK, WALK))).astype(np.int64)
        to_row = np.clip(row + step[0], 0, frame.shape[0] - 1)
        to_col = np.clip(col + step[1], 0, frame.shape[1] - 1)
        moves = frame[to_row, to_col]
        row, col = np.where(moves, to_row, row), np.where(moves, to_col, col)
    offset = _offset(place - centre[row, col], down[row, col], right[row, col])
    # A place on the line between two pixels is in either, whatever the last digit says.
    inside = (np.abs(offset) <= 0.5 + 1e-6).all(axis=0)
    return np.where(inside, row, -1.0), np.where(inside, col, -1.0)


def _directions(longitude: Floats, latitude: Floats) -> Floats:
    """Unit vectors (..., 3) from the centre of Mars."""
    east, north = np.radians(longitude), np.radians(latitude)
    return np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], axis=-1)


def _stride(centre: Floats, axis: int) -> Floats:
    """From each centre to the next along the axis: the mean of both sides, or the one there is, or NaN."""
    difference = np.diff(centre, axis=axis)
    blank = np.full_like(np.take(centre, [0], axis=axis), np.nan)
    ahead, behind = np.concatenate([difference, blank], axis), np.concatenate([blank, difference], axis)
    return np.where(np.isnan(ahead), behind, np.where(np.isnan(behind), ahead, (ahead + behind) / 2))


def _offset(apart: Floats, down: Floats, right: Floats) -> Floats:
    """Rows and columns (2, n) from the pixel's centre to the place, by least squares in its tangent plane."""
    dd, rr, dr = (down * down).sum(-1), (right * right).sum(-1), (down * right).sum(-1)
    da, ra = (down * apart).sum(-1), (right * apart).sum(-1)
    determinant = dd * rr - dr * dr
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.stack([rr * da - dr * ra, dd * ra - dr * da]) / determinant


def _between(x: Floats, y: Floats, here: CRS, there: CRS) -> tuple[Floats, Floats]:
    if here.equals(there, ignore_axis_order=True):
        return x, y
    return mars.from_planetocentric(*mars.to_planetocentric(x, y, here), there)


def _system(cube: xr.Dataset, grid: Grid) -> CRS:
    return mars.read_system(grid.crs, f"{_path(cube)}: the scene")


def _path(cube: xr.Dataset) -> Path:
    return Path(str(cube.encoding.get("source", cube.attrs["scene"])))
