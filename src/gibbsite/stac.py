"""SpatioTemporal Asset Catalog (STAC 1.1): an item per scene, and the collection of all.

Links and files are relative, so the folder may be moved. Files carry their size and SHA-256. Coordinates are
longitude and latitude on the body that `ssys:targets` names.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyproj
import pystac

from gibbsite import footprint, ground, mars
from gibbsite.scene import Grid

COLLECTION = "collection.json"
"""Name of the collection's file, in the folder of the items."""

EXTENSIONS = {
    "proj": "https://stac-extensions.github.io/projection/v2.0.0/schema.json",
    "classification": "https://stac-extensions.github.io/classification/v2.0.0/schema.json",
    "file": "https://stac-extensions.github.io/file/v2.1.0/schema.json",
    "ssys": "https://stac-extensions.github.io/ssys/v1.1.0/schema.json",
}
"""Prefix of the fields -> the extension that defines them."""

UNKNOWN_TIME = (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
"""A scene's time must lie in some interval, and where it is unknown no narrower one would be true."""

TYPES = {
    ".tif": "image/tiff; application=geotiff; profile=cloud-optimized",
    ".gpkg": "application/geopackage+sqlite3",
    ".csv": "text/csv",
    ".xml": "application/xml",
    ".qml": "application/xml",
    ".sld": "application/vnd.ogc.sld+xml",
    ".hdr": "text/plain",
    ".cpg": "text/plain",
}
"""Ending of a file -> its media type; all others are plain bytes."""


@dataclass(frozen=True)
class Asset:
    """A file of an item."""

    path: Path
    """Where it is now."""
    href: str
    """Where it will be, seen from the item."""
    title: str
    """What it is, in words."""
    role: str
    """data, metadata or style."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further fields."""


def item(
    scene: str, grid: Grid, assets: Mapping[str, Asset], provenance: Mapping[str, Any], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """The item of a scene, as JSON; `provenance` is the cube's, `facts` are further properties."""
    geometry, bbox = footprint.outline(grid)
    start, stop = observed(provenance.get("facts", {}))
    # Without a time the standard demands an interval; with one, an interval has both ends or none.
    interval = UNKNOWN_TIME if start is None else (start, stop) if stop else (None, None)
    target = body(grid, provenance)
    made = pystac.Item(
        id=scene,
        geometry=geometry,
        bbox=bbox,
        datetime=start,
        start_datetime=interval[0],
        end_datetime=interval[1],
        properties={**projection(grid), **({"ssys:targets": [target]} if target else {}), **facts},
        stac_extensions=[url for prefix, url in EXTENSIONS.items() if prefix != "ssys" or target],
        collection="gibbsite",
    )
    for key, asset in assets.items():
        made.add_asset(key, _asset(asset))
    for relation in ("collection", "parent", "root"):
        made.add_link(pystac.Link(relation, f"./{COLLECTION}", media_type="application/json"))
    found = made.to_dict(include_self_link=False, transform_hrefs=False)
    # An item without geometry has no box; pystac writes the key nevertheless.
    return found if bbox else {key: value for key, value in found.items() if key != "bbox"}


def collection(items: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The collection, as JSON, of items by their file name."""
    targets = sorted({target for one in items.values() for target in one["properties"].get("ssys:targets", ())})
    made = pystac.Collection(
        id="gibbsite",
        title="Maps of known and discovered classes",
        description="Classes of hyperspectral scenes: those that were labelled, and those that were discovered.",
        extent=pystac.Extent(pystac.SpatialExtent(_boxes(items)), pystac.TemporalExtent([_interval(items)])),
        license="other",
        stac_extensions=[EXTENSIONS["ssys"]] if targets else [],
        extra_fields={"ssys:targets": targets} if targets else {},
    )
    for name, one in items.items():
        made.add_link(pystac.Link("item", f"./{name}", media_type="application/geo+json", title=one["id"]))
    made.add_link(pystac.Link("root", f"./{COLLECTION}", media_type="application/json"))
    return dict(made.to_dict(include_self_link=False, transform_hrefs=False))


def class_facts(classes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The values of a class map, as the classification extension writes them."""
    named = [
        {
            "value": int(one["code"]),
            # The extension wants a name for machines, and has a title for people.
            "name": one["name"] if re.fullmatch(r"[0-9A-Za-z_-]+", one["name"]) else f"class-{one['code']}",
            "title": one["name"],
            "description": f"{one['name']}, {'a known' if one['is_known'] else 'a discovered'} class",
            "color_hint": one["colour"].removeprefix("#").upper(),
        }
        for one in classes
    ]
    nothing = {"value": 0, "name": "no_data", "description": "no data", "nodata": True}
    return {"classification:classes": [nothing, *named]}


def place(grid: Grid) -> dict[str, Any]:
    """Coordinate system and extent of files in sensor space, which near a pole are not those of the ground points."""
    if grid.transform is not None or not grid.ground_points:
        return {}
    wkt = ground.coordinates(grid)[1]
    told = None if wkt is None else pyproj.CRS.from_wkt(wkt).to_wkt("WKT2_2019")
    return {"proj:wkt2": told, "proj:bbox": ground.extent(grid)}


def projection(grid: Grid) -> dict[str, Any]:
    """Coordinate system, shape and transform of a grid, as the projection extension writes them."""
    found: dict[str, Any] = {"proj:code": None, "proj:shape": [grid.height, grid.width]}
    if grid.crs is not None:
        crs = pyproj.CRS.from_wkt(grid.crs)
        authority = crs.to_authority(min_confidence=100)
        found["proj:code"] = ":".join(authority) if authority else None
        found["proj:wkt2"] = crs.to_wkt("WKT2_2019")
    if grid.transform is not None:
        found["proj:transform"] = list(grid.transform)
    return found


def body(grid: Grid, provenance: Mapping[str, Any]) -> str | None:
    """The planet a scene lies on, when its coordinates or its instrument tell."""
    if grid.crs is None:
        return "Mars" if provenance.get("sensor") else None
    ellipsoid = pyproj.CRS.from_wkt(grid.crs).ellipsoid
    radius = ellipsoid.semi_major_metre if ellipsoid else 0.0
    return "Mars" if mars.RADIUS[0] <= radius <= mars.RADIUS[1] else None


def observed(label: Mapping[str, Any]) -> tuple[datetime | None, datetime | None]:
    """When the observation began and ended, as far as its label says so."""
    start, stop = (_time(label.get(key)) for key in ("START_TIME", "STOP_TIME"))
    return start, stop if start and stop and stop >= start else None


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text).removesuffix("Z"))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _asset(asset: Asset) -> pystac.Asset:
    with asset.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    # 12 and 20 tell that 32 bytes of SHA-256 follow (multihash).
    facts = {"file:size": asset.path.stat().st_size, "file:checksum": f"1220{digest}", **asset.facts}
    kind = TYPES.get(asset.path.suffix, "application/octet-stream")
    return pystac.Asset(asset.href, asset.title, media_type=kind, roles=[asset.role], extra_fields=facts)


def _boxes(items: Mapping[str, Mapping[str, Any]]) -> list[list[float]]:
    """The box of everything, then those of the items; the whole planet when no item lies anywhere."""
    boxes = [list(one["bbox"]) for one in items.values() if one.get("bbox")]
    if not boxes:
        return [[-180.0, -90.0, 180.0, 90.0]]
    west, south, east, north = zip(*boxes, strict=True)
    is_cut = any(box[0] > box[2] for box in boxes)
    whole = [-180.0 if is_cut else min(west), min(south), 180.0 if is_cut else max(east), max(north)]
    return [whole] if len(boxes) == 1 and not is_cut else [whole, *boxes]


def _interval(items: Mapping[str, Mapping[str, Any]]) -> list[datetime | None]:
    """From the first to the last observation whose time is known."""
    known = [one["properties"] for one in items.values() if one["properties"]["datetime"]]
    if not known:
        return list(UNKNOWN_TIME)
    start = min(pystac.utils.str_to_datetime(found["datetime"]) for found in known)
    stop = max(pystac.utils.str_to_datetime(found.get("end_datetime") or found["datetime"]) for found in known)
    return [start, stop]
