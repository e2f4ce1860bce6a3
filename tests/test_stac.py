"""STAC items and collections: valid by the schemas that pystac brings, and by the fields the extensions demand.

The core (item, collection, common metadata) is validated offline with the JSON schemas inside pystac. The schemas of
the extensions are in no package, so their rules are checked here field by field, from their published texts: which
fields there are (another one with the same prefix is forbidden) and what they may hold. What pystac has classes for
(projection, classification, file; not ssys) is read back with these.
"""

import hashlib
import json
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pystac
import pytest
from pyproj import CRS
from pystac.extensions.classification import ClassificationExtension
from pystac.extensions.file import FileExtension
from pystac.extensions.projection import ProjectionExtension
from pystac.validation import JsonSchemaSTACValidator

from gibbsite import stac
from gibbsite.scene import Grid
from handmade_results import MARS_SPHERE, map_grid, polar_grid, sensor_grid

CLASSES = [
    {"code": 1, "name": "Fe/Mg smectite", "is_known": True, "colour": "#102030"},
    {"code": 2, "name": "new-1", "is_known": False, "colour": "#ff0088"},
]
LABEL = {"START_TIME": "2007-01-13T05:59:08.707", "STOP_TIME": "2007-01-13T05:59:12.442"}
EARTH = CRS("EPSG:4326").to_wkt()
GRIDS = {
    "map": map_grid(40, 30),
    "sensor": sensor_grid(40, 30),
    "nowhere": Grid(40, 30),
    "pole": polar_grid(40, 30),
    "meridian": Grid(40, 30, MARS_SPHERE, (0.1, 0.0, 179.0, 0.0, -0.1, 10.0)),
    "earth": Grid(40, 30, EARTH, (0.1, 0.0, 17.0, 0.0, -0.1, 10.0)),
}


def make_item(folder: Path, grid: Grid, label: dict[str, Any] | None = None, scene: str = "s") -> dict[str, Any]:
    path = folder / f"{scene}_class.tif"
    path.write_bytes(b"pixels")
    asset = stac.Asset(path, f"./{path.name}", "class", "data", stac.class_facts(CLASSES))
    provenance = {"facts": LABEL if label is None else label, "sensor": "L", "files": []}
    return stac.item(scene, grid, {"class": asset}, provenance, {"gibbsite:seed": 7})


def validate(mapping: dict[str, Any], kind: pystac.STACObjectType) -> None:
    """Nothing, when the core's own schema accepts the mapping."""
    found = JsonSchemaSTACValidator().validate_core(mapping, kind, pystac.get_stac_version())
    assert found is not None


def is_numbers(*sizes: int) -> Callable[[Any], bool]:
    """A law: a list of so many numbers."""
    return lambda found: len(found) in sizes and all(isinstance(one, (int, float)) for one in found)


def is_class(found: dict[str, Any]) -> bool:
    """Whether this is a class object of the classification extension."""
    kinds = {"value": int, "name": str, "title": str, "description": str, "color_hint": str, "nodata": bool}
    return (
        {"value", "name"} <= set(found) <= set(kinds)
        and all(isinstance(one, kinds[key]) for key, one in found.items())
        and re.fullmatch(r"[0-9A-Za-z_-]+", found["name"]) is not None
        and re.fullmatch(r"[0-9A-Fa-f]{6}", found.get("color_hint", "000000")) is not None
    )


FIELDS: dict[str, Callable[[Any], bool]] = {
    "proj:code": lambda found: found is None or re.fullmatch(r"[A-Z0-9_]+:[0-9]+", found) is not None,
    "proj:wkt2": lambda found: found is None or CRS.from_wkt(found) is not None,
    "proj:shape": lambda found: len(found) == 2 and all(isinstance(one, int) for one in found),
    "proj:transform": is_numbers(6, 9),
    "proj:bbox": is_numbers(4, 6),
    "classification:classes": lambda found: (
        all(map(is_class, found)) and len({one["value"] for one in found}) == len(found)
    ),
    "file:checksum": lambda found: re.fullmatch(r"1220[0-9a-f]{64}", found) is not None,
    "file:size": lambda found: isinstance(found, int) and found >= 0,
    "ssys:targets": lambda found: len(found) >= 1 and all(isinstance(one, str) for one in found),
}
"""Fields of the extensions that are used, and their laws."""


def check_extensions(item: dict[str, Any]) -> None:
    """The rules of projection 2.0, classification 2.0, file 2.1 and ssys 1.1 for the fields that are used."""
    facts = item["properties"]
    prefixes = {key.split(":")[0] for key in facts if ":" in key} - {"gibbsite"}
    prefixes |= {key.split(":")[0] for asset in item["assets"].values() for key in asset if ":" in key}
    assert {stac.EXTENSIONS[prefix] for prefix in prefixes} == set(item["stac_extensions"])
    for holder in (facts, *item["assets"].values()):
        for key in (key for key in holder if ":" in key and not key.startswith("gibbsite:")):
            assert FIELDS[key](holder[key]), key
    read = pystac.Item.from_dict(item)
    assert ProjectionExtension.ext(read).shape == facts["proj:shape"]
    for name, asset in read.assets.items():
        assert FileExtension.ext(asset).checksum == item["assets"][name]["file:checksum"]
        if "classification:classes" in item["assets"][name]:
            found = ClassificationExtension.ext(asset).classes or []
            assert [one.to_dict() for one in found] == item["assets"][name]["classification:classes"]


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks the network for a schema fails."""

    def refuse(*_: Any) -> None:
        raise AssertionError("something was fetched from the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize("kind", GRIDS)
def test_items_are_valid(tmp_path: Path, kind: str) -> None:
    item = make_item(tmp_path, GRIDS[kind])
    validate(item, pystac.STACObjectType.ITEM)
    check_extensions(item)
    assert ("bbox" in item) == (item["geometry"] is not None) == (kind != "nowhere")
    assert item["properties"].get("ssys:targets") == (None if kind == "earth" else ["Mars"])


def test_an_invalid_item_is_noticed(tmp_path: Path) -> None:
    item = make_item(tmp_path, GRIDS["map"])
    del item["properties"]["datetime"]
    with pytest.raises(pystac.errors.STACValidationError):
        validate(item, pystac.STACObjectType.ITEM)


@pytest.mark.parametrize(
    ("key", "value"),
    [("proj:epsg", 4326), ("proj:shape", [1.5, 2]), ("proj:code", "Mars"), ("file:size", -1), ("ssys:targets", [])],
)
def test_a_field_against_an_extension_is_noticed(tmp_path: Path, key: str, value: Any) -> None:
    item = make_item(tmp_path, GRIDS["map"])
    item["properties"][key] = value
    with pytest.raises((AssertionError, KeyError)):
        check_extensions(item)


def test_the_time_is_that_of_the_label(tmp_path: Path) -> None:
    facts = make_item(tmp_path, GRIDS["map"])["properties"]
    assert facts["datetime"] == "2007-01-13T05:59:08.707000Z"
    assert facts["start_datetime"] == "2007-01-13T05:59:08.707000Z"
    assert facts["end_datetime"] == "2007-01-13T05:59:12.442000Z"


@pytest.mark.parametrize("label", [{}, {"START_TIME": "N/A"}, {"START_TIME": "2007-13-77"}])
def test_an_unknown_time_is_null_with_an_interval_that_holds_any(tmp_path: Path, label: dict[str, Any]) -> None:
    item = make_item(tmp_path, GRIDS["map"], label)
    validate(item, pystac.STACObjectType.ITEM)
    facts = item["properties"]
    assert facts["datetime"] is None
    assert (facts["start_datetime"], facts["end_datetime"]) == ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")


def test_an_end_before_the_start_is_not_told(tmp_path: Path) -> None:
    facts = make_item(tmp_path, GRIDS["map"], LABEL | {"STOP_TIME": "2001-01-01T00:00:00"})["properties"]
    assert "end_datetime" not in facts
    assert facts["datetime"].startswith("2007-01-13")


def test_files_are_named_relatively_with_their_true_checksum(tmp_path: Path) -> None:
    asset = make_item(tmp_path, GRIDS["map"])["assets"]["class"]
    assert asset["href"] == "./s_class.tif"
    assert asset["file:checksum"] == "1220" + hashlib.sha256(b"pixels").hexdigest()
    assert asset["file:size"] == 6
    known = asset["classification:classes"][1]
    assert (known["value"], known["name"], known["title"]) == (1, "class-1", "Fe/Mg smectite")


def test_an_iau_system_is_told_by_its_code(tmp_path: Path) -> None:
    grid = Grid(40, 30, CRS("IAU_2015:49910").to_wkt(), (18.0, 0.0, 0.0, 0.0, -18.0, 0.0))
    assert make_item(tmp_path, grid)["properties"]["proj:code"] == "IAU_2015:49910"
    assert make_item(tmp_path, GRIDS["map"])["properties"]["proj:code"] is None


def test_pystac_reads_the_catalogue_back(tmp_path: Path) -> None:
    scenes = {"a": GRIDS["map"], "b": GRIDS["meridian"], "c": GRIDS["nowhere"]}
    items = {f"{scene}_item.json": make_item(tmp_path, grid, None, scene) for scene, grid in scenes.items()}
    collection = stac.collection(items)
    validate(collection, pystac.STACObjectType.COLLECTION)
    for name, item in (items | {stac.COLLECTION: collection}).items():
        (tmp_path / name).write_text(json.dumps(item))
    found = pystac.Collection.from_file(str(tmp_path / stac.COLLECTION))
    read = {item.id: item for item in found.get_items()}
    assert set(read) == set(scenes)
    assert read["a"].get_collection() is found
    assert Path(read["b"].assets["class"].get_absolute_href() or "") == tmp_path / "b_class.tif"
    assert found.extent.spatial.bboxes[0][0] == -180.0, "a scene is across the meridian"
    start, stop = found.extent.temporal.intervals[0]
    assert start is not None
    assert stop is not None
    assert (start.year, stop.second) == (2007, 12)


def test_a_collection_of_scenes_that_lie_nowhere_is_valid(tmp_path: Path) -> None:
    collection = stac.collection({"s_item.json": make_item(tmp_path, GRIDS["nowhere"], {})})
    validate(collection, pystac.STACObjectType.COLLECTION)
