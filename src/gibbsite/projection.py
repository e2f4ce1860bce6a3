"""A scene on a common map of Mars: a grid in an IAU system, and for each of its pixels the pixel of the scene there.

A pixel of the map takes the pixel of the scene whose footprint covers its centre, and nothing else: values are never
mixed, gaps of the scene stay empty, and nothing is drawn beyond its border. Places travel as planetocentric
longitude and latitude (see `mars`), so no datum shift moves a pixel.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyproj
from numpy.typing import NDArray

from gibbsite import mars
from gibbsite.errors import InputError
from gibbsite.footprints import Footprints
from gibbsite.scene import Grid

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
System = Literal["equirectangular", "polar"]

BLOCK_ROWS = 256
"""Rows of the map whose coordinates are held at once."""

_CODES = {"equirectangular": "IAU_2015:49910", "north": "IAU_2015:49930", "south": "IAU_2015:49935"}
_MOST_LARGER = 64
"""A map with more than so many pixels per pixel of the scene is a mistake: a pole stretched over all longitudes."""


@dataclass(frozen=True)
class Target:
    """A coordinate system of Mars for publication."""

    crs: pyproj.CRS
    """IAU_2015:49910, 49930 or 49935."""
    is_polar: bool
    """Whether it is one of the polar ones."""

    @property
    def radius(self) -> float:
        """Of its sphere, metres."""
        assert self.crs.ellipsoid is not None
        return float(self.crs.ellipsoid.semi_major_metre)

    def coordinates(self, longitude: Floats, latitude: Floats) -> tuple[Floats, Floats]:
        """Map coordinates of places; on the equirectangular map longitudes beyond 180° go on, so scenes stay whole."""
        if self.is_polar:
            return mars.from_planetocentric(longitude, latitude, self.crs)
        return self.radius * np.radians(longitude), self.radius * np.radians(latitude)

    def places(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Longitude and latitude of map coordinates."""
        if self.is_polar:
            return mars.to_planetocentric(x, y, self.crs)
        return np.degrees(x / self.radius), np.degrees(y / self.radius)


@dataclass(frozen=True, eq=False)
class Projection:
    """A scene laid on a map."""

    grid: Grid
    """Of the map."""
    source: NDArray[np.integer]
    """(height, width) Pixel of the scene, line · width + sample, at each pixel of the map; -1 where there is none."""

    def onto(self, values: NDArray[Any], empty: Any, rows: slice = slice(None)) -> NDArray[Any]:
        """A raster (line, sample) of the scene on rows of the map, `empty` where the scene has no pixel."""
        flat, source = values.reshape(-1), self.source[rows]
        return np.where(source >= 0, flat[np.maximum(source, 0)], np.asarray(empty, dtype=values.dtype))


def project_scan(longitude: Floats, latitude: Floats, system: System, resolution: float | None = None) -> Projection:
    """A scene in sensor space, with the longitude and latitude of each pixel (line, sample; NaN unknown), on a map.

    `resolution` is the size of the map's pixels in metres; without, the distance of the scene's own along the closer
    direction, rounded to 0.1 m.
    """
    known = np.isfinite(longitude) & np.isfinite(latitude)
    if min(longitude.shape) < 2 or not known.any():
        raise InputError("the scene has no two lines and samples with coordinates, so no map; ingest it with its DDR")
    longitude = longitude - 360.0 * np.round(np.median(longitude[known]) / 360.0)
    target = _target(system, float(np.median(latitude[known])))
    footprints = Footprints.of(*target.coordinates(longitude, latitude))
    pixel = resolution or round(_spacing(longitude, latitude) * target.radius, 1)
    grid = _grid(target, footprints.extent(), pixel, longitude.size)
    return Projection(grid, _lookup(grid, longitude.size, footprints.finder().covering))


def project_map(scene: Grid, system: System, resolution: float | None = None) -> Projection:
    """A scene that is on a map of Mars of its own, on another; `resolution` as above, without: its pixels' height."""
    crs = mars.coordinate_system(scene.crs, "the scene")
    if scene.transform is None:
        raise InputError("the scene is not on a map, so it cannot be moved to another; ingest it anew")
    height, width = scene.height, scene.width
    down, across = np.arange(height + 1.0), np.arange(width + 1.0)
    # Once around, so that neighbours are never half a turn apart.
    row = np.concatenate([np.zeros(width + 1), down, np.full(width + 1, height), down[::-1]])
    col = np.concatenate([across, np.full(height + 1, width), across[::-1], np.zeros(height + 1)])
    longitude, latitude = mars.to_planetocentric(*_on_map(scene, col, row), crs)
    is_ground = np.isfinite(longitude) & np.isfinite(latitude)
    if not is_ground.any():
        raise InputError(
            "the border of the scene's map lies beyond Mars, so it cannot be moved to another; cut the map"
        )
    longitude, latitude = longitude[is_ground], latitude[is_ground]
    longitude = np.degrees(np.unwrap(np.radians(longitude)))
    longitude = longitude - 360.0 * np.round(np.median(longitude) / 360.0)
    target = _target(system, float(np.median(latitude)))
    x, y = target.coordinates(longitude, latitude)
    extent = float(x.min()), float(y.min()), float(x.max()), float(y.max())
    pixel = resolution or round(_row_height(scene, crs) * target.radius, 1)
    grid = _grid(target, extent, pixel, height * width)

    def covering(x: Floats, y: Floats) -> Integers:
        return _pixel_at(scene, crs, *target.places(x, y))

    return Projection(grid, _lookup(grid, height * width, covering))


def _target(system: System, latitude: float) -> Target:
    side = system if system == "equirectangular" else "north" if latitude >= 0 else "south"
    return Target(pyproj.CRS.from_user_input(_CODES[side]), system == "polar")


def _grid(target: Target, extent: tuple[float, float, float, float], pixel: float, n_pixels: int) -> Grid:
    """The grid that holds the extent, its corners at whole pixels from the origin, so that scenes share one raster."""
    left, bottom = (np.floor(value / pixel) for value in extent[:2])
    right, top = (np.ceil(value / pixel) for value in extent[2:])
    width, height = int(right - left), int(top - bottom)
    if width * height > _MOST_LARGER * max(n_pixels, 4096):
        raise InputError(
            f"the scene of {n_pixels} pixels would take {height} × {width} on the map {target.crs.name!r} at {pixel:g} "
            "m; set products.crs: polar near a pole, or a larger products.resolution"
        )
    transform = (pixel, 0.0, float(left * pixel), 0.0, -pixel, float(top * pixel))
    return Grid(height=height, width=width, crs=target.crs.to_wkt(), transform=transform)


def _lookup(grid: Grid, n_pixels: int, covering: Callable[[Floats, Floats], Integers]) -> NDArray[np.integer]:
    """Which of the scene's pixels covers the centre of each pixel of the grid, found block of rows by block of rows."""
    source = np.empty((grid.height, grid.width), dtype=np.int32 if n_pixels < 2**31 else np.int64)
    for start in range(0, grid.height, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, grid.height)
        row, col = np.meshgrid(np.arange(start, stop) + 0.5, np.arange(grid.width) + 0.5, indexing="ij")
        source[start:stop] = covering(*_on_map(grid, col, row))
    return source


def _pixel_at(scene: Grid, crs: pyproj.CRS, longitude: Floats, latitude: Floats) -> Integers:
    """The pixel of a scene on a map that covers each place, -1 where there is none."""
    assert scene.transform is not None
    a, b, c, d, e, f = scene.transform
    x, y = mars.from_planetocentric(longitude, latitude, crs)
    period = mars.turn(crs)
    if period is not None:
        x = x - period * np.round((x - _on_map(scene, np.array(scene.width / 2), np.array(0.0))[0]) / period)
    with np.errstate(invalid="ignore"):
        col = np.floor((e * (x - c) - b * (y - f)) / (a * e - b * d))
        row = np.floor((a * (y - f) - d * (x - c)) / (a * e - b * d))
        inside = (col >= 0) & (col < scene.width) & (row >= 0) & (row < scene.height)
    found = np.where(inside, row, 0.0) * scene.width + np.where(inside, col, 0.0)
    return np.where(inside, found, -1).astype(np.int64)


def _on_map(grid: Grid, col: Floats, row: Floats) -> tuple[Floats, Floats]:
    assert grid.transform is not None
    a, b, c, d, e, f = grid.transform
    return a * col + b * row + c, d * col + e * row + f


def _spacing(longitude: Floats, latitude: Floats) -> float:
    """Median distance of neighbouring pixels along the closer direction, in radii."""
    steps = []
    for axis in (0, 1):
        scale = np.cos(np.radians(np.delete(latitude, -1, axis)))
        east = scale * ((np.diff(longitude, axis=axis) + 180.0) % 360.0 - 180.0)
        steps.append(np.nanmedian(np.hypot(east, np.diff(latitude, axis=axis))))
    return float(np.radians(min(steps)))


def _row_height(scene: Grid, crs: pyproj.CRS) -> float:
    """Height of a pixel in the middle of the scene, in radii."""
    col, row = np.full(2, scene.width / 2), np.array([0.0, 1.0]) + scene.height // 2
    longitude, latitude = mars.to_planetocentric(*_on_map(scene, col, row), crs)
    east = np.cos(np.radians(latitude[0])) * ((longitude[1] - longitude[0] + 180.0) % 360.0 - 180.0)
    return float(np.radians(np.hypot(east, latitude[1] - latitude[0])))
