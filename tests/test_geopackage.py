"""GeoPackages of class polygons: read back as written, style inside, the same bytes twice."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import geopandas as gpd
import numpy as np
import pytest
from shapely import box

from gibbsite import geopackage
from gibbsite.errors import OutputError
from handmade_results import MARS_MAP


def table(first: int, n: int) -> gpd.GeoDataFrame:
    columns = {"code": np.arange(first, first + n), "name": [f"Ätna {k}" for k in range(n)]}
    return gpd.GeoDataFrame(columns, geometry=[box(k, 0, k + 1, 1) for k in range(first, first + n)], crs=MARS_MAP)


def test_tables_become_one_layer_that_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "s.gpkg"
    geopackage.write(path, [table(1, 3), table(4, 2)], "<qgis/>", "<sld/>")
    found = gpd.read_file(path, layer=geopackage.LAYER)
    assert found["code"].tolist() == [1, 2, 3, 4, 5]
    assert found["name"].tolist() == ["Ätna 0", "Ätna 1", "Ätna 2", "Ätna 0", "Ätna 1"]
    assert found.crs == table(1, 1).crs
    assert found.geometry.geom_equals(gpd.pd.concat([table(1, 3), table(4, 2)]).geometry, align=False).all()


def test_the_style_stands_where_qgis_looks_for_it(tmp_path: Path) -> None:
    path = tmp_path / "s.gpkg"
    geopackage.write(path, [table(1, 3)], "<qgis>ä</qgis>", "<sld/>")
    with closing(sqlite3.connect(path)) as database:
        query = "SELECT f_table_name, f_geometry_column, styleQML, styleSLD, useAsDefault FROM layer_styles"
        assert database.execute(query).fetchall() == [("classes", "geom", "<qgis>ä</qgis>", "<sld/>", 1)]
        kinds = dict(database.execute("SELECT table_name, data_type FROM gpkg_contents").fetchall())
        assert kinds == {"classes": "features", "layer_styles": "attributes"}
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_bytes_are_the_same_twice(tmp_path: Path) -> None:
    digests = set()
    for name in ("a.gpkg", "b.gpkg"):
        geopackage.write(tmp_path / name, [table(1, 30), table(31, 9)], "<qgis/>", "<sld/>")
        digests.add(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
    assert len(digests) == 1


@pytest.mark.parametrize("crs", [MARS_MAP, None])
def test_no_polygon_at_all_is_an_empty_layer(tmp_path: Path, crs: str | None) -> None:
    empty = gpd.GeoDataFrame({"code": np.zeros(0, np.int64)}, geometry=[], crs=crs)
    geopackage.write(tmp_path / "s.gpkg", [empty], "<qgis/>", "<sld/>")
    assert len(gpd.read_file(tmp_path / "s.gpkg", layer=geopackage.LAYER)) == 0


def test_a_folder_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        geopackage.write(tmp_path / "absent" / "s.gpkg", [table(1, 1)], "<qgis/>", "<sld/>")
