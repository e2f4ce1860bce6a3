"""Styles that QGIS finds by itself: a file of the layer's name ending in .qml, or a table inside a GeoPackage."""

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from gibbsite.palette import RAMP

Classes = Sequence[Mapping[str, Any]]

VERSION = "3.22"
"""Oldest QGIS these styles were tried with."""


def label(item: Mapping[str, Any]) -> str:
    """A class's entry in a legend."""
    return str(item["name"]) if item["is_known"] else f"{item['name']} (discovered)"


def class_map_style(classes: Classes) -> str:
    """The style of a class map: one named colour per class, nothing where there is no class."""
    renderer = _raster_renderer("paletted")
    palette = ET.SubElement(renderer, "colorPalette")
    for item in classes:
        ET.SubElement(
            palette, "paletteEntry", value=str(item["code"]), color=item["colour"], alpha="255", label=label(item)
        )
    return _raster_document(renderer)


def number_style(low: float, high: float) -> str:
    """The style of a layer of numbers: the ramp from dark (low) to light (high)."""
    renderer = _raster_renderer("singlebandpseudocolor")
    renderer.set("classificationMin", f"{low:g}")
    renderer.set("classificationMax", f"{high:g}")
    shader = ET.SubElement(
        ET.SubElement(renderer, "rastershader"),
        "colorrampshader",
        colorRampType="INTERPOLATED",
        classificationMode="1",
        clip="0",
        minimumValue=f"{low:g}",
        maximumValue=f"{high:g}",
    )
    share = [number / (len(RAMP) - 1) for number in range(len(RAMP))]
    ramp = ET.SubElement(shader, "colorramp", type="gradient", name="[source]")
    stops = ":".join(f"{at:g};{_rgba(colour)}" for at, colour in zip(share[1:-1], RAMP[1:-1], strict=True))
    _options(ramp, color1=_rgba(RAMP[0]), color2=_rgba(RAMP[-1]), discrete="0", rampType="gradient", stops=stops)
    for at, colour in zip(share, RAMP, strict=True):
        value = f"{low + at * (high - low):.3g}"
        ET.SubElement(shader, "item", value=value, label=value, color=colour, alpha="255")
    return _raster_document(renderer)


def polygon_style(classes: Classes) -> str:
    """The style of class polygons: the colours of the class map, by the column `code`."""
    root = _root("Symbology")
    renderer = ET.SubElement(
        root, "renderer-v2", type="categorizedSymbol", attr="code", symbollevels="0", forceraster="0", enableorderby="0"
    )
    categories, symbols = ET.SubElement(renderer, "categories"), ET.SubElement(renderer, "symbols")
    for position, item in enumerate(classes):
        ET.SubElement(
            categories,
            "category",
            value=str(item["code"]),
            type="long",
            symbol=str(position),
            label=label(item),
            render="true",
        )
        symbol = ET.SubElement(
            symbols, "symbol", type="fill", name=str(position), alpha="1", clip_to_extent="1", force_rhr="0"
        )
        fill = ET.SubElement(symbol, "layer", {"class": "SimpleFill", "enabled": "1", "locked": "0", "pass": "0"})
        _options(
            fill,
            color=_rgba(item["colour"]),
            style="solid",
            outline_color="35,35,35,255",
            outline_style="solid",
            outline_width="0.1",
            outline_width_unit="MM",
        )
    ET.SubElement(root, "blendMode").text = "0"
    ET.SubElement(root, "layerGeometryType").text = "2"
    return _document(root)


def _root(categories: str) -> ET.Element:
    return ET.Element("qgis", version=VERSION, styleCategories=categories)


def _raster_renderer(kind: str) -> ET.Element:
    renderer = ET.Element("rasterrenderer", type=kind, band="1", opacity="1", alphaBand="-1", nodataColor="")
    ET.SubElement(renderer, "rasterTransparency")
    return renderer


def _raster_document(renderer: ET.Element) -> str:
    root = _root("Symbology")
    pipe = ET.SubElement(root, "pipe")
    pipe.append(renderer)
    ET.SubElement(pipe, "brightnesscontrast", brightness="0", contrast="0", gamma="1")
    ET.SubElement(pipe, "huesaturation", saturation="0", grayscaleMode="0", colorizeOn="0")
    # Any smoothing between class codes would show classes that are not there.
    ET.SubElement(pipe, "rasterresampler", maxOversampling="1")
    ET.SubElement(root, "blendMode").text = "0"
    return _document(root)


def _document(root: ET.Element) -> str:
    ET.indent(root)
    return "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n" + ET.tostring(root, encoding="unicode") + "\n"


def _options(parent: ET.Element, **values: str) -> None:
    options = ET.SubElement(parent, "Option", type="Map")
    for name, value in values.items():
        ET.SubElement(options, "Option", type="QString", name=name, value=value)


def _rgba(colour: str) -> str:
    return ",".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5)) + ",255"
