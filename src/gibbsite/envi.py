"""ENVI images (`.hdr` + `.img`): facts from the header, pixels by memory map, the CRS from its own WKT.

GDAL's ENVI driver is not used: it reads a truncated file as zeros and never applies the list of bad bands.
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.errors import CRSError

from gibbsite import bands, image
from gibbsite.errors import InputError
from gibbsite.image import Layout
from gibbsite.scene import Transform

_COMMENT = re.compile(r"(\{[^}]*\})|^[ \t]*;.*$", re.MULTILINE)
# A value ends with its line, or its brace: the line after an empty value is a field of its own.
_FIELD = re.compile(r"^[ \t]*([A-Za-z][^=\n{]*?)[ \t]*=(\s*\{[^}]*\}|[^\n]*)", re.MULTILINE)
_DTYPES = {1: "u1", 2: "i2", 3: "i4", 4: "f4", 5: "f8", 12: "u2", 13: "u4", 14: "i8", 15: "u8"}
_SUFFIXES = (".img", ".sli", ".dat", ".raw", ".bsq", ".bil", ".bip", "")
_NO_IMAGES = (".hdr", ".lbl", ".tab", ".txt", ".xml")


@dataclass(frozen=True)
class Header:
    """An ENVI header: where the pixels are and what they mean."""

    path: Path
    """The header file."""
    fields: dict[str, str]
    """Every field, name in lower case, outer braces taken off."""
    layout: Layout
    """Where the pixels are."""


def header_beside(path: Path) -> Path | None:
    """The header that belongs to `path` (an image, a label, or a header itself): `x.img.hdr` or `x.hdr`."""
    if path.suffix.lower() == ".hdr":
        return path
    return image.find(path.parent, path.name + ".hdr") or image.sibling(path, ".hdr")


def read_header(path: Path) -> Header:
    """The header at `path`; an InputError when it is no ENVI header or lacks what pixels need."""
    try:
        text = _decoded(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot read the header ({error.strerror}); check the path") from None
    if not text.lstrip().startswith("ENVI"):
        raise InputError(f"{path}: not an ENVI header (its first word is not ENVI); give the product's own .hdr")
    text = _COMMENT.sub(lambda found: found[1] or "", text)
    if text.count("{") != text.count("}"):
        raise InputError(f"{path}: broken header (a brace is never closed); fetch it anew")
    found = {" ".join(key.lower().split()): _bare(value) for key, value in _FIELD.findall(text)}
    fields = {key: value for key, value in found.items() if value}
    return Header(path=path, fields=fields, layout=_layout(path, fields))


def image_file(header: Header, given: Path | None = None) -> Path:
    """The header's image, checked against its size: the file given, if that is an image, else the one beside it."""
    stem = header.path.stem
    found = (image.find(header.path.parent, stem + suffix) for suffix in _SUFFIXES)
    path = given
    if path is None or path.suffix.lower() in _NO_IMAGES:
        path = next((entry for entry in found if entry is not None and entry.is_file()), None)
    if path is None:
        raise InputError(f"{header.path}: no image beside it; expected {stem}.img in the same folder")
    image.check_size(path, header.layout.end, header.path)
    return path


def wavelengths(header: Header, count: int | None = None) -> NDArray[np.float64] | None:
    """Wavelength (band) in µm, `count` of them, else one per band; None when the header has none."""
    values = _numbers(header, "wavelength", count or header.layout.bands)
    if values is None:
        return None
    listed = listed_good(header) if len(values) == header.layout.bands else None
    return bands.micrometres(values, header.fields.get("wavelength units", ""), header.path, listed)


def listed_good(header: Header) -> NDArray[np.bool_]:
    """Whether each band is good by the header's `bbl`; all are when it has none."""
    values = _numbers(header, "bbl", header.layout.bands)
    return np.ones(header.layout.bands, dtype=bool) if values is None else values != 0


def fill_value(header: Header) -> float | None:
    """What the image holds where there is no data; None when the header does not say."""
    values = _numbers(header, "data ignore value", 1)
    if values is None:
        return None
    # The least and the largest number are often written with six digits, and then are others.
    extremes = [sign * float(np.finfo(kind).max) for sign in (-1, 1) for kind in (np.float32, np.float64)]
    return next((extreme for extreme in extremes if abs(values[0] / extreme - 1.0) < 1e-5), float(values[0]))


def scale_factor(header: Header) -> float:
    """What the pixels must be divided by to be reflectance."""
    values = _numbers(header, "reflectance scale factor", 1)
    if values is not None and values[0] <= 0:
        raise InputError(f"{header.path}: found reflectance scale factor {values[0]}, expected a number above 0")
    scale = 1.0 if values is None else float(values[0])
    gains = _numbers(header, "data gain values", header.layout.bands)
    offsets = _numbers(header, "data offset values", header.layout.bands)
    gain = 1.0 if gains is None else float(gains[0])
    is_one = (gains is None or (gains == gain).all()) and (offsets is None or not offsets.any())
    if is_one and gain == 1.0:
        return scale
    # A header that tells both says the same thing twice.
    if is_one and gain > 0.0 and (scale == 1.0 or abs(scale * gain - 1.0) < 1e-6):
        return 1.0 / gain
    raise InputError(
        f"{header.path}: found 'data gain values' or 'data offset values' that differ from band to band, or from the "
        "reflectance scale factor; expected one scale for all bands: apply them, for example by "
        "`gdal_translate -unscale -ot Float32` to a GeoTIFF"
    )


def band_named(header: Header, name: str) -> int:
    """Index of the band called `name`."""
    names = band_names(header)
    if name not in names:
        raise InputError(f"{header.path}: no band named '{name}' among its band names; fetch the product anew")
    return names.index(name)


def band_names(header: Header) -> tuple[str, ...]:
    """The names of the bands; empty when the header has none, or not one for each."""
    names = [" ".join(part.split()) for part in header.fields.get("band names", "").split(",")]
    return tuple(names) if len(names) == header.layout.bands else ()


def map_grid(header: Header) -> tuple[str, Transform] | None:
    """CRS (WKT) and transform of a map-projected image; None for an image that is not on a map.

    The CRS is that of the `coordinate system string`: each MTR3 has its own Mars sphere there, and `projection info`
    is read by others as a local system without a planet. Without it, UTM on WGS-84 is taken from `map info`.
    """
    info = [part.strip() for part in header.fields.get("map info", "").split(",")]
    if len(info) < 7 or info[0].lower() == "arbitrary":
        return None
    text = header.fields.get("coordinate system string", "")
    try:
        crs = CRS.from_wkt(text) if text else _named_system(info)
    except CRSError:
        crs = CRS()
    if not (crs.is_projected or crs.is_geographic):
        found = f"'{text[:60]}'" if text else "none"
        raise InputError(
            f"{header.path}: cannot make a coordinate system; found coordinate system string {found}, "
            "expected WKT of a map projection (PROJCS or GEOGCS)"
        )
    return crs.to_wkt(), _transform(header, info)


def _named_system(info: list[str]) -> CRS:
    """The system that `map info` alone names beyond doubt: on WGS-84, UTM, as AVIRIS headers have it, or degrees."""
    if info[0].lower() == "geographic lat/lon" and len(info) >= 8 and info[7].lower().replace("-", " ") == "wgs 84":
        return CRS.from_epsg(4326)
    is_utm = info[0].lower() == "utm" and len(info) >= 10 and info[9].lower().replace("-", " ") == "wgs 84"
    if not is_utm or not info[7].isdecimal() or info[8].lower() not in ("north", "south"):
        raise CRSError("no coordinate system string")
    return CRS.from_epsg((32600 if info[8].lower() == "north" else 32700) + int(info[7]))


def _transform(header: Header, info: list[str]) -> Transform:
    """Pixel corners to map coordinates, from the tie point, pixel size and counter-clockwise rotation of `map info`."""
    rotation = [part.partition("=")[2] for part in info[7:] if part.lower().startswith("rotation")]
    try:
        column, row, x, y, dx, dy = (float(part) for part in info[1:7])
        (turn,) = (float(part) for part in rotation or ["0"])
        if not math.isfinite(turn):
            raise ValueError
    except ValueError:
        raise InputError(
            f"{header.path}: map info {info[1:7]} is not six numbers, or its rotation {rotation} is not one; fetch the "
            "header anew"
        ) from None
    if dx == 0 or dy == 0:
        raise InputError(f"{header.path}: map info has pixels of {dx:g} × {dy:g}; expected a size: mend the header")
    if turn % 360.0 == 180.0:
        raise InputError(
            f"{header.path}: map info has a rotation of {turn:g}, which some programs write for an image that is "
            "upside down, others for one that is turned; warp it north-up first"
        )
    # Rounded, so that quarters of a turn are exact.
    cos, sin = round(math.cos(math.radians(turn)), 15), round(math.sin(math.radians(turn)), 15)
    a, b, d, e = dx * cos, dy * sin, dx * sin, -dy * cos
    # ENVI counts from 1 at the corner of the first pixel.
    return a, b, x - (column - 1) * a - (row - 1) * b, d, e, y - (column - 1) * d - (row - 1) * e


def _layout(path: Path, fields: dict[str, str]) -> Layout:
    lines, samples, bands = (_whole(path, fields, key, None) for key in ("lines", "samples", "bands"))
    code, order = _whole(path, fields, "data type", None), _whole(path, fields, "byte order", 0)
    interleave = fields.get("interleave", "").lower()
    if code not in _DTYPES:
        raise InputError(f"{path}: found data type {code}, expected one of {sorted(_DTYPES)} (real numbers)")
    if interleave not in ("bsq", "bil", "bip"):
        raise InputError(f"{path}: found interleave '{interleave}', expected bsq, bil or bip")
    if order not in (0, 1) or min(lines, samples, bands) < 1:
        raise InputError(f"{path}: found {lines} lines, {samples} samples, {bands} bands, byte order {order}; broken")
    offset = _whole(path, fields, "header offset", 0)
    return Layout(lines, samples, bands, dtype="<>"[order] + _DTYPES[code], interleave=interleave, offset=offset)


def _whole(path: Path, fields: dict[str, str], key: str, default: int | None) -> int:
    text = fields.get(key, default)
    if text is None:
        raise InputError(f"{path}: header lacks '{key}'; fetch it anew")
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{path}: found {key} = {text}, expected a whole number; fetch the header anew") from None


def _numbers(header: Header, key: str, count: int) -> NDArray[np.float64] | None:
    """The `count` numbers of a field; None when the header does not have it."""
    if key not in header.fields:
        return None
    parts = [part for part in re.split(r"[,\s]+", header.fields[key]) if part]
    try:
        values = np.array([float(part) for part in parts])
    except ValueError:
        raise InputError(
            f"{header.path}: '{key}' holds something that is not a number; fetch the header anew"
        ) from None
    if values.size != count:
        raise InputError(f"{header.path}: {values.size} numbers in '{key}' for {count}; broken header: fetch it anew")
    return values


def _decoded(text: bytes) -> str:
    """The text of a header: UTF-8, as today's tools write it, or else Latin-1."""
    try:
        return text.decode("utf-8-sig")
    except UnicodeError:
        return text.decode("latin-1")


def _bare(value: str) -> str:
    return value.strip().removeprefix("{").removesuffix("}").strip()
