"""Write class, probability, entropy and unknown maps of a scene."""

import argparse
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zarr
from numpy.typing import NDArray

from gibbsite import maps, raster, store
from gibbsite.errors import InputError
from gibbsite.model import Model, read_model
from gibbsite.scene import Grid
from gibbsite.settings import Settings

log = logging.getLogger(__name__)

BLOCK_PIXELS = 65536
"""Pixels whose class probabilities are held at once."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The step's flags."""
    parser.add_argument("--features", type=Path, required=True, help="feature store of the scene")
    parser.add_argument("--model", type=Path, required=True, help="model store made by `select`")
    parser.add_argument("--out-dir", type=Path, required=True, help="folder for SCENE_class.tif and its companions")


def run(args: argparse.Namespace, settings: Settings) -> None:  # noqa: ARG001 - every step has this shape
    """Map one scene."""
    group, model = store.read(args.features, "features"), read_model(args.model)
    if group.attrs["basis"] != model.basis:
        raise InputError(f"{args.features}: features of another basis than {args.model}; make both in one run")
    scene, grid = str(group.attrs["scene"]), Grid.from_json(group.attrs["grid"])
    layers = draw_layers(group, grid, model)
    with store.writing_together(args.out_dir) as out:
        raster.write_class_map(out / f"{scene}_class.tif", grid, model.classes, [(0, layers.code)])
        for name, layer, meaning in (
            ("probability", layers.probability, "probability of the class"),
            ("entropy", layers.entropy, "entropy of the class, bits"),
            ("unknown", layers.unknown, "probability of no known class"),
        ):
            raster.write_layer(out / f"{scene}_{name}.tif", grid, [(0, layer)], meaning)
    share = float((layers.unknown > 0.5).sum() / group["pixel"].shape[0])
    log.info("%s: %d pixels mapped, %.1f %% of no known class", scene, group["pixel"].shape[0], 100.0 * share)


@dataclass(frozen=True)
class Layers:
    """The maps of one scene, (height, width) each: 14 bytes per pixel of the grid."""

    code: NDArray[np.uint16]
    probability: NDArray[np.float32]
    entropy: NDArray[np.float32]
    unknown: NDArray[np.float32]


def draw_layers(group: zarr.Group, grid: Grid, model: Model) -> Layers:
    """The layers of a scene; no class and NaN where there is no usable pixel."""
    shape = (grid.height, grid.width)
    layers = Layers(np.zeros(shape, np.uint16), *(np.full(shape, np.nan, np.float32) for _ in range(3)))
    draws = model.draws()
    for pixel, feature in _blocks(group):
        answer = maps.certainty(maps.class_probabilities(feature, draws, model.step), model.n_known)
        layers.code.ravel()[pixel] = answer.code
        layers.probability.ravel()[pixel] = answer.probability
        layers.entropy.ravel()[pixel] = answer.entropy
        layers.unknown.ravel()[pixel] = answer.unknown
    return layers


def _blocks(group: zarr.Group) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int16]]]:
    n_pixels = group["pixel"].shape[0]
    for start in range(0, n_pixels, BLOCK_PIXELS):
        yield group["pixel"][start : start + BLOCK_PIXELS], group["feature"][start : start + BLOCK_PIXELS]
