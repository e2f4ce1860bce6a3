"""Label polygons and points of a vector layer (GeoPackage, Shapefile, GeoJSON)."""

from pathlib import Path

import geopandas
import pyogrio
import shapely
from pyogrio.errors import DataLayerError, DataSourceError
from shapely.errors import ShapelyError

from gibbsite import image, mars
from gibbsite.drawings import Drawing, Drawings, mend
from gibbsite.errors import InputError, SettingsError
from gibbsite.labels import hex_colour

COMPANIONS = (".dbf", ".shx", ".prj", ".cpg")
"""What may lie beside a Shapefile: attributes, index, coordinate system, encoding."""
COLOUR_FIELDS = ("colour", "color")
"""Fields that give a class its colour, in any letter case."""
MARKS = {"Polygon", "MultiPolygon", "Point", "MultiPoint"}
"""Shapes that can label pixels."""


def is_vector(path: Path) -> bool:
    """Whether the file holds vector layers (and not a raster)."""
    try:
        return len(pyogrio.list_layers(path)) > 0
    except DataSourceError:
        return False


def files(path: Path) -> list[Path]:
    """The files the shapes come from: the file, with its companions if it is a Shapefile, or all in the folder."""
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.is_file())
    others = [image.sibling(path, suffix) for suffix in COMPANIONS] if path.suffix.lower() == ".shp" else []
    return [path, *(file for file in others if file is not None)]


def read(path: Path, class_field: str, wanted: str | None) -> Drawings:
    """The shapes of the file's one layer, or of the layer wanted."""
    layer, left_out = _read_layer(path, _choose_layer(path, wanted))
    if class_field not in layer.columns:
        fields = ", ".join(str(name) for name in layer.columns if name != layer.geometry.name) or "none at all"
        raise InputError(f"{path}: no field {class_field!r} (labels.class_field); its fields are {fields}")
    blank = layer[class_field].isna()
    if blank.any():
        raise InputError(
            f"{path}: found an empty class name in feature {layer.index[blank][0]}, expected a name for "
            f"every class; fill in its field {class_field!r}"
        )
    crs = mars.read_system(layer.crs, f"{path}: the layer")
    shapes = shapely.force_2d(layer.geometry.values)
    mended = [mend(shape, f"feature {n}", path) for n, shape in zip(layer.index, shapes, strict=True)]
    names, colours = layer[class_field].astype(str), _colours(layer, path)
    items = [
        Drawing(name, (shape,), crs, colour) for name, (shape, _), colour in zip(names, mended, colours, strict=True)
    ]
    return Drawings(path, items, (*left_out, *(told for _, told in mended if told)))


def _choose_layer(path: Path, wanted: str | None) -> str:
    layers = [str(name) for name, geometry in pyogrio.list_layers(path) if geometry is not None]
    listed = f"{len(layers)} layers with shapes ({', '.join(layers)})" if layers else "no layer with shapes"
    if wanted is not None:
        if wanted not in layers:
            raise SettingsError(f"labels.layer: found {wanted!r}, but {path} has {listed}; give the name of one")
        return wanted
    if len(layers) != 1:
        raise InputError(f"{path}: found {listed}, expected one; name the one to use in labels.layer")
    return layers[0]


def _read_layer(path: Path, name: str) -> tuple[geopandas.GeoDataFrame, list[str]]:
    """The layer's features that have a shape, numbered from 1 as the layer counts them, and a remark on the others."""
    try:
        layer = geopandas.read_file(path, layer=name)
    except (DataSourceError, DataLayerError, ShapelyError, ValueError) as error:
        raise InputError(f"{path}: cannot read the layer {name!r} ({error}); save it anew") from None
    layer.index += 1
    is_empty = layer.geometry.isna() | layer.geometry.is_empty
    told = [f"feature {number} has no shape, and labels nothing" for number in layer.index[is_empty]]
    layer = layer[~is_empty]
    if layer.empty:
        raise InputError(f"{path}: empty layer {name!r}, expected polygons; draw some, or run without --shapes")
    other = sorted(set(layer.geom_type) - MARKS)
    if other:
        raise InputError(f"{path}: found {other[0]} shapes, expected polygons or points; remove them or buffer them")
    return layer, told


def _colours(layer: geopandas.GeoDataFrame, path: Path) -> list[str | None]:
    fields = [name for name in layer.columns if str(name).lower() in COLOUR_FIELDS]
    if not fields:
        return [None] * len(layer)
    found = layer[fields[0]]
    return [
        None if empty or not str(text).strip() else hex_colour(str(text), f"{path}: feature {number}")
        for number, text, empty in zip(layer.index, found, found.isna(), strict=True)
    ]
