"""QGIS styles as XML; what QGIS makes of them is in test_qgis_project.py."""

from xml.etree import ElementTree as ET

import pytest

from gibbsite import qml
from gibbsite.palette import RAMP

CLASSES = [
    {"code": 1, "name": "Fe/Mg smectite", "is_known": True, "colour": "#102030"},
    {"code": 2, "name": 'bassanite <hydrated & "dry">', "is_known": True, "colour": "#a0b0c0"},
    {"code": 3, "name": "new-1", "is_known": False, "colour": "#ff0088"},
]


def test_the_style_of_a_class_map_names_and_colours_every_class() -> None:
    renderer = ET.fromstring(qml.class_map_style(CLASSES)).find("pipe/rasterrenderer")
    assert renderer is not None
    assert renderer.get("type") == "paletted"
    entries = {int(e.get("value", 0)): (e.get("color"), e.get("label")) for e in renderer.iter("paletteEntry")}
    assert entries == {
        1: ("#102030", "Fe/Mg smectite"),
        2: ("#a0b0c0", 'bassanite <hydrated & "dry">'),
        3: ("#ff0088", "new-1 (discovered)"),
    }


def test_the_style_of_polygons_has_a_symbol_for_every_category() -> None:
    renderer = ET.fromstring(qml.polygon_style(CLASSES)).find("renderer-v2")
    assert renderer is not None
    assert renderer.get("attr") == "code"
    symbols = {symbol.get("name"): symbol for symbol in renderer.iter("symbol")}
    found = {}
    for category in renderer.iter("category"):
        colour = symbols[category.get("symbol")].find("layer/Option/Option[@name='color']")
        assert colour is not None
        found[category.get("value")] = (category.get("label"), colour.get("value"))
    assert found["2"] == ('bassanite <hydrated & "dry">', "160,176,192,255")
    assert found["3"] == ("new-1 (discovered)", "255,0,136,255")


@pytest.mark.parametrize("high", [1.0, 4.321928])
def test_the_ramp_reaches_from_nothing_to_the_highest_value(high: float) -> None:
    renderer = ET.fromstring(qml.number_style(0.0, high)).find("pipe/rasterrenderer")
    assert renderer is not None
    items = [(float(item.get("value", "nan")), item.get("color")) for item in renderer.iter("item")]
    assert items[0] == (0.0, RAMP[0])
    assert items[-1] == (pytest.approx(high, rel=5e-3), RAMP[-1])
    assert [value for value, _ in items] == sorted(value for value, _ in items)
