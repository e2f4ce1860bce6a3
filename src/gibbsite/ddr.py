"""DDR products: the incidence angle and the place on Mars of every pixel of a TRR3 cube."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rasterio.crs import CRS

from gibbsite import crism, image, pds
from gibbsite.errors import InputError
from gibbsite.scene import Grid, GroundPoint

_INCIDENCE_AREOID, LATITUDE, LONGITUDE, _INCIDENCE_SURFACE = 0, 3, 4, 5
"""Indices of the bands used, in the fixed order of DDR products."""
_LATTICE = 10
"""Ground points along each side: they follow the bow of an off-nadir scan and fit in a GeoTIFF header."""


@dataclass(frozen=True)
class Geometry:
    """The planes of a DDR, read by line block. Fill (65535, 1e32) becomes NaN: no angle is that large."""

    path: Path
    """The image file."""
    label: Path
    """Its label."""
    planes: NDArray[Any]
    """(line, sample, band), memory-mapped."""
    centre_longitude: float
    """Longitudes are given within 180° of this one, so they do not jump inside a scene on the meridian."""
    is_light_corrected: bool = False
    """Whether the cube was already divided by cos(incidence), so that no step may do so again."""

    def incidence(self, lines: slice) -> NDArray[np.float32]:
        """Degrees at the MOLA surface, at the areoid where the surface has fill, NaN where both have."""
        surface = _within(self.planes[lines, :, _INCIDENCE_SURFACE], 0, 180)
        areoid = _within(self.planes[lines, :, _INCIDENCE_AREOID], 0, 180)
        return np.where(np.isnan(surface), areoid, surface)

    def latitude(self, lines: slice) -> NDArray[np.float64]:
        """Degrees north, NaN unknown."""
        return _within(self.planes[lines, :, LATITUDE], -90, 90).astype(np.float64)

    def longitude(self, lines: slice) -> NDArray[np.float64]:
        """Degrees east, NaN unknown."""
        longitude = _within(self.planes[lines, :, LONGITUDE], -360, 360).astype(np.float64)
        return _near(longitude, self.centre_longitude)


def read_geometry(given: Path, name: crism.ProductName, shape: tuple[int, int]) -> Geometry:
    """The geometry of the cube `name` of `shape` lines and samples; an InputError when it is another's."""
    path = image.locate(given)
    label_path = image.sibling(path, ".lbl")
    if label_path is None:
        raise InputError(f"{path}: no label beside it; put {path.stem}.lbl in the same folder")
    label = pds.read_label(label_path)
    found = crism.parse_name(label.product_id)
    if found is None or found.kind != "DDR":
        raise InputError(f"{path}: found product {label.product_id}, expected a DDR (…_DE…_DDR1)")
    ours = (name.observation, name.counter, name.sensor)
    theirs = (found.observation, found.counter, found.sensor)
    if ours != theirs:
        raise InputError(
            f"{path}: geometry of {' '.join(theirs)}, but the cube is {' '.join(ours)} "
            "(observation, counter, sensor); give the DDR of the same observation"
        )
    file = pds.image_file(label)
    if file.layout.shape[:2] != shape or file.layout.bands <= _INCIDENCE_SURFACE:
        raise InputError(
            f"{path}: {file.layout.shape} lines, samples, bands do not fit the cube's {shape[0]} lines and "
            f"{shape[1]} samples; give the DDR of the same observation"
        )
    planes = pds.open_pixels(file)
    return Geometry(file.path, label_path, planes, _centre_longitude(planes, path))


def ground_grid(geometry: Geometry) -> Grid:
    """A sensor-space grid with ground points: a lattice of pixels with longitude and latitude."""
    height, width = geometry.planes.shape[:2]
    rows = np.unique(np.linspace(0, height - 1, min(_LATTICE, height)).round().astype(int))
    columns = np.unique(np.linspace(0, width - 1, min(_LATTICE, width)).round().astype(int))
    points: list[GroundPoint] = []
    for row in rows.tolist():
        line = slice(row, row + 1)
        longitude, latitude = geometry.longitude(line)[0, columns], geometry.latitude(line)[0, columns]
        known = np.isfinite(longitude) & np.isfinite(latitude)
        centres = zip(columns[known].tolist(), longitude[known].tolist(), latitude[known].tolist(), strict=True)
        points += [(float(row), float(column), east, north) for column, east, north in centres]
    return Grid(height=height, width=width, crs=_degrees(), ground_points=tuple(points))


@functools.cache
def _degrees() -> str:
    """Longitude and latitude on the sphere of Mars. To look it up takes longer than a label."""
    return str(CRS.from_user_input("IAU_2015:49900").to_wkt())


def _centre_longitude(planes: NDArray[Any], path: Path) -> float:
    """A longitude from the line nearest the middle that has any."""
    height = planes.shape[0]
    for row in sorted(range(height), key=lambda line: abs(line - height // 2)):
        known = _within(planes[row, :, LONGITUDE], -360, 360)
        known = known[np.isfinite(known)]
        if known.size:
            return float(known[known.size // 2])
    raise InputError(f"{path}: no pixel has a longitude, all is fill; fetch the DDR anew")


def _within(plane: NDArray[Any], low: float, high: float) -> NDArray[np.float32]:
    """The plane with NaN for everything outside [low, high]."""
    plane = np.asarray(plane, dtype=np.float32)
    return np.where((plane >= low) & (plane <= high), plane, np.float32(np.nan))


def _near(longitude: NDArray[np.float64], centre: float) -> NDArray[np.float64]:
    """The same longitudes, by whole turns within 180° of `centre`."""
    return longitude - 360 * np.round((longitude - centre) / 360)
