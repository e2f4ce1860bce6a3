"""Write class, probability, entropy, unknown and component maps of a scene."""

import argparse
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zarr
from numpy.typing import NDArray

from gibbsite import class_layers, maps, raster, store
from gibbsite.errors import InputError
from gibbsite.maps import Codes
from gibbsite.model import Model, named_components, read_model
from gibbsite.scene import Grid
from gibbsite.settings import Settings

log = logging.getLogger(__name__)

BLOCK_PIXELS = 16384
"""Pixels whose component probabilities are held at once."""

MEANING = {
    "probability": "probability of the class",
    "entropy": "entropy of the class, bits",
    "unknown": "probability of no known class",
}
"""Layer of numbers -> name of its band."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The step's flags."""
    parser.add_argument("--features", type=Path, required=True, help="feature store of the scene")
    parser.add_argument("--model", type=Path, required=True, help="model store made by `select`")
    parser.add_argument("--out-dir", type=Path, required=True, help="folder for SCENE_class.tif and its companions")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Map one scene."""
    group, model = store.read(args.features, "features"), read_model(args.model)
    if group.attrs["basis"] != model.basis:
        raise InputError(f"{args.features}: features of another basis than {args.model}; make both in one run")
    scene, grid = str(group.attrs["scene"]), Grid.from_json(group.attrs["grid"])
    with ExitStack() as stack:
        each_class = None
        if settings.map.class_probabilities:
            path = args.out_dir / f"{scene}_probabilities.zarr"
            each_class = stack.enter_context(class_layers.create(path, scene, group["pixel"][...], len(model.classes)))
        layers = draw_layers(group, grid, model, each_class)
        with store.writing_together(args.out_dir) as out:
            raster.write_class_map(out / f"{scene}_class.tif", grid, model.classes, [(0, layers.code)])
            components = named_components(model.classes, model.class_of)
            raster.write_class_map(
                out / f"{scene}_component.tif", grid, components, [(0, layers.component)], "component"
            )
            for name, meaning in MEANING.items():
                raster.write_layer(out / f"{scene}_{name}.tif", grid, [(0, getattr(layers, name))], meaning)
    share = float((layers.unknown > 0.5).sum() / group["pixel"].shape[0])
    log.info("%s: %d pixels mapped, %.1f %% of no known class", scene, group["pixel"].shape[0], 100.0 * share)


@dataclass(frozen=True)
class Layers:
    """The maps of one scene, (height, width) each: 16 bytes per pixel of the grid."""

    code: Codes
    component: Codes
    probability: NDArray[np.float32]
    entropy: NDArray[np.float32]
    unknown: NDArray[np.float32]


def draw_layers(group: zarr.Group, grid: Grid, model: Model, each_class: zarr.Array | None = None) -> Layers:
    """The layers of a scene; no class and NaN where there is no usable pixel.

    Probabilities of all classes go to `each_class` (class, pixel), when it is given.
    """
    shape = (grid.height, grid.width)
    layers = Layers(
        np.zeros(shape, np.uint16), np.zeros(shape, np.uint16), *(np.full(shape, np.nan, np.float32) for _ in range(3))
    )
    draws = model.draws()
    for first, pixel, feature in _blocks(group):
        by_component = maps.component_probabilities(feature, draws, model.step)
        by_class = maps.sum_by_class(by_component, model.class_of, len(model.classes))
        answer = maps.certainty(by_class, model.n_known)
        layers.code.ravel()[pixel] = answer.code
        layers.component.ravel()[pixel] = maps.likeliest_component(by_component, model.class_of, answer.code)
        layers.probability.ravel()[pixel] = answer.probability
        layers.entropy.ravel()[pixel] = answer.entropy
        layers.unknown.ravel()[pixel] = answer.unknown
        if each_class is not None:
            each_class[:, first : first + len(pixel)] = by_class.T.astype(np.float32)
    return layers


def _blocks(group: zarr.Group) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int16]]]:
    """First rank, pixels and features of each block."""
    n_pixels = group["pixel"].shape[0]
    for start in range(0, n_pixels, BLOCK_PIXELS):
        stop = start + BLOCK_PIXELS
        yield start, group["pixel"][start:stop], group["feature"][start:stop]
