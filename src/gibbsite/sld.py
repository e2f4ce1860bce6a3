"""Styles for map servers: Styled Layer Descriptors, version 1.0.0 (OGC 02-070)."""

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from gibbsite.palette import RAMP
from gibbsite.qml import label

_SLD = "http://www.opengis.net/sld"
_OGC = "http://www.opengis.net/ogc"

Classes = Sequence[Mapping[str, Any]]


def class_map_style(name: str, classes: Classes) -> str:
    """The style of a class map: one named colour per class, nothing where there is no class."""
    root, style = _descriptor(name)
    colours = _colour_map(style, "values")
    _entry(colours, 0, "#000000", "no class").set("opacity", "0")
    for item in classes:
        _entry(colours, item["code"], item["colour"], label(item))
    return _document(root)


def number_style(name: str, low: float, high: float) -> str:
    """The style of a layer of numbers: the ramp from dark (low) to light (high)."""
    root, style = _descriptor(name)
    colours = _colour_map(style, "ramp")
    for number, colour in enumerate(RAMP):
        value = f"{low + number / (len(RAMP) - 1) * (high - low):.3g}"
        _entry(colours, value, colour, value)
    return _document(root)


def polygon_style(name: str, classes: Classes) -> str:
    """The style of class polygons: the colours of the class map, by the column `code`."""
    root, style = _descriptor(name)
    for item in classes:
        rule = _under(style, "Rule")
        _under(rule, "Name").text = str(item["code"])
        _under(rule, "Title").text = label(item)
        equal = _under(_under(rule, "Filter", _OGC), "PropertyIsEqualTo", _OGC)
        _under(equal, "PropertyName", _OGC).text = "code"
        _under(equal, "Literal", _OGC).text = str(item["code"])
        symbol = _under(rule, "PolygonSymbolizer")
        _parameter(_under(symbol, "Fill"), "fill", item["colour"])
        stroke = _under(symbol, "Stroke")
        _parameter(stroke, "stroke", "#232323")
        _parameter(stroke, "stroke-width", "0.3")
    return _document(root)


def _descriptor(name: str) -> tuple[ET.Element, ET.Element]:
    """The root, and the element that holds the rules."""
    root = ET.Element(f"{{{_SLD}}}StyledLayerDescriptor", version="1.0.0")
    layer = _under(root, "NamedLayer")
    _under(layer, "Name").text = name
    style = _under(layer, "UserStyle")
    _under(style, "Title").text = name
    return root, _under(style, "FeatureTypeStyle")


def _colour_map(style: ET.Element, kind: str) -> ET.Element:
    colours = _under(_under(_under(style, "Rule"), "RasterSymbolizer"), "ColorMap")
    colours.set("type", kind)
    return colours


def _entry(colours: ET.Element, value: object, colour: str, text: str) -> ET.Element:
    entry = _under(colours, "ColorMapEntry")
    for key, setting in {"color": colour, "quantity": str(value), "label": text}.items():
        entry.set(key, setting)
    return entry


def _parameter(parent: ET.Element, name: str, value: str) -> None:
    parameter = _under(parent, "CssParameter")
    parameter.set("name", name)
    parameter.text = value


def _under(parent: ET.Element, name: str, namespace: str = _SLD) -> ET.Element:
    return ET.SubElement(parent, f"{{{namespace}}}{name}")


def _document(root: ET.Element) -> str:
    ET.register_namespace("sld", _SLD)
    ET.register_namespace("ogc", _OGC)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"
