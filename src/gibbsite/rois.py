"""Regions of interest of ENVI: its text export (pixels or coordinates), and its XML files (polygons and points).

What is read of the formats, as ENVI writes them. Text: comment lines `; ROI name:`, `; ROI rgb value:`, `; ROI npts:`
for each region, a comment line that names the columns, then the points of all regions in turn; samples `X` and lines
`Y` count from 1. XML: `Region` with `name` and `color`, in it `GeometryDef` with `CoordSysStr` (WKT, or `none` for
pixels counted from 0 at the outer corner) and `Polygon` (`Exterior`, `Interior`) or `Point`, each with `Coordinates`
x y x y …
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import shapely
import xarray as xr
from pyproj import CRS

from gibbsite import mars
from gibbsite.drawings import Drawing, Drawings, mend
from gibbsite.errors import InputError
from gibbsite.labels import hex_colour
from gibbsite.mars import Floats
from gibbsite.scene import grid_of

_FACT = re.compile(r"[;:]\s*(ROI name|ROI rgb value|ROI npts|File Dimensions?|Number of ROIs)\s*:\s*(.*?)\s*$")
_COLUMN = re.compile(r"Map [XY]|\S+")


def is_text(start: bytes) -> bool:
    """Whether a file that starts so is a text export of regions."""
    return bool(re.match(rb"\s*;[^\n]*\bROIs", start))


def is_xml(start: bytes) -> bool:
    """Whether a file that starts so is an XML file of regions."""
    return b"<RegionsOfInterest" in start


# --- text


@dataclass(frozen=True)
class _Region:
    """A region as the head of the text describes it."""

    name: str
    colour: str | None = None
    n_points: int | None = None


@dataclass(frozen=True)
class _Text:
    """A text export taken apart."""

    regions: Sequence[_Region]
    columns: Sequence[str]
    rows: Sequence[tuple[int, list[str]]]
    """Line number and fields of each point."""
    size: str
    """Samples x lines of the image, as written; empty when not said."""


def read_text(path: Path, cube: xr.Dataset) -> Drawings:
    """The points of a text export."""
    text = _take_apart(path)
    crs, x, y = _places(path, text, cube)
    counts = [region.n_points or 0 for region in text.regions]
    if sum(counts) != len(text.rows):
        raise InputError(
            f"{path}: found {len(text.rows)} points, but its regions count {sum(counts)} (ROI npts); export it anew"
        )
    ends = np.cumsum(counts)
    items = [
        Drawing(region.name, (shapely.multipoints(np.c_[x, y][end - n : end]),) if n else (), crs, region.colour)
        for region, n, end in zip(text.regions, counts, ends, strict=True)
    ]
    return Drawings(path, items)


def _take_apart(path: Path) -> _Text:
    regions: list[_Region] = []
    columns: list[str] = []
    rows: list[tuple[int, list[str]]] = []
    size = ""
    content = path.read_bytes()
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        lines = content.decode("latin-1").splitlines()
    for number, line in enumerate(lines, start=1):
        fact = _FACT.match(line)
        if fact and fact[1] == "ROI name":
            regions.append(_Region(fact[2]))
        elif fact and fact[1].startswith("File"):
            size = fact[2]
        elif fact and regions:
            regions[-1] = _told(regions[-1], fact[1], fact[2], f"{path}, line {number}")
        elif line.startswith(";"):
            columns = _COLUMN.findall(line[1:]) or columns
        elif line.strip():
            rows.append((number, line.split()))
    if not regions:
        raise InputError(f"{path}: no region (line '; ROI name: …'); export the regions of ENVI anew")
    return _Text(regions, columns, rows, size)


def _told(region: _Region, key: str, value: str, where: str) -> _Region:
    if key == "ROI rgb value":
        return replace(region, colour=hex_colour(value, where))
    if key == "ROI npts" and not value.isdecimal():
        raise InputError(f"{where}: found ROI npts {value!r}, expected a whole number; export it anew")
    return replace(region, n_points=int(value)) if key == "ROI npts" else region


def _places(path: Path, text: _Text, cube: xr.Dataset) -> tuple[CRS | None, Floats, Floats]:
    """Coordinate system, x and y of the points: pixels where the text has them, else longitude and latitude."""
    if {"X", "Y"} <= set(text.columns):
        grid = grid_of(cube)
        if text.size and [part for part in re.split(r"\D+", text.size) if part] != [str(grid.width), str(grid.height)]:
            raise InputError(
                f"{path}: regions of an image of {text.size} (samples x lines), expected the scene's {grid.width} x "
                f"{grid.height}; draw them on this scene, or export latitudes and longitudes alone"
            )
        # ENVI counts from 1; the middle of the pixel is as good a place in it as any.
        return None, _column(path, text, "X") - 0.5, _column(path, text, "Y") - 0.5
    if {"Lat", "Lon"} <= set(text.columns):
        return mars.DEGREES, _column(path, text, "Lon"), _column(path, text, "Lat")
    raise InputError(
        f"{path}: found the columns {', '.join(text.columns) or 'none'}, expected X and Y, or Lat and Lon, which say "
        "where the points are; export them too"
    )


def _column(path: Path, text: _Text, name: str) -> Floats:
    at, values = text.columns.index(name), []
    for number, fields in text.rows:
        try:
            values.append(float(fields[at]))
        except (ValueError, IndexError):
            found = repr(fields[at]) if at < len(fields) else "nothing"
            raise InputError(f"{path}, line {number}: found {found} as {name}, expected a number") from None
    return np.array(values)


# --- XML


def read_xml(path: Path) -> Drawings:
    """The polygons and points of an XML file."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise InputError(f"{path}: not readable as XML ({error}); save the regions anew") from None
    items: list[Drawing] = []
    remarks: list[str] = []
    for region in root.iter("Region"):
        name, where = region.get("name", ""), f"{path}: region {region.get('name', '')!r}"
        colour = hex_colour(region.get("color", ""), where) if region.get("color") else None
        # A region without a shape still names a class.
        items.append(Drawing(name, (), None, colour))
        for part in region:
            if part.tag != "GeometryDef":
                _refuse(part.tag, where)
            crs, drawn = _geometry(part, name, path)
            items.append(Drawing(name, [shape for shape, _ in drawn], crs, colour))
            remarks += [told for _, told in drawn if told]
    if not items:
        raise InputError(f"{path}: no region; draw some in ENVI and save them anew")
    return Drawings(path, items, tuple(remarks))


def _geometry(part: Element, name: str, path: Path) -> tuple[CRS | None, list[tuple[shapely.Geometry, str]]]:
    """Coordinate system, and shapes with a sentence where one was repaired."""
    where = f"{path}: region {name!r}"
    system = part.findtext("CoordSysStr", "none").strip()
    crs = None if system.lower() in ("", "none") else mars.read_system(system, where)
    drawn = []
    for shape in part:
        if shape.tag == "Polygon":
            drawn.append(mend(_polygon(shape, where), f"region {name!r}", path))
        elif shape.tag in ("Point", "MultiPoint"):
            drawn.append((shapely.multipoints(_pairs(shape, where)), ""))
        elif shape.tag != "CoordSysStr":
            _refuse(shape.tag, where)
    return crs, drawn


def _refuse(tag: str, where: str) -> NoReturn:
    raise InputError(
        f"{where} holds a {tag}, expected polygons or points; convert it in ENVI, or export the regions as text or "
        "as a classification image"
    )


def _polygon(shape: Element, where: str) -> shapely.Polygon:
    outer, holes = (
        [_pairs(ring, where) for ring in shape.iterfind(f"{side}/LinearRing")] for side in ("Exterior", "Interior")
    )
    if len(outer) != 1 or any(len(ring) < 3 for ring in outer + holes):
        raise InputError(f"{where} has a polygon without an outline of three corners or more; draw it anew")
    return shapely.Polygon(outer[0], holes)


def _pairs(element: Element, where: str) -> Floats:
    """Coordinates (n, 2) of all `Coordinates` in an element."""
    words = " ".join(item.text or "" for item in element.iter("Coordinates")).split()
    try:
        numbers = np.array([float(word) for word in words])
    except ValueError:
        raise InputError(f"{where} has coordinates that are not numbers; save the regions anew") from None
    if not len(numbers) or len(numbers) % 2 or not np.isfinite(numbers).all():
        raise InputError(f"{where} has {len(numbers)} coordinates, expected pairs of numbers; save the regions anew")
    return numbers.reshape(-1, 2)
