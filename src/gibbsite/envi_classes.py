"""ENVI classification: the class map as raw codes with names and colours in the header."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pyproj import CRS

from gibbsite import store
from gibbsite.raster import rgba
from gibbsite.rows import Rows, blocks_of
from gibbsite.scene import Grid

Classes = Sequence[Mapping[str, Any]]

NO_CLASS = "Unclassified"
"""Name of code 0."""


def write(path: Path, code: Rows, grid: Grid, classes: Classes) -> None:
    """Write the image, and its header beside it; one byte per pixel as long as the codes fit into one."""
    n_codes = 1 + max((int(item["code"]) for item in classes), default=0)
    dtype = np.dtype("u1") if n_codes <= 256 else np.dtype("<u2")
    with store.writing(path) as part, part.open("wb") as file:
        for rows in blocks_of(grid.height):
            file.write(code[rows].astype(dtype).tobytes())
    fields = {
        "description": "{class map}",
        "samples": str(grid.width),
        "lines": str(grid.height),
        "bands": "1",
        "header offset": "0",
        "file type": "ENVI Classification",
        "data type": "1" if dtype.itemsize == 1 else "12",
        "interleave": "bsq",
        "byte order": "0",
        "data ignore value": "0",
        **_palette(classes, n_codes),
        **_place(grid),
        "band names": "{class}",
    }
    store.write_text(
        path.with_suffix(".hdr"), "ENVI\n" + "".join(f"{key} = {value}\n" for key, value in fields.items())
    )


def _palette(classes: Classes, n_codes: int) -> dict[str, str]:
    names, colours = [NO_CLASS, *[""] * (n_codes - 1)], [(0, 0, 0)] * n_codes
    for item in classes:
        names[item["code"]] = _plain(str(item["name"]))
        colours[item["code"]] = rgba(item["colour"])[:3]
    return {
        "classes": str(n_codes),
        "class names": "{" + ", ".join(names) + "}",
        "class lookup": "{" + ", ".join(str(level) for colour in colours for level in colour) + "}",
    }


def _plain(name: str) -> str:
    """The name without what ends a list or an entry of one in a header."""
    return " ".join(re.sub(r"[{},=\r\n]", " ", name).split()) or "unnamed"


def _place(grid: Grid) -> dict[str, str]:
    """Map info and coordinate system; none in sensor space, or on a map that not all programs would place alike."""
    if grid.transform is None or grid.crs is None:
        return {}
    crs, (a, b, x, d, e, y) = CRS.from_wkt(grid.crs), grid.transform
    size, turn = (a, -e), ""
    if b or d:
        size, turn = (math.hypot(a, d), math.hypot(b, e)), f", rotation={math.degrees(math.atan2(d, a))!r}"
        # Of pixels that are not square GDAL turns the sides by another rule.
        if a * e - b * d > 0.0 or abs(a * b + d * e) > 1e-9 * size[0] * size[1] or not math.isclose(*size):
            return {}
    kind, unit = (_plain(crs.name), "Meters") if crs.is_projected else ("Geographic Lat/Lon", "Degrees")
    info = f"{{{kind}, 1, 1, {x!r}, {y!r}, {size[0]!r}, {size[1]!r}, units={unit}{turn}}}"
    return {"map info": info, "coordinate system string": "{" + crs.to_wkt("WKT1_ESRI") + "}"}
