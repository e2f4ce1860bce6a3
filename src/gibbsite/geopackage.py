"""GeoPackage of class polygons, written table by table, with its style inside."""

import sqlite3
import warnings
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import geopandas as gpd
import pyogrio
from pyogrio.errors import DataLayerError, DataSourceError

from gibbsite.errors import OutputError

LAYER = "classes"
"""Name of the layer."""

FIXED_DATE = "2000-01-01T00:00:00.000Z"
"""GeoPackage demands a date of last change; a constant one keeps reruns the same bytes."""

_STYLES = """CREATE TABLE layer_styles (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, f_table_catalog TEXT(256), f_table_schema TEXT(256),
    f_table_name TEXT(256), f_geometry_column TEXT(256), styleName TEXT(30), styleQML TEXT, styleSLD TEXT,
    useAsDefault BOOLEAN, description TEXT, owner TEXT(30), ui TEXT(30), update_time DATETIME)"""
"""The table in which QGIS looks for a layer's style."""


def write(path: Path, tables: Iterable[gpd.GeoDataFrame], qml: str, sld: str) -> None:
    """Write the polygons of all tables as one layer that opens in QGIS with this style."""
    is_first = True
    with _fixed_date(), warnings.catch_warnings():
        # A scene without any reference is written in pixels; there is nothing to mend about it here.
        warnings.filterwarnings("ignore", "'crs' was not provided", UserWarning)
        for table in tables:
            try:
                pyogrio.write_dataframe(
                    table,
                    path,
                    driver="GPKG",
                    layer=LAYER,
                    geometry_type="Polygon",
                    append=not is_first,
                    # Newer versions make older GIS warn, and have nothing that is needed here.
                    dataset_options={"VERSION": "1.2"},
                )
            except (DataSourceError, DataLayerError, RuntimeError) as error:
                raise OutputError(f"{path}: cannot write ({error}); check permissions and free space") from error
            is_first = False
    try:
        _add_style(path, qml, sld)
    except sqlite3.Error as error:
        raise OutputError(f"{path}: cannot write ({error}); check permissions and free space") from error


def _add_style(path: Path, qml: str, sld: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        (geometry,) = database.execute("SELECT column_name FROM gpkg_geometry_columns").fetchone()
        database.execute(_STYLES)
        database.execute(
            "INSERT INTO layer_styles VALUES (1, '', '', ?, ?, 'classes', ?, ?, 1, 'class colours', '', NULL, ?)",
            (LAYER, geometry, qml, sld, FIXED_DATE),
        )
        database.execute(
            "INSERT INTO gpkg_contents (table_name, data_type, identifier, description, last_change)"
            " VALUES ('layer_styles', 'attributes', 'layer_styles', '', ?)",
            (FIXED_DATE,),
        )


@contextmanager
def _fixed_date() -> Iterator[None]:
    pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": FIXED_DATE})
    try:
        yield
    finally:
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": None})
