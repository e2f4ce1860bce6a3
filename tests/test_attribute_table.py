"""Attribute tables beside a class map, read by GDAL and as dBase."""

from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pyogrio
import pytest
import rasterio
import rasterio.shutil

from gibbsite import attribute_table, raster
from handmade_results import map_grid

CLASSES = [
    {"code": 1, "name": "Fe/Mg smectite", "is_known": True, "colour": "#102030"},
    {"code": 2, "name": 'Ätna <gips> & "salz"', "is_known": True, "colour": "#a0b0c0"},
    {"code": 4, "name": "new-1", "is_known": False, "colour": "#ff0088"},
]
ROWS = [
    (1, 7, "Fe/Mg smectite", 1, 16, 32, 48),
    (2, 0, 'Ätna <gips> & "salz"', 1, 160, 176, 192),
    (4, 12345678901, "new-1", 0, 255, 0, 136),
]
COUNTS = {0: 3, 1: 7, 4: 12345678901}


@pytest.fixture
def class_map(tmp_path: Path) -> Path:
    path = tmp_path / "s_class.tif"
    raster.write_class_map(path, map_grid(4, 5), CLASSES, [(0, np.ones((4, 5), np.uint16))])
    path.with_name("s_class.tif.aux.xml").write_text(attribute_table.auxiliary(CLASSES, COUNTS), encoding="utf-8")
    return path


def test_gdal_takes_names_and_table_from_the_file_beside(class_map: Path, tmp_path: Path) -> None:
    """rasterio has no word for either, but a virtual copy spells out all that GDAL knows of a band."""
    with rasterio.open(class_map) as opened:
        assert str(class_map.with_name("s_class.tif.aux.xml")) in opened.files
        assert opened.tags()["CLASS_2"] == CLASSES[1]["name"], "the tags of the map itself stay"
    rasterio.shutil.copy(class_map, tmp_path / "copy.vrt", driver="VRT")
    band = ET.parse(tmp_path / "copy.vrt").getroot().find("VRTRasterBand")
    assert band is not None
    names = [item.text or "" for item in band.findall("CategoryNames/Category")]
    assert names == ["", "Fe/Mg smectite", 'Ätna <gips> & "salz"', "", "new-1"]


def test_the_table_has_one_row_per_class_and_the_usages_gdal_defines(class_map: Path) -> None:
    root = ET.parse(class_map.with_name("s_class.tif.aux.xml")).getroot()
    table = root.find("PAMRasterBand/GDALRasterAttributeTable")
    assert table is not None
    fields = [tuple(field.findtext(tag) for tag in ("Name", "Type", "Usage")) for field in table.findall("FieldDefn")]
    # GFU_MinMax, GFU_PixelCount, GFU_Name, GFU_Generic, GFU_Red, GFU_Green, GFU_Blue.
    assert [usage for _, _, usage in fields] == ["5", "1", "2", "0", "6", "7", "8"]
    found = [tuple(cell.text for cell in row) for row in table.findall("Row")]
    assert found == [tuple(map(str, row)) for row in ROWS]


def test_the_dbf_is_read_back_with_its_names_and_is_the_same_bytes_twice(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.tif.vat.dbf", "b.tif.vat.dbf")]
    for path in paths:
        attribute_table.write_dbf(path, CLASSES, COUNTS)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    found = pyogrio.read_dataframe(paths[0], read_geometry=False)
    assert list(found.columns) == ["VALUE", "COUNT", "CLASS", "KNOWN", "RED", "GREEN", "BLUE"]
    assert [tuple(row) for row in found.itertuples(index=False)] == ROWS
    assert (tmp_path / "a.tif.vat.cpg").read_text() == "UTF-8"


def test_long_names_are_kept_whole_as_far_as_dbase_can(tmp_path: Path) -> None:
    long = [{"code": 1, "name": "ö" * 120, "is_known": True, "colour": "#102030"}]
    attribute_table.write_dbf(tmp_path / "a.vat.dbf", long, {1: 1})
    assert pyogrio.read_dataframe(tmp_path / "a.vat.dbf", read_geometry=False)["CLASS"].tolist() == ["ö" * 120]
