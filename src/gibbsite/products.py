"""What is published of a scene: maps for a GIS, polygons, ENVI classification, class table, catalogue item."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gibbsite
from gibbsite import class_table, envi_classes, geopackage, patches, polygons, qml, raster, sld, stac, store, zones
from gibbsite.class_table import Interpretation
from gibbsite.errors import InputError
from gibbsite.layers import Layer, layers_of, publish
from gibbsite.model import fingerprint, named_components
from gibbsite.raster import Stored
from gibbsite.rows import Rows, blocks_of
from gibbsite.scene import Grid
from gibbsite.spectra import positions_of

Classes = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class MappedScene:
    """A scene's maps with what the products need beside them."""

    name: str
    """Of the scene."""
    class_map: Path
    """The other layers lie beside it."""
    grid: Grid
    """Where its pixels lie."""
    code: Stored
    """Class code, 0 for none."""
    probability: Stored
    """Of the class, NaN where there is none."""
    classes: Classes
    """As in the model."""
    components: Classes
    """Named and coloured like classes."""
    provenance: Mapping[str, Any]
    """Of the cube."""
    origin: Mapping[str, Any]
    """What made the maps: version, seed, SHA-256 of the model."""


def scene_name(class_map: Path) -> str:
    """The scene that a class map `S_class.tif` shows: S."""
    return class_map.stem.removesuffix("_class")


def read_scene(class_map: Path, model: Path, cube: Path) -> MappedScene:
    """The mapped scene, with map, probability, model and cube checked against each other."""
    name, facts, of_cube = scene_name(class_map), store.read(model, "model"), store.read(cube, "cube")
    classes = facts.attrs["classes"]
    code = raster.stored(class_map)
    probability_path = class_map.with_name(f"{name}_probability.tif")
    chance = raster.stored(probability_path)
    if code.shape != chance.shape:
        raise InputError(
            f"{probability_path}: found {chance.shape[0]} × {chance.shape[1]} pixels, the class map has "
            f"{code.shape[0]} × {code.shape[1]}; give both layers of one scene"
        )
    if of_cube.attrs["scene"] != name:
        raise InputError(f"{cube}: cube of scene {of_cube.attrs['scene']!r}, but the map shows {name!r}; give its cube")
    positions_of(codes_of(code), classes, str(class_map))
    origin = {"version": gibbsite.__version__, "seed": facts.attrs.get("seed"), "model_sha256": fingerprint(model)}
    return MappedScene(
        name=name,
        class_map=class_map,
        grid=raster.read_grid(class_map),
        code=code,
        probability=chance,
        classes=classes,
        components=named_components(classes, facts["class_of"][...]),
        provenance=of_cube.attrs["provenance"],
        origin=origin,
    )


def codes_of(code: Rows) -> NDArray[np.integer]:
    """The class codes that a map has, rising."""
    found: NDArray[np.integer] = np.unique(np.concatenate([np.unique(code[rows]) for rows in blocks_of(code.shape[0])]))
    return found


def tags(scene: MappedScene) -> dict[str, str]:
    """Where a map comes from, as tags of its file."""
    found = {f"GIBBSITE_{key.upper()}": str(value) for key, value in scene.origin.items() if value is not None}
    found["GIBBSITE_PRODUCT"] = str(scene.provenance["product"])
    for number, file in enumerate(scene.provenance["files"], start=1):
        found[f"GIBBSITE_INPUT_{number}"] = f"{file['name']} sha256:{file['sha256']}"
    return found


def write_layers(scene: MappedScene, folder: Path) -> dict[str, stac.Asset]:
    """Write the published layers on the scene's own grid."""
    written: dict[str, stac.Asset] = {}
    for name, layer in layers_of(scene.classes, scene.components).items():
        source = scene.class_map.with_name(f"{scene.name}_{name}.tif")
        written |= publish(layer, source, folder, tags(scene))
    return written


def write_class_layers(
    scene: MappedScene, each_class: Callable[[int], raster.Blocks], folder: Path
) -> dict[str, stac.Asset]:
    """Write the probability of every class, a layer each, into a folder of its own; `each_class` gives it by code."""
    written: dict[str, stac.Asset] = {}
    folder.mkdir()
    for item in scene.classes:
        layer = Layer(f"probability-{item['code']}", f"probability of {item['name']}")
        loose = folder / f"{scene.name}_probability_{item['code']}.tif"
        raster.write_layer(loose, scene.grid, each_class(item["code"]), layer.title)
        for key, asset in publish(layer, loose, folder, tags(scene)).items():
            written[key] = replace(asset, href=f"./{folder.name}/{asset.path.name}")
    return written


def write_rest(
    scene: MappedScene, sieved: Rows, meaning: Interpretation, folder: Path, scratch: Path
) -> dict[str, stac.Asset]:
    """Write polygons of the `sieved` class map, the class table and the ENVI classification.

    The folder `scratch` takes what is kept on disk meanwhile.
    """
    names = {
        "polygons": ("classes as polygons", f"{scene.name}_classes.gpkg"),
        "table": ("table of classes", f"{scene.name}_classes.csv"),
        "envi": ("ENVI classification", f"{scene.name}_class.img"),
        "envi-header": ("header of the ENVI classification", f"{scene.name}_class.hdr"),
    }
    written = {
        key: stac.Asset(folder / name, f"./{name}", title, "metadata" if key in ("table", "envi-header") else "data")
        for key, (title, name) in names.items()
    }
    written["polygons"] = replace(written["polygons"], facts=stac.place(scene.grid))
    style = qml.polygon_style(scene.classes), sld.polygon_style(geopackage.LAYER, scene.classes)
    found = patches.find_patches(sieved, scratch)
    sizes = patches.measure(found, scene.probability, scene.grid)
    tables = polygons.frames(found, sizes, scene.grid, scene.classes, scratch)
    geopackage.write(written["polygons"].path, tables, *style)
    n_codes = 1 + max((int(item["code"]) for item in scene.classes), default=0)
    by_class = zones.measure(scene.code, scene.probability, scene.grid, n_codes)
    counts = np.bincount(found.code, minlength=n_codes), class_table.count_specks(scene.code, sieved, n_codes)
    store.write_text(written["table"].path, class_table.as_csv(scene.classes, by_class, *counts, meaning))
    envi_classes.write(written["envi"].path, scene.code, scene.grid, scene.classes)
    return written


def catalogue_item(scene: MappedScene, assets: Mapping[str, stac.Asset]) -> dict[str, Any]:
    """The scene's entry in the catalogue."""
    facts = {f"gibbsite:{key}": value for key, value in scene.origin.items()}
    inputs = [{"name": file["name"], "sha256": file["sha256"]} for file in scene.provenance["files"]]
    facts |= {"gibbsite:product": scene.provenance["product"], "gibbsite:inputs": inputs}
    return stac.item(scene.name, scene.grid, assets, scene.provenance, facts)
