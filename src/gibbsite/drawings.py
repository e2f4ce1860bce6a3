"""Drawn shapes to the pixels they mark.

Pixel centres are brought to the coordinates of the drawing, never its polygons to those of the scene: edges stay as the
user drew them, and scenes in sensor space need no other way than scenes on a map. A polygon marks the pixels whose
centre it holds, a point the pixel that holds it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import shapely
import xarray as xr
from numpy.typing import NDArray
from pyproj import CRS

from gibbsite import mars, places
from gibbsite.errors import InputError
from gibbsite.labels import Claim, Found
from gibbsite.mars import Floats
from gibbsite.scene import grid_of

LINES_AT_ONCE = 256

Indices = NDArray[np.int64]
Areas = Mapping[str, shapely.Geometry]
"""Class, as the file spells it -> all its polygons joined."""


@dataclass(frozen=True)
class Drawing:
    """Polygons or points of one class."""

    name: str
    """Of the class, as the file spells it."""
    shapes: Sequence[shapely.Geometry]
    """Polygons and points; valid."""
    crs: CRS | None
    """Their coordinate system, on Mars; None: pixels of the scene, x = column, y = row, from the outer corner."""
    colour: str | None = None
    """`#rrggbb`, where the file has one."""


@dataclass(frozen=True)
class Drawings:
    """What a file holds."""

    path: Path
    """The file."""
    items: Sequence[Drawing]
    """One per class and coordinate system, or more."""
    remarks: tuple[str, ...] = field(default=())
    """What was repaired."""


def mend(shape: shapely.Geometry, where: str, path: Path) -> tuple[shapely.Geometry, str]:
    """The shape; one whose outline crosses itself is repaired, with a sentence that says so."""
    if shape.is_valid:
        return shape, ""
    why = shapely.is_valid_reason(shape)
    is_finite = np.isfinite(shapely.get_coordinates(shape)).all()
    mended = shapely.make_valid(shape, method="structure", keep_collapsed=False) if is_finite else shape
    if not is_finite or mended.is_empty:
        raise InputError(
            f"{path}: invalid geometry in {where} ({why}), expected an outline around an area; draw it anew"
        )
    return mended, f"{where} is invalid ({why}) and was repaired; check its outline"


def burn(drawings: Drawings, cube: xr.Dataset) -> Found:
    """The pixels that each class claims; an InputError when nothing lies in the scene."""
    claims = [Claim(item.name, np.empty(0, np.int64), item.colour) for item in drawings.items]
    remarks: list[str] = []
    missed: list[str] = []
    systems = _by_system(drawings.items)
    for crs, items in systems:
        if crs is not None:
            what = "the layer" if len(systems) == 1 else f"region {items[0].name!r}"
            places.check_placeable(crs, cube, f"{drawings.path}: {what}")
        areas = _areas(items, crs)
        if areas:
            marked, miss = _burn_areas(areas, cube, crs)
            claims += marked
            missed += miss
        points = [(item.name, shape) for item in items for shape in item.shapes if not _has_area(shape)]
        if points:
            marked, told = _burn_points(points, cube, crs)
            claims += marked
            (remarks if any(len(claim.pixels) for claim in marked) else missed).extend(told)
    if missed and not any(len(claim.pixels) for claim in claims):
        raise InputError(
            f"{drawings.path}: {missed[0]}; check that they belong to this scene and carry the right coordinate system"
        )
    return Found(claims, (*drawings.remarks, *remarks, *missed))


def _by_system(items: Iterable[Drawing]) -> list[tuple[CRS | None, list[Drawing]]]:
    """The drawings of each coordinate system, in the order of the file."""
    groups: dict[str, tuple[CRS | None, list[Drawing]]] = {}
    for item in items:
        key = item.crs.to_wkt() if item.crs is not None else ""
        groups.setdefault(key, (item.crs, []))[1].append(item)
    return list(groups.values())


def _has_area(shape: shapely.Geometry) -> bool:
    return shape.geom_type in ("Polygon", "MultiPolygon")


# --- areas


def _areas(items: Iterable[Drawing], crs: CRS | None) -> dict[str, shapely.Geometry]:
    polygons: dict[str, list[shapely.Geometry]] = {}
    for item in items:
        polygons.setdefault(item.name, []).extend(shape for shape in item.shapes if _has_area(shape))
    turn = mars.turn(crs) if crs is not None else None
    return {name: shapely.union_all(_unbroken(shapes, turn)) for name, shapes in polygons.items() if shapes}


def _unbroken(shapes: Sequence[shapely.Geometry], turn: float | None) -> NDArray[np.object_]:
    """The polygons; one drawn over the seam of the map, whose corners lie at both ends, is put together again."""
    parts = shapely.get_parts(np.array(shapes, dtype=object))
    if turn is None:
        return parts
    for i in np.flatnonzero(_width(parts) > turn / 2):
        middle = 0.0 if shapely.bounds(parts[i])[0] >= 0 else turn / 2
        closed = shapely.transform(parts[i], lambda xy, at=middle: np.c_[mars.near(xy[:, 0], at, turn), xy[:, 1]])
        # A polygon around the whole planet has nothing to put together: it would become a line.
        if closed.area > 0 and _width(closed) < turn / 2:
            parts[i] = shapely.make_valid(closed)
    return parts


def _width(shapes: shapely.Geometry | NDArray[np.object_]) -> Floats:
    bounds = shapely.bounds(shapes)
    return bounds[..., 2] - bounds[..., 0]


def _burn_areas(areas: Areas, cube: xr.Dataset, crs: CRS | None) -> tuple[list[Claim], list[str]]:
    """The pixels of each class, and a sentence when all polygons lie outside the scene."""
    grid = grid_of(cube)
    turn = mars.turn(crs) if crs is not None else None
    bounds = shapely.total_bounds(list(areas.values()))
    extent = np.array([np.inf, np.inf, -np.inf, -np.inf])
    claims = []
    for area in areas.values():
        shapely.prepare(area)
    for start in range(0, grid.height, LINES_AT_ONCE):
        rows = slice(start, min(start + LINES_AT_ONCE, grid.height))
        x, y = places.centres(cube, rows, crs)
        if turn is not None:
            x = mars.near(x, (bounds[0] + bounds[2]) / 2, turn)
        extent = _widen(extent, x, y)
        for name, area in areas.items():
            inside = _contains(area, x, y, turn)
            claims.append(Claim(name, start * grid.width + np.flatnonzero(inside)))
    if (bounds[:2] > extent[2:]).any() or (bounds[2:] < extent[:2]).any():
        return claims, [f"its polygons ({_corners(bounds)}) lie outside the scene ({_corners(extent)})"]
    return claims, []


def _contains(area: shapely.Geometry, x: Floats, y: Floats, turn: float | None) -> NDArray[np.bool_]:
    """A claim per centre: it lies inside the area (not on its rim), maybe a turn of longitude away."""
    west, south, east, north = area.bounds
    held = np.zeros(x.shape, bool)
    for shift in (0.0,) if turn is None else (0.0, turn, -turn):
        moved = x + shift
        inside = (moved >= west) & (moved <= east) & (y >= south) & (y <= north)
        held[inside] |= shapely.contains_xy(area, moved[inside], y[inside])
    return held


def _widen(extent: Floats, x: Floats, y: Floats) -> Floats:
    """The extent (west, south, east, north), widened to hold the finite centres."""
    placed = np.isfinite(x) & np.isfinite(y)
    if not placed.any():
        return extent
    x, y = x[placed], y[placed]
    return np.array(
        [min(extent[0], x.min()), min(extent[1], y.min()), max(extent[2], x.max()), max(extent[3], y.max())]
    )


def _corners(extent: Floats) -> str:
    west, south, east, north = (f"{value:.6g}" for value in extent)
    return f"x {west} to {east}, y {south} to {north}"


# --- points


def _burn_points(
    points: Sequence[tuple[str, shapely.Geometry]], cube: xr.Dataset, crs: CRS | None
) -> tuple[list[Claim], list[str]]:
    """The pixels of each class, and a sentence when points lie outside the scene."""
    names = np.array([name for name, _ in points], dtype=object)
    place, owner = shapely.get_coordinates([shape for _, shape in points], return_index=True)
    pixel = places.pixels_of(place[:, 0], place[:, 1], crs, cube)
    inside = pixel != places.OUTSIDE
    claims = [Claim(name, pixel[inside & (names[owner] == name)]) for name in dict.fromkeys(names.tolist())]
    if inside.all():
        return claims, []
    x, y = place[np.flatnonzero(~inside)[0]]
    return claims, [
        f"{(~inside).sum()} of {len(place)} points lie outside the scene, the first at x {x:.6g}, y {y:.6g}"
    ]
