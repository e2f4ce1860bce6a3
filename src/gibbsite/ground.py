"""Where pixels of a grid lie on the ground, and how large they are.

In sensor space the ground points are interpolated as unit vectors from the planet's centre, so neither a
pole nor the 180° meridian breaks a scene: by cubic splines when the points form a lattice (rows × columns),
else by a thin-plate spline through all of them. From 10 × 10 points on a scan of 480 × 640 pixels that bows
by 20 pixels and wobbles by 3, pixel corners come out within 0.05 pixels, or 0.4 when the lattice has a
hole.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pyproj
from numpy.typing import NDArray
from scipy.interpolate import RBFInterpolator, RegularGridInterpolator
from scipy.sparse.linalg import spsolve

from gibbsite.errors import InputError
from gibbsite.scene import Grid, GroundPoint, Transform

Floats = NDArray[np.float64]

BLOCK_ROWS = 256
"""Rows whose areas are held at once."""

STRIP_ROWS = 32
"""Rows whose corners are held at once; a corner takes some hundred bytes."""

NEIGHBOURS = 40
"""Ground points behind each spline value."""

BORDER_POINTS = 32
"""Points on each side of a footprint."""

POLAR = 80.0
"""Degrees of latitude from which on places in sensor space are told on a polar map: longitudes crowd at a pole."""


def coordinates(grid: Grid) -> tuple[Callable[[Floats, Floats], tuple[Floats, Floats]], str | None]:
    """A function from col, row (pixels from the grid's upper left corner) to x, y, and the WKT of their system.

    On a map they are the map's own. In sensor space longitude and latitude, the longitudes continuous about that of
    the first ground point (so a scene may reach from 179 to 181); near a pole metres on a polar stereographic map of
    the same sphere. Without any reference: col and -row.
    """
    if grid.transform is not None:
        transform = grid.transform
        return lambda col, row: _on_map(transform, col, row), grid.crs
    if not grid.ground_points:
        return lambda col, row: (col, -row), grid.crs
    vectors = _vectors(grid)
    latitude = np.array(grid.ground_points)[:, 3]
    if np.abs(latitude).max() < POLAR:
        first = grid.ground_points[0][2]
        return lambda col, row: _degrees(vectors(row, col), first), grid.crs
    sign = float(np.sign(latitude[np.abs(latitude).argmax()]))
    radius = _ellipsoid(grid)[0]
    polar = pyproj.CRS.from_dict({"proj": "stere", "lat_0": 90 * sign, "lat_ts": 90 * sign, "R": radius, "units": "m"})

    def on_polar_map(col: Floats, row: Floats) -> tuple[Floats, Floats]:
        x, y, z = np.moveaxis(vectors(row, col), -1, 0)
        # The plane that touches the pole, seen from the other pole: Snyder (1987), eqs. 21-5, 21-6.
        scale = 2.0 * radius / (np.sqrt(x**2 + y**2 + z**2) + sign * z)
        return scale * y, -sign * scale * x

    return on_polar_map, polar.to_wkt()


def control_points(grid: Grid) -> list[GroundPoint]:
    """The ground points as (row, col, x, y) in the system of `coordinates`, so that a GIS can fit a surface to them.

    As longitudes they would jump at the 180° meridian, and mean nothing at a pole.
    """
    if not grid.ground_points:
        return []
    row, col, longitude, latitude = np.array(grid.ground_points).T
    if np.abs(latitude).max() < POLAR:
        x, y = longitude - 360.0 * np.round((longitude - longitude[0]) / 360.0), latitude
    else:
        x, y = coordinates(grid)[0](col + 0.5, row + 0.5)
    return list(zip(row.tolist(), col.tolist(), x.tolist(), y.tolist(), strict=True))


def extent(grid: Grid) -> list[float]:
    """Least x and y, largest x and y of the grid's border, in the system of `coordinates`."""
    x, y = coordinates(grid)[0](*_border(grid))
    return [float(x.min()), float(y.min()), float(x.max()), float(y.max())]


def footprint(grid: Grid) -> tuple[Floats, Floats] | None:
    """Longitude and latitude, degrees, of the grid's border, once around and closed; None without a reference."""
    if grid.crs is None or (grid.transform is None and not grid.ground_points):
        return None
    col, row = _border(grid)
    vector = _vectors(grid)(row, col)
    vector = vector[np.isfinite(vector).all(axis=-1)]
    if not len(vector):
        # A map of a whole disc: its border lies in space.
        return None
    # Longitude and latitude as the coordinate system counts them: on a flattened planet not the angle at its centre.
    # Ground points are such latitudes already.
    flattening = _ellipsoid(grid)[1] if grid.transform is not None else 0.0
    flat = np.hypot(vector[:, 0], vector[:, 1]) * (1.0 - flattening)
    return np.degrees(np.arctan2(vector[:, 1], vector[:, 0])), np.degrees(np.arctan2(vector[:, 2], flat))


def _border(grid: Grid) -> tuple[Floats, Floats]:
    """Columns and rows once around the grid."""
    across, down = (np.linspace(0.0, n, 1 + min(n, BORDER_POINTS)) for n in (grid.width, grid.height))
    col = np.concatenate([across, np.full(len(down), grid.width), across[::-1], np.zeros(len(down))])
    row = np.concatenate([np.zeros(len(across)), down, np.full(len(across), grid.height), down[::-1]])
    return col, row


def pixel_areas(grid: Grid) -> Iterator[tuple[slice, Floats]]:
    """Rows and the areas of their pixels in m² on the planet's surface, block by block; NaN without a reference."""
    is_placed = grid.crs is not None and (grid.transform is not None or bool(grid.ground_points))
    at = _vectors(grid) if is_placed else None
    radius = _ellipsoid(grid)[0] if is_placed else np.nan
    for start in range(0, grid.height, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, grid.height)
        area = np.full((stop - start, grid.width), np.nan)
        if at is not None:
            for top in range(start, stop, STRIP_ROWS):
                strip = np.arange(top, min(top + STRIP_ROWS, stop) + 1.0)
                corner = at(*np.meshgrid(strip, np.arange(grid.width + 1.0), indexing="ij")) * radius
                one, other = corner[1:, 1:] - corner[:-1, :-1], corner[1:, :-1] - corner[:-1, 1:]
                area[top - start :][: len(strip) - 1] = np.linalg.norm(np.cross(one, other), axis=-1) / 2
        yield slice(start, stop), area


def _vectors(grid: Grid) -> Callable[[Floats, Floats], Floats]:
    """A function from row, col (pixels from the upper left corner) to vectors (..., 3) from the centre, in radii."""
    if grid.transform is not None:
        return _map_vectors(grid, grid.transform)
    row, col, longitude, latitude = np.array(grid.ground_points).T
    vector = _unit(longitude, latitude)
    rows, cols = np.unique(row), np.unique(col)
    if len(rows) * len(cols) == len(row) and min(len(rows), len(cols)) > 1:
        order = np.lexsort((col, row))
        lattice = vector[order].reshape(len(rows), len(cols), 3)
        # Solved directly: the default solver stops at 1e-6 of the planet's radius, a fifth of a pixel.
        degree = {"method": "cubic", "solver": spsolve} if min(lattice.shape[:2]) > 3 else {"method": "linear"}
        surface = RegularGridInterpolator(
            (rows + 0.5, cols + 0.5), lattice, bounds_error=False, fill_value=None, **degree
        )
        return lambda row, col: surface(np.stack([row, col], axis=-1))
    if len(row) < 4:
        raise InputError(f"the scene has {len(row)} ground points, at least 4 are needed to place its polygons")
    if np.linalg.matrix_rank(np.cov(row, col)) < 2:
        raise InputError("the scene's ground points lie on one line, so pixels have no area; give a scene of two lines")
    spline = RBFInterpolator(np.stack([row, col], axis=-1) + 0.5, vector, neighbors=min(NEIGHBOURS, len(row)))
    return lambda row, col: spline(np.stack([row.ravel(), col.ravel()], axis=-1)).reshape(*row.shape, 3)


def _map_vectors(grid: Grid, transform: Transform) -> Callable[[Floats, Floats], Floats]:
    crs = _system(grid)
    to_degrees = pyproj.Transformer.from_crs(crs, crs.geodetic_crs, always_xy=True)
    eccentricity = _ellipsoid(grid)[1]

    def at(row: Floats, col: Floats) -> Floats:
        longitude, latitude = to_degrees.transform(*_on_map(transform, col, row))
        return _unit(longitude, latitude, eccentricity)

    return at


def _system(grid: Grid) -> pyproj.CRS:
    if grid.crs is None:
        raise InputError("the scene has ground points without a coordinate system; ingest it anew")
    return pyproj.CRS.from_wkt(grid.crs)


def _ellipsoid(grid: Grid) -> tuple[float, float]:
    """Largest radius in metres, and squared eccentricity, of the body that the grid lies on."""
    body = _system(grid).ellipsoid
    assert body is not None
    return body.semi_major_metre, 1.0 - (body.semi_minor_metre / body.semi_major_metre) ** 2


def _on_map(transform: Transform, col: Floats, row: Floats) -> tuple[Floats, Floats]:
    a, b, c, d, e, f = transform
    return a * col + b * row + c, d * col + e * row + f


def _degrees(vector: Floats, first: float) -> tuple[Floats, Floats]:
    """Longitude, within half a turn of `first`, and latitude of vectors (..., 3)."""
    longitude = np.degrees(np.arctan2(vector[..., 1], vector[..., 0]))
    latitude = np.degrees(np.arctan2(vector[..., 2], np.hypot(vector[..., 0], vector[..., 1])))
    return first + (longitude - first + 180.0) % 360.0 - 180.0, latitude


def _unit(longitude: Floats, latitude: Floats, eccentricity: float = 0.0) -> Floats:
    """Vectors (..., 3) from the centre, in largest radii, of longitudes and latitudes in degrees."""
    lon, lat = np.radians(longitude), np.radians(latitude)
    normal = 1.0 / np.sqrt(1.0 - eccentricity * np.sin(lat) ** 2)
    flat = normal * np.cos(lat)
    return np.stack([flat * np.cos(lon), flat * np.sin(lon), (1.0 - eccentricity) * normal * np.sin(lat)], axis=-1)
