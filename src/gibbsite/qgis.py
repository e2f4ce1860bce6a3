"""Styles that QGIS finds by itself: a file of the layer's name ending in .qml."""

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET


def class_map_style(classes: Sequence[Mapping[str, Any]]) -> str:
    """The QGIS style of a class map: one named colour per class, nothing where there is no class."""
    root = ET.Element("qgis", version="3.22", styleCategories="Symbology")
    pipe = ET.SubElement(root, "pipe")
    renderer = ET.SubElement(
        pipe, "rasterrenderer", type="paletted", band="1", opacity="1", alphaBand="-1", nodataColor=""
    )
    ET.SubElement(renderer, "rasterTransparency")
    palette = ET.SubElement(renderer, "colorPalette")
    for item in classes:
        label = item["name"] if item["is_known"] else f"{item['name']} (discovered)"
        ET.SubElement(palette, "paletteEntry", value=str(item["code"]), color=item["colour"], alpha="255", label=label)
    ET.SubElement(pipe, "brightnesscontrast", brightness="0", contrast="0", gamma="1")
    ET.SubElement(pipe, "huesaturation", saturation="0", grayscaleMode="0", colorizeOn="0")
    # Any smoothing between class codes would show classes that are not there.
    ET.SubElement(pipe, "rasterresampler", maxOversampling="1")
    ET.SubElement(root, "blendMode").text = "0"
    ET.indent(root)
    return "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n" + ET.tostring(root, encoding="unicode") + "\n"
