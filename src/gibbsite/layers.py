"""The layers of a scene's map as they are published: cloud-optimised, with styles and attribute tables beside."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gibbsite import attribute_table, cog, qml, raster, sld, stac, store
from gibbsite.errors import InputError

Classes = Sequence[Mapping[str, Any]]


LAYER_NAMES = ("class", "probability", "entropy", "unknown", "component")
"""Of the layers that `map` draws, the most wanted first."""


@dataclass(frozen=True)
class Layer:
    """One layer: classes or numbers."""

    name: str
    """Ends its file names: S_<name>.tif."""
    title: str
    """What it shows."""
    classes: Classes = ()
    """What its codes mean; none for a layer of numbers."""
    high: float = 1.0
    """Numbers reach from 0 to this."""


def layers_of(classes: Classes, components: Classes) -> dict[str, Layer]:
    """The layers that `map` draws."""
    most_bits = max(1.0, math.log2(max(1, len(classes))))
    layers = (
        Layer("class", "class", classes),
        Layer("probability", "probability of the class"),
        Layer("entropy", "entropy of the class, bits", high=most_bits),
        Layer("unknown", "probability of no known class"),
        Layer("component", "component of the class", components),
    )
    return {layer.name: layer for layer in layers}


def publish(layer: Layer, source: Path, folder: Path, tags: Mapping[str, str]) -> dict[str, stac.Asset]:
    """Write the layer at `source`, its styles and its tables into `folder`; what was written, by key."""
    name = source.stem
    target = folder / f"{name}.tif"
    cog.write(source, target, "MODE" if layer.classes else "AVERAGE", tags)
    facts = stac.class_facts(layer.classes) if layer.name == "class" else {}
    facts |= stac.place(raster.read_grid(source))
    written = {layer.name: stac.Asset(target, f"./{target.name}", layer.title, "data", facts)}
    texts = {"qml": ("QGIS style", "style"), "sld": ("SLD style", "style")}
    if layer.classes:
        store.write_text(folder / f"{name}.qml", qml.class_map_style(layer.classes))
        store.write_text(folder / f"{name}.sld", sld.class_map_style(name, layer.classes))
        _write_tables(layer.classes, source, target)
        texts |= {"tif.aux.xml": ("names of the values", "metadata"), "tif.vat.dbf": ("attribute table", "metadata")}
        texts |= {"tif.vat.cpg": ("encoding of the attribute table", "metadata")}
    else:
        store.write_text(folder / f"{name}.qml", qml.number_style(0.0, layer.high))
        store.write_text(folder / f"{name}.sld", sld.number_style(name, 0.0, layer.high))
    for ending, (title, role) in texts.items():
        path = folder / f"{name}.{ending}"
        key = f"{layer.name}-{ending.replace('tif.', '').replace('.', '-')}"
        written[key] = stac.Asset(path, f"./{path.name}", f"{layer.title}: {title}", role)
    return written


def _write_tables(classes: Classes, source: Path, target: Path) -> None:
    n_codes = 1 + max(int(item["code"]) for item in classes)
    counts = np.zeros(n_codes, np.int64)
    with raster.open_raster(source) as opened:
        for start in range(0, opened.height, raster.TILE):
            rows = raster.read_rows(opened, start, min(start + raster.TILE, opened.height))
            if rows.max(initial=0) >= n_codes:
                raise InputError(
                    f"{source}: found code {rows.max()}, the model has {n_codes - 1}; give a map made with this model"
                )
            counts += np.bincount(rows.ravel(), minlength=n_codes)
    n_pixels = dict(enumerate(counts.tolist()))
    store.write_text(target.with_name(f"{target.name}.aux.xml"), attribute_table.auxiliary(classes, n_pixels))
    attribute_table.write_dbf(target.with_name(f"{target.name}.vat.dbf"), classes, n_pixels)
