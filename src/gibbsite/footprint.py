"""The outline of a scene as GeoJSON (RFC 7946): right across the 180° meridian and around a pole too."""

from typing import Any

import numpy as np
import shapely
from shapely.geometry.polygon import orient

from gibbsite import ground
from gibbsite.ground import Floats
from gibbsite.scene import Grid

DIGITS = 7
"""Decimals of degrees: 6 mm on Mars."""


def outline(grid: Grid) -> tuple[dict[str, Any], list[float]] | tuple[None, None]:
    """Geometry and bounding box (west, south, east, north) of a grid; None when it lies nowhere.

    A scene across the 180° meridian is cut there, and its box has west > east. One around a pole is told as the cap
    that holds it.
    """
    border = ground.footprint(grid)
    if border is None:
        return None, None
    longitude, latitude = (np.round(values, DIGITS) for values in border)
    turn = np.unwrap(longitude, period=360.0)
    if abs(turn[-1] - turn[0]) > 180.0:
        return _cap(latitude)
    ring = shapely.Polygon(np.stack([_shifted(turn), latitude], axis=-1))
    # A border that is a line on the ground has no inside; its box has.
    ring = ring if ring.is_valid and ring.area > 0 else shapely.box(*ring.bounds)
    west, south, east, north = ring.bounds
    if east - west >= 360.0:
        return _geojson(shapely.box(-180.0, south, 180.0, north)), [-180.0, south, 180.0, north]
    if east <= 180.0:
        return _geojson(ring), [west, south, east, north]
    here = shapely.intersection(ring, shapely.box(-180.0, -90.0, 180.0, 90.0))
    beyond = shapely.transform(
        shapely.intersection(ring, shapely.box(180.0, -90.0, 540.0, 90.0)), lambda points: points - (360.0, 0.0)
    )
    parts = shapely.MultiPolygon([*shapely.get_parts(here), *shapely.get_parts(beyond)])
    return _geojson(parts), [west, south, round(east - 360.0, DIGITS), north]


def _shifted(longitude: Floats) -> Floats:
    """The longitudes by whole turns, so that the westernmost lies within -180 .. 180."""
    return np.round(longitude - 360.0 * np.floor((longitude.min() + 180.0) / 360.0), DIGITS)


def _cap(latitude: Floats) -> tuple[dict[str, Any], list[float]]:
    edge = float(latitude[np.abs(latitude).argmin()])
    south, north = (edge, 90.0) if edge > 0 else (-90.0, edge)
    return _geojson(shapely.box(-180.0, south, 180.0, north)), [-180.0, south, 180.0, north]


def _geojson(shape: shapely.Polygon | shapely.MultiPolygon) -> dict[str, Any]:
    """The shape with its outer rings counter-clockwise."""
    parts = [orient(part) for part in shapely.get_parts(shape)]
    rings = [[[list(map(float, point)) for point in ring.coords] for ring in _rings(part)] for part in parts]
    return {"type": "Polygon", "coordinates": rings[0]} if len(rings) == 1 else _multi(rings)


def _multi(rings: list[Any]) -> dict[str, Any]:
    return {"type": "MultiPolygon", "coordinates": rings}


def _rings(polygon: shapely.Polygon) -> list[Any]:
    return [polygon.exterior, *polygon.interiors]
