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


def coordinate_system(system: object, what: str) -> CRS:
    """The coordinate system, refused unless it is one of Mars that counts east and north."""
    if system is None:
        raise InputError(f"{what} has no coordinate system; give it the one of Mars it was drawn in")
    try:
        crs = CRS.from_user_input(system)
    except CRSError:
        raise InputError(f"{what} has an unreadable coordinate system; give it one of Mars") from None
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


def _own_degrees(crs: CRS) -> CRS:
    """Longitude and latitude on the very sphere of the system, so that no datum shift comes between."""
    assert crs.ellipsoid is not None
    radius = crs.ellipsoid.semi_major_metre
    # Files keep the flattening of a spheroid, but not whether its latitudes are planetographic nor whether
    # its longitudes count west: IAU_2015:49901 and 49902 come back alike from a GeoPackage. A guess errs by
    # up to 20 km.
    if crs.ellipsoid.semi_minor_metre != radius:
        raise InputError(
            f"the coordinate system {crs.name!r} is on a flattened Mars, where files do not tell which "
            "latitude is meant; save the layer in the scene's own system, or on a sphere (IAU_2015:49900)"
        )
    return CRS.from_dict({"proj": "longlat", "R": radius, "no_defs": True})


def check_axes(system: object, what: str, must_be_mars: bool) -> None:
    """Nothing, when the coordinate system counts east and north, and is of Mars if it must be; else an InputError."""
    if must_be_mars:
        # On a flattened Mars too: GeoTIFFs forget that IAU_2015:49911 counts west, but keep its flattening.
        _own_degrees(coordinate_system(system, what))
        return
    crs = CRS.from_user_input(system)
    if any(axis.direction == "west" for axis in crs.axis_info):
        raise InputError(
            f"{what} has the coordinate system {crs.name!r}, which counts west; save it in one counting east"
        )


def full_turn(crs: CRS) -> float | None:
    """Map units of 360° of longitude where longitude runs along x (degrees, equirectangular); None elsewhere."""
    if crs.is_geographic:
        return 360.0
    operation = crs.coordinate_operation
    if operation is None or "Equidistant Cylindrical" not in operation.method_name:
        return None
    meridian = next((float(value.value) for value in operation.params if "ongitude" in value.name), 0.0)
    x, _ = from_planetocentric(np.array([meridian - 90.0, meridian + 90.0]), np.zeros(2), crs)
    return float(2 * (x[1] - x[0]))
