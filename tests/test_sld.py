"""Styled Layer Descriptors: the elements and order that SLD 1.0.0 prescribes."""

from xml.etree import ElementTree as ET

from gibbsite import sld
from test_qml import CLASSES

NAMES = {"sld": "http://www.opengis.net/sld", "ogc": "http://www.opengis.net/ogc"}


def read(text: str) -> ET.Element:
    root = ET.fromstring(text)
    assert root.tag == f"{{{NAMES['sld']}}}StyledLayerDescriptor"
    assert root.get("version") == "1.0.0"
    assert root.findtext("sld:NamedLayer/sld:Name", namespaces=NAMES) == "s"
    return root


def test_a_class_map_has_one_value_per_class_and_shows_nothing_for_none() -> None:
    colours = read(sld.class_map_style("s", CLASSES)).find(".//sld:RasterSymbolizer/sld:ColorMap", NAMES)
    assert colours is not None
    assert colours.get("type") == "values"
    entries = [(e.get("quantity"), e.get("color"), e.get("label"), e.get("opacity")) for e in colours]
    assert entries == [
        ("0", "#000000", "no class", "0"),
        ("1", "#102030", "Fe/Mg smectite", None),
        ("2", "#a0b0c0", 'bassanite <hydrated & "dry">', None),
        ("3", "#ff0088", "new-1 (discovered)", None),
    ]


def test_numbers_have_a_ramp_that_rises() -> None:
    colours = read(sld.number_style("s", 0.0, 2.0)).find(".//sld:ColorMap", NAMES)
    assert colours is not None
    assert colours.get("type") == "ramp"
    values = [float(entry.get("quantity", "nan")) for entry in colours]
    assert values == sorted(values)
    assert (values[0], values[-1]) == (0.0, 2.0)


def test_polygons_have_one_rule_per_class() -> None:
    rules = read(sld.polygon_style("s", CLASSES)).findall(".//sld:Rule", NAMES)
    found = [
        (
            rule.findtext("ogc:Filter/ogc:PropertyIsEqualTo/ogc:PropertyName", namespaces=NAMES),
            rule.findtext("ogc:Filter/ogc:PropertyIsEqualTo/ogc:Literal", namespaces=NAMES),
            rule.findtext("sld:PolygonSymbolizer/sld:Fill/sld:CssParameter", namespaces=NAMES),
        )
        for rule in rules
    ]
    assert found == [("code", "1", "#102030"), ("code", "2", "#a0b0c0"), ("code", "3", "#ff0088")]
    order = [child.tag.split("}")[1] for child in rules[0]]
    assert order == ["Name", "Title", "Filter", "PolygonSymbolizer"], "the schema fixes the order"
