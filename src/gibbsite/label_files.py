"""Any label file to known classes: which format it is, and who reads it."""

from pathlib import Path

import xarray as xr

from gibbsite import class_raster, labels, points, rois, shapes
from gibbsite.drawings import burn
from gibbsite.errors import InputError
from gibbsite.labels import Found, KnownClasses
from gibbsite.settings import Labels

EXPECTED = (
    "label polygons (GeoPackage, Shapefile, GeoJSON), a class raster (GeoTIFF, ENVI classification image), "
    "regions of ENVI (XML or text) or a table of points (CSV)"
)
TABLES = (".csv", ".tsv")
"""Suffixes of tables of points."""


def read(path: Path, cube: xr.Dataset, settings: Labels) -> tuple[KnownClasses, list[Path]]:
    """The known classes of the cube's valid pixels, and the files they come from."""
    found, files = _read(path, cube, settings)
    return labels.settle(found, cube["valid"].values, path), files


def _read(path: Path, cube: xr.Dataset, settings: Labels) -> tuple[Found, list[Path]]:
    start = _start(path)
    if rois.is_xml(start):
        return burn(rois.read_xml(path), cube), [path]
    if rois.is_text(start):
        return burn(rois.read_text(path, cube), cube), [path]
    if path.suffix.lower() == ".roi":
        raise InputError(f"{path}: a binary ROI file of ENVI Classic, expected {EXPECTED}; export it as text")
    if path.suffix.lower() in TABLES:
        return burn(points.read(path, settings.class_field), cube), [path]
    if shapes.is_vector(path):
        return burn(shapes.read(path, settings.class_field, settings.layer), cube), shapes.files(path)
    return class_raster.read(path, cube, EXPECTED)


def _start(path: Path) -> bytes:
    """The first bytes of a file; none of a folder."""
    if not path.exists():
        raise InputError(f"{path}: no such file; expected {EXPECTED}")
    if path.is_dir():
        return b""
    try:
        with path.open("rb") as file:
            start = file.read(1024)
    except OSError as error:
        raise InputError(f"{path}: cannot read ({error.strerror}); check its permissions") from None
    if not start:
        raise InputError(f"{path}: empty file; expected {EXPECTED}")
    return start
