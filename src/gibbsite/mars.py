"""Coordinate systems of Mars, and the way between two of them.

Every product has its own sphere, and a datum shift between spheres would move pixels. So places travel as
planetocentric longitude and latitude, which all spheres share; Earth's systems are refused, never shifted.
"""

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS, Transformer
from pyproj.exceptions import CRSError

from gibbsite.errors import InputError

RADIUS = (3.3e6, 3.45e6)
"""Metres: every sphere and spheroid in use for Mars lies between."""

Floats = NDArray[np.float64]

DEGREES = CRS.from_dict({"proj": "longlat", "R": 3_396_190.0, "no_defs": True})
"""Planetocentric longitude and latitude, east and north."""


def read_system(system: object, what: str) -> CRS:
    """The coordinate system, of whatever body."""
    if system is None:
        raise InputError(f"{what} has no coordinate system; give it the one of Mars it was drawn in")
    try:
        return CRS.from_user_input(system)
    except CRSError:
        raise InputError(f"{what} has an unreadable coordinate system; give it one of Mars") from None


def coordinate_system(system: object, what: str) -> CRS:
    """The coordinate system, refused unless it is one of Mars that counts east and north."""
    crs = read_system(system, what)
    radius = crs.ellipsoid.semi_major_metre if crs.ellipsoid else 0.0
    if not RADIUS[0] <= radius <= RADIUS[1]:
        raise InputError(
            f"{what} has the coordinate system {crs.name!r} on a body of radius {radius / 1e3:.0f} km, "
            "expected Mars (3396 km); assign the right one (a GeoJSON that names none counts as Earth)"
        )
    if not (crs.is_geographic or crs.is_projected) or any(axis.direction == "west" for axis in crs.axis_info):
        raise InputError(
            f"{what} has the coordinate system {crs.name!r}, which does not count plain east and north; "
            "save it in IAU_2015:49900 or 49910"
        )
    return crs


def to_planetocentric(x: Floats, y: Floats, crs: CRS) -> tuple[Floats, Floats]:
    """Longitude and latitude, degrees east and north, of coordinates in the system."""
    longitude, latitude = Transformer.from_crs(crs, _own_degrees(crs), always_xy=True).transform(x, y)
    return longitude, latitude


def from_planetocentric(longitude: Floats, latitude: Floats, crs: CRS) -> tuple[Floats, Floats]:
    """Coordinates in the system of longitude and latitude, degrees east and north; inf where it has none."""
    x, y = Transformer.from_crs(_own_degrees(crs), crs, always_xy=True).transform(longitude, latitude)
    return x, y


def turn(crs: CRS) -> float | None:
    """How far x goes in a whole turn of longitude; None where x does not run with longitude alone."""
    if crs.is_geographic:
        return 360.0
    if _is_flattened(crs):
        return None
    longitude, latitude = np.meshgrid([0.0, 1.0, 2.0], [0.0, 50.0])
    x, _ = from_planetocentric(longitude, latitude, crs)
    with np.errstate(invalid="ignore"):
        step = np.diff(x, axis=1)
    # The map's seam may lie within one of the two degrees.
    step = step[:, np.argmin(np.abs(step[0]))]
    is_cylinder = np.isfinite(step).all() and np.isclose(step[0], step[1])
    return float(360.0 * step[0]) if is_cylinder else None


def near(x: Floats, middle: float, turn: float) -> Floats:
    """The same places, not more than half a turn from the middle."""
    return middle + (x - middle + turn / 2) % turn - turn / 2


def _is_flattened(crs: CRS) -> bool:
    assert crs.ellipsoid is not None
    return crs.ellipsoid.semi_minor_metre != crs.ellipsoid.semi_major_metre


def check_sphere(crs: CRS, what: str) -> None:
    """Refuse a system on a flattened Mars, which cannot be brought to another."""
    # Files keep the flattening of a spheroid, but not whether its latitudes are planetographic nor whether
    # its longitudes count west: IAU_2015:49901 and 49902 come back alike from a GeoPackage. A guess errs by
    # up to 20 km.
    if _is_flattened(crs):
        raise InputError(
            f"{what} has the coordinate system {crs.name!r} on a flattened Mars, where files tell neither which "
            "latitude is meant nor whether longitudes count west; save it on a sphere (IAU_2015:49900)"
        )


def check_axes(system: object, what: str, must_be_mars: bool) -> None:
    """Nothing, when the coordinate system counts east and north, and is of Mars if it must be; else an InputError."""
    if must_be_mars:
        # On a flattened Mars too: GeoTIFFs forget that IAU_2015:49911 counts west, but keep its flattening.
        _own_degrees(coordinate_system(system, what))
        return
    crs = read_system(system, what)
    if not (crs.is_geographic or crs.is_projected):
        raise InputError(
            f"{what} has the coordinate system {crs.name!r}, which lies on no planet; assign the one it was made in"
        )
    if any(axis.direction == "west" for axis in crs.axis_info):
        raise InputError(
            f"{what} has the coordinate system {crs.name!r}, which counts west; save it in one counting east"
        )


def _own_degrees(crs: CRS) -> CRS:
    """Longitude and latitude on the very sphere of the system, so that no datum shift comes between."""
    check_sphere(crs, "a layer or scene")
    assert crs.ellipsoid is not None
    return CRS.from_dict({"proj": "longlat", "R": crs.ellipsoid.semi_major_metre, "no_defs": True})
