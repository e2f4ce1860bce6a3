"""MRDR map tiles: the place from the label's projection, the wavelengths from the table that the label names."""

from pathlib import Path
from typing import Any

import numpy as np
from pyproj import CRS

from gibbsite import bands, image, pds
from gibbsite.errors import InputError
from gibbsite.scene import Grid
from gibbsite.wavelength import Wavelengths

_MOST_OFF = 1.5
"""Pixels by which the size of the image may differ from what latitudes and longitudes give: tiles are rounded up."""


def wavelengths(label: pds.Label) -> Wavelengths:
    """Wavelengths of the tile's bands, from a table of sensor, detector row and nm of each band."""
    name = label.facts.get("MRO:WAVELENGTH_FILE_NAME")
    if not name:
        raise InputError(f"{label.path}: label lacks MRO:WAVELENGTH_FILE_NAME; fetch it anew")
    path = image.find(label.path.parent, str(name))
    if path is None:
        raise InputError(f"{label.path}: names the wavelength table {name}, which is not beside it; fetch that too")
    try:
        table = np.loadtxt(path, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a table of sensor, row, wavelength ({error}); fetch it anew") from None
    n_bands = pds.image_shape(label)[2]
    if table.shape != (n_bands, 3):
        raise InputError(f"{path}: {table.shape[0]} wavelengths for the {n_bands} bands of {label.path.name}")
    return Wavelengths(bands.micrometres(table[:, 2], "nm", path), f"table {path.name}", files=(path,))


def map_grid(label: pds.Label) -> Grid:
    """Where the tile lies; an InputError when the label has another projection, or contradicts itself or the image.

    The upper left corner is that of the label's outermost latitude and longitude. Offsets in pixels are not used: they
    count unscaled degrees in real labels.
    """
    part, path = label.projection, label.path
    if part is None:
        raise InputError(f"{path}: label lacks IMAGE_MAP_PROJECTION, so the tile has no place; fetch it anew")
    kind, direction = _word(part, "MAP_PROJECTION_TYPE", path), _word(part, "POSITIVE_LONGITUDE_DIRECTION", path)
    if (kind, direction) != ("EQUIRECTANGULAR", "EAST"):
        raise InputError(
            f"{path}: found projection {kind} counting {direction}, expected EQUIRECTANGULAR counting EAST"
        )
    radii = [_number(part, f"{axis}_AXIS_RADIUS", path) for axis in "ABC"]
    if len(set(radii)) > 1:
        raise InputError(f"{path}: found a flattened Mars of radii {radii}, expected a sphere")
    parallel, meridian = _number(part, "CENTER_LATITUDE", path), _number(part, "CENTER_LONGITUDE", path)
    west, north = _corner(label, parallel, meridian)
    # The words of the label, not a guess: PDS equirectangular maps keep their scale along the centre latitude.
    crs = CRS.from_dict({"proj": "eqc", "R": radii[0] * 1e3, "lat_ts": parallel, "lon_0": meridian, "units": "m"})
    metres = radii[0] * 1e3 * np.pi / 180
    pixel = metres / _number(part, "MAP_RESOLUTION", path)
    lines, samples, _ = pds.image_shape(label)
    left = metres * np.cos(np.radians(parallel)) * (west - meridian)
    return Grid(lines, samples, crs.to_wkt(), (pixel, 0.0, float(left), 0.0, -pixel, metres * north))


def _corner(label: pds.Label, parallel: float, meridian: float) -> tuple[float, float]:
    """Western longitude and northern latitude, when all that the label says of the extent agrees with the image."""
    part, path = label.projection, label.path
    west, east = (_number(part, f"{side}MOST_LONGITUDE", path) for side in ("WESTERN", "EASTERN"))
    north, south = _number(part, "MAXIMUM_LATITUDE", path), _number(part, "MINIMUM_LATITUDE", path)
    west, east = (meridian + (side - meridian + 180) % 360 - 180 for side in (west, east))
    if not west <= meridian <= east:
        raise InputError(
            f"{path}: longitudes {west % 360:g} to {east % 360:g} do not lie about their centre {meridian:g}; the "
            "label contradicts itself, so its place is not known"
        )
    resolution = _number(part, "MAP_RESOLUTION", path)
    lines, samples, _ = pds.image_shape(label)
    wide, high = (east - west) * resolution * np.cos(np.radians(parallel)), (north - south) * resolution
    if abs(wide - samples) > _MOST_OFF or abs(high - lines) > _MOST_OFF:
        raise InputError(
            f"{path}: latitudes {south:g} to {north:g} and longitudes {west:g} to {east:g} about {meridian:g} at "
            f"{resolution:g} pixels per degree make {high:.0f} lines × {wide:.0f} samples, the image has {lines} × "
            f"{samples}; the label contradicts itself or its image was cropped, so its place is not known"
        )
    return west, north


def _word(part: Any, key: str, path: Path) -> str:
    if key not in part:
        raise InputError(f"{path}: label lacks {key}; fetch it anew")
    return str(part[key]).upper()


def _number(part: Any, key: str, path: Path) -> float:
    """The number behind a key, in whatever unit it has."""
    value = getattr(part.get(key), "value", part.get(key))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{path}: found {key} = {value}, expected a number; fetch the label anew")
    return float(value)
