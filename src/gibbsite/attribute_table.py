"""What the values of a class map mean, as tables beside it: GDAL's `.aux.xml` and Esri's `.vat.dbf`."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd
import pyogrio

from gibbsite import store
from gibbsite.errors import OutputError
from gibbsite.raster import rgba

Classes = Sequence[Mapping[str, Any]]

_INTEGER, _TEXT = "0", "2"
_COLUMNS = {
    "VALUE": (_INTEGER, "5"),
    "COUNT": (_INTEGER, "1"),
    "CLASS": (_TEXT, "2"),
    "KNOWN": (_INTEGER, "0"),
    "RED": (_INTEGER, "6"),
    "GREEN": (_INTEGER, "7"),
    "BLUE": (_INTEGER, "8"),
}
"""Column -> type and usage, in the numbers of GDAL's raster attribute tables."""

FIXED_DATE = "2000-01-01"
"""dBase demands a date of last change; a constant one keeps reruns the same bytes."""


def rows(classes: Classes, n_pixels: Mapping[int, int]) -> list[tuple[Any, ...]]:
    """One row per class, in the order of the columns; `n_pixels` by code."""
    return [
        (item["code"], n_pixels.get(item["code"], 0), item["name"], int(item["is_known"]), *rgba(item["colour"])[:3])
        for item in classes
    ]


def auxiliary(classes: Classes, n_pixels: Mapping[int, int]) -> str:
    """Category names and attribute table as GDAL reads them from `S_class.tif.aux.xml`."""
    root = ET.Element("PAMDataset")
    band = ET.SubElement(root, "PAMRasterBand", band="1")
    names = {int(item["code"]): str(item["name"]) for item in classes}
    categories = ET.SubElement(band, "CategoryNames")
    for code in range(max(names, default=0) + 1):
        ET.SubElement(categories, "Category").text = names.get(code, "")
    table = ET.SubElement(band, "GDALRasterAttributeTable", tableType="thematic")
    for position, (column, (kind, usage)) in enumerate(_COLUMNS.items()):
        field = ET.SubElement(table, "FieldDefn", index=str(position))
        for tag, text in (("Name", column), ("Type", kind), ("Usage", usage)):
            ET.SubElement(field, tag).text = text
    for position, values in enumerate(rows(classes, n_pixels)):
        row = ET.SubElement(table, "Row", index=str(position))
        for value in values:
            ET.SubElement(row, "F").text = str(value)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def write_dbf(path: Path, classes: Classes, n_pixels: Mapping[int, int]) -> None:
    """Write the table as dBase in UTF-8, which the file `.cpg` beside it says."""
    encoding = path.with_suffix(".cpg")
    table = pd.DataFrame(rows(classes, n_pixels), columns=list(_COLUMNS))
    pyogrio.write_dataframe(
        table, path, driver="ESRI Shapefile", encoding="UTF-8", layer_options={"DBF_DATE_LAST_UPDATE": FIXED_DATE}
    )
    store.write_text(encoding, "UTF-8")
    if not _is_whole(path, len(table)):
        raise OutputError(f"{path}: cannot write (not all of it reached the disk); check permissions and free space")


def _is_whole(path: Path, n_rows: int) -> bool:
    """Whether a dBase file is as long as its header says; GDAL does not tell when the disk is full."""
    with path.open("rb") as file:
        header = file.read(32)
    if len(header) < 32:
        return False
    n_records, header_size, record_size = struct.unpack_from("<IHH", header, 4)
    # An end mark follows the records.
    return n_records == n_rows and path.stat().st_size == header_size + n_records * record_size + 1
