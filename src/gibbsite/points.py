"""Label points from a table: class, and row and column of a pixel, or latitude and longitude."""

import csv
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import numpy as np
import shapely

from gibbsite import mars
from gibbsite.drawings import Drawing, Drawings
from gibbsite.errors import InputError
from gibbsite.labels import hex_colour

SPELLINGS = {
    "row": ("row",),
    "col": ("col", "column"),
    "latitude": ("lat", "latitude"),
    "longitude": ("lon", "long", "longitude"),
    "colour": ("colour", "color"),
}
"""Column -> how it may be called, in any letter case."""
LIMITS = {"latitude": (-90.0, 90.0), "longitude": (-180.0, 360.0)}
"""Degrees north and east."""


@dataclass(frozen=True)
class _Table:
    """A table of text."""

    path: Path
    columns: Mapping[str, int]
    """Column, by our name for it -> position."""
    rows: Sequence[tuple[int, list[str]]]
    """Line number and fields."""

    def text(self, fields: Sequence[str], column: str) -> str:
        at = self.columns[column]
        return fields[at].strip() if at < len(fields) else ""

    def number(self, row: tuple[int, list[str]], column: str) -> float:
        """The number in a column of a row; an InputError names its line."""
        line, fields = row
        found = self.text(fields, column)
        try:
            value = float(found)
        except ValueError:
            value = float("nan")
        low, high = LIMITS.get(column, (-np.inf, np.inf))
        if not isfinite(value) or not low <= value <= high:
            expected = f"degrees from {low:g} to {high:g}" if column in LIMITS else "a number"
            raise InputError(f"{self.path}, line {line}: found {found!r} as {column}, expected {expected}; correct it")
        return value


def read(path: Path, class_field: str) -> Drawings:
    """The points of a table separated by commas, semicolons or tabs."""
    table = _read_table(path, class_field)
    on_ground = "latitude" in table.columns
    x_column, y_column = ("longitude", "latitude") if on_ground else ("col", "row")
    points: dict[str, list[tuple[float, float]]] = {}
    colours: dict[str, str] = {}
    for line, fields in table.rows:
        name = table.text(fields, "class")
        if not name:
            raise InputError(f"{path}, line {line}: found an empty class name, expected a name for every point")
        place = table.number((line, fields), x_column), table.number((line, fields), y_column)
        points.setdefault(name, []).append(place)
        if "colour" in table.columns and table.text(fields, "colour"):
            colours.setdefault(name, hex_colour(table.text(fields, "colour"), f"{path}, line {line}"))
    crs = mars.DEGREES if on_ground else None
    items = [Drawing(name, (shapely.multipoints(at),), crs, colours.get(name)) for name, at in points.items()]
    return Drawings(path, items)


def _read_table(path: Path, class_field: str) -> _Table:
    lines = _read_lines(path)
    delimiter = max(",;\t", key=lines[0].count) if lines else ","
    try:
        numbered = list(enumerate(csv.reader(lines, delimiter=delimiter), start=1))
    except csv.Error as error:
        raise InputError(f"{path}: cannot be read as a table ({error}); save it as CSV anew") from None
    rows = [(number, fields) for number, fields in numbered if any(field.strip() for field in fields)]
    if not rows:
        raise InputError(f"{path}: empty file; expected a table with a line of column names, and a line per point")
    columns = _columns(path, [name.strip() for name in rows[0][1]], class_field)
    if len(rows) == 1:
        raise InputError(f"{path}: found column names and no point; expected a line per point")
    return _Table(path, columns, rows[1:])


def _read_lines(path: Path) -> list[str]:
    content = path.read_bytes()
    try:
        # Spreadsheets mark their UTF-8 with a BOM, and what they call Unicode text is UTF-16.
        return content.decode("utf-16" if content[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) else "utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file in UTF-8; save the table as CSV (UTF-8)") from None


def _columns(path: Path, names: Sequence[str], class_field: str) -> dict[str, int]:
    """Our name of each column that is there -> its position; all that a point needs are there."""
    lower = [name.lower() for name in names]
    # As all other columns, in any letter case; but a name that is written exactly so goes before.
    if class_field not in names and lower.count(class_field.lower()) != 1:
        raise InputError(f"{path}: no column {class_field!r} (labels.class_field); its columns are {', '.join(names)}")
    columns = {"class": names.index(class_field) if class_field in names else lower.index(class_field.lower())}
    for column, spellings in SPELLINGS.items():
        at = [position for position, name in enumerate(lower) if name in spellings]
        if len(at) > 1:
            raise InputError(f"{path}: columns {names[at[0]]!r} and {names[at[1]]!r} are both the {column}; keep one")
        if at:
            columns[column] = at[0]
    on_ground, in_pixels = {"latitude", "longitude"} <= set(columns), {"row", "col"} <= set(columns)
    if on_ground == in_pixels:
        both = "both pixels and degrees" if on_ground else "neither"
        raise InputError(
            f"{path}: expected either columns row and col (pixels, from 0) or lat and lon (degrees north and east), "
            f"found {both}; its columns are {', '.join(names)}"
        )
    return columns
