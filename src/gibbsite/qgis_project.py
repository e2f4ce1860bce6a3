"""A QGIS project (.qgs) that opens everything in the catalogue with its styles; paths are relative."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from pyproj import CRS

from gibbsite import qml
from gibbsite.errors import InputError
from gibbsite.layers import LAYER_NAMES

Items = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class MapLayer:
    """One layer of the project."""

    identity: str
    title: str
    source: str
    """As QGIS's provider takes it, relative to the project."""
    style: list[ET.Element]
    """What its style consists of."""
    crs: str | None
    """WKT."""
    is_raster: bool
    is_shown: bool
    """When the project is opened."""


def project(items: Items, folder: Path, title: str) -> str:
    """The project of all items; their styles are read from `folder`."""
    root = ET.Element("qgis", version=qml.VERSION, projectname=title)
    ET.SubElement(root, "title").text = title
    crs = _crs(items[0], items[0]["assets"]["class"])
    _system(ET.SubElement(root, "projectCrs"), crs)
    groups = [(str(item["id"]), list(_layers(item, folder))) for item in items]
    tree = ET.SubElement(root, "layer-tree-group")
    for name, layers in groups:
        group = ET.SubElement(tree, "layer-tree-group", name=name, checked="Qt::Checked", expanded="1")
        for layer in layers:
            _tree_entry(group, layer)
    _canvas(root, items[0], crs)
    all_layers = [layer for _, layers in groups for layer in layers]
    order, described = ET.SubElement(root, "layerorder"), ET.SubElement(root, "projectlayers")
    for layer in all_layers:
        ET.SubElement(order, "layer", id=layer.identity)
        described.append(_described(layer))
    _properties(root, crs)
    ET.indent(root)
    return "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n" + ET.tostring(root, encoding="unicode") + "\n"


def _layers(item: Mapping[str, Any], folder: Path) -> Iterator[MapLayer]:
    """The layers of an item, top first: polygons, then rasters; only the class map is shown at first."""
    assets, scene = item["assets"], str(item["id"])
    polygons = assets["polygons"]
    yield MapLayer(
        identity=_identity(scene, "polygons"),
        title=f"{scene} {polygons['title']}",
        source=f"{polygons['href']}|layername=classes",
        style=_parts(qml.polygon_style(classes_of(item))),
        crs=_crs(item, polygons),
        is_raster=False,
        is_shown=False,
    )
    for key in sorted((key for key in assets if f"{key}-qml" in assets), key=_place_in_legend):
        asset = assets[key]
        path = folder / assets[f"{key}-qml"]["href"]
        try:
            style = path.read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path}: cannot read the style ({error.strerror}); run products anew") from None
        yield MapLayer(
            identity=_identity(scene, key),
            title=f"{scene} {asset['title']}",
            source=asset["href"],
            style=_parts(style),
            crs=_crs(item, asset),
            is_raster=True,
            is_shown=key == "class",
        )


def _crs(item: Mapping[str, Any], asset: Mapping[str, Any]) -> str | None:
    """The coordinate system of a file: its own, or else that of the item."""
    found: str | None = asset.get("proj:wkt2", item["properties"].get("proj:wkt2"))
    return found


def _identity(scene: str, key: str) -> str:
    # QGIS replaces identities of up to ten characters by its own, and then misses the layer in the tree.
    return f"gibbsite_{scene}_{key}"


def _place_in_legend(key: str) -> tuple[int, int]:
    """Layers as they come in `layers.layers_of`, then the probability of each class by its code."""
    name, _, code = key.partition("-")
    return (len(LAYER_NAMES), int(code)) if code else (LAYER_NAMES.index(name), 0)


def classes_of(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Code, name, colour and is_known of the classes that an item's class map shows."""
    return [
        {
            "code": one["value"],
            "name": one["title"],
            "colour": "#" + one["color_hint"].lower(),
            "is_known": one["description"].endswith("a known class"),
        }
        for one in item["assets"]["class"]["classification:classes"]
        if not one.get("nodata")
    ]


def _parts(style: str) -> list[ET.Element]:
    return list(ET.fromstring(style))


def _tree_entry(group: ET.Element, layer: MapLayer) -> None:
    ET.SubElement(
        group,
        "layer-tree-layer",
        id=layer.identity,
        name=layer.title,
        source=layer.source,
        providerKey="gdal" if layer.is_raster else "ogr",
        checked="Qt::Checked" if layer.is_shown else "Qt::Unchecked",
        expanded="1" if layer.is_shown else "0",
    )


def _described(layer: MapLayer) -> ET.Element:
    if layer.is_raster:
        element = ET.Element("maplayer", type="raster")
    else:
        element = ET.Element("maplayer", type="vector", geometry="Polygon", wkbType="Polygon")
    for tag, text in (("id", layer.identity), ("datasource", layer.source), ("layername", layer.title)):
        ET.SubElement(element, tag).text = text
    _system(ET.SubElement(element, "srs"), layer.crs)
    provider = ET.SubElement(element, "provider")
    provider.text = "gdal" if layer.is_raster else "ogr"
    if not layer.is_raster:
        provider.set("encoding", "UTF-8")
    element.extend(layer.style)
    return element


def _system(parent: ET.Element, wkt: str | None) -> None:
    """Describe a coordinate system; an empty one when there is none."""
    system = ET.SubElement(parent, "spatialrefsys", nativeFormat="Wkt")
    for tag, text in _described_system(wkt) if wkt else ():
        ET.SubElement(system, tag).text = text


@cache
def _described_system(wkt: str) -> tuple[tuple[str, str], ...]:
    crs = CRS.from_wkt(wkt)
    authority = crs.to_authority(min_confidence=100)
    return (
        ("wkt", wkt),
        ("srsid", "0"),
        ("srid", "0"),
        ("authid", ":".join(authority) if authority else ""),
        ("description", crs.name),
        ("geographicflag", str(crs.is_geographic).lower()),
    )


def _canvas(root: ET.Element, item: Mapping[str, Any], wkt: str | None) -> None:
    """Show the whole of the first scene."""
    facts = item["properties"]
    height, width = facts["proj:shape"]
    if "proj:transform" in facts:
        a, b, c, d, e, f = facts["proj:transform"]
        corners = [(a * col + b * row + c, d * col + e * row + f) for col in (0, width) for row in (0, height)]
    elif "proj:bbox" in item["assets"]["class"]:
        west, south, east, north = item["assets"]["class"]["proj:bbox"]
        corners = [(west, south), (east, north)]
    else:
        corners = [(0.0, -float(height)), (float(width), 0.0)]
    canvas = ET.SubElement(root, "mapcanvas", name="theMapCanvas")
    is_degrees = wkt is not None and CRS.from_wkt(wkt).is_geographic
    ET.SubElement(canvas, "units").text = "degrees" if is_degrees else "meters"
    extent = ET.SubElement(canvas, "extent")
    x, y = zip(*corners, strict=True)
    for tag, value in (("xmin", min(x)), ("ymin", min(y)), ("xmax", max(x)), ("ymax", max(y))):
        ET.SubElement(extent, tag).text = repr(float(value))
    ET.SubElement(canvas, "rotation").text = "0"
    _system(ET.SubElement(canvas, "destinationsrs"), wkt)


def _properties(root: ET.Element, wkt: str | None) -> None:
    """Relative paths, and measuring on the body's own sphere."""
    properties = ET.SubElement(root, "properties")
    ET.SubElement(ET.SubElement(properties, "Paths"), "Absolute", type="bool").text = "false"
    enabled = ET.SubElement(ET.SubElement(properties, "SpatialRefSys"), "ProjectionsEnabled", type="int")
    enabled.text = str(int(wkt is not None))
    body = CRS.from_wkt(wkt).ellipsoid if wkt else None
    if body is not None:
        measure = ET.SubElement(properties, "Measure")
        ellipsoid = f"PARAMETER:{body.semi_major_metre:.10g}:{body.semi_minor_metre:.10g}"
        ET.SubElement(measure, "Ellipsoid", type="QString").text = ellipsoid
