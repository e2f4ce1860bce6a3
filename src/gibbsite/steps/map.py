"""Write class, probability, entropy and unknown maps of a scene."""

import argparse
import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

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

KINDS = {"code": np.dtype(np.uint16)} | dict.fromkeys(("probability", "entropy", "unknown"), np.dtype(np.float32))
"""Layers, by their name in `Certainty`, and the type of their values."""

MEANINGS = {
    "probability": "probability of the class",
    "entropy": "entropy of the class, bits",
    "unknown": "probability of no known class",
}
"""What a GIS calls the layers beside the class map."""


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
    n_pixels = group["pixel"].shape[0]
    with store.writing_together(args.out_dir) as out, ExitStack() as stack:
        files = {name: stack.enter_context(TemporaryFile(dir=out)) for name in KINDS}
        layers = {name: Layer(files[name], grid, dtype) for name, dtype in KINDS.items()}
        n_unknown = _draw(group, model, layers)
        raster.write_class_map(out / f"{scene}_class.tif", grid, model.classes, layers["code"].rows())
        for name, meaning in MEANINGS.items():
            raster.write_layer(out / f"{scene}_{name}.tif", grid, layers[name].rows(), meaning)
    log.info("%s: %d pixels mapped, %.1f %% of no known class", scene, n_pixels, 100.0 * n_unknown / n_pixels)


@dataclass
class Layer:
    """A map while it is drawn, on disk: four layers of a large scene are more than memory may hold."""

    file: BinaryIO
    """Open for writing and reading, empty."""
    grid: Grid
    """Of the scene."""
    dtype: np.dtype[Any]
    """Of the values; without a value, floats are NaN and codes 0."""
    n_drawn: int = 0
    """Pixels of the grid so far."""

    def draw(self, pixel: NDArray[np.int64], value: NDArray[Any]) -> None:
        """Add the values of pixels (y · width + x, rising), beyond those before."""
        first, self.n_drawn = self.n_drawn, int(pixel[-1]) + 1
        stretch = self._empty(self.n_drawn - first)
        stretch[pixel - first] = value
        self.file.write(stretch.tobytes())

    def rows(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """First row and values of some rows at a time, down to the last of the grid."""
        self.file.seek(0)
        for start in range(0, self.grid.height, raster.TILE):
            n_values = (min(start + raster.TILE, self.grid.height) - start) * self.grid.width
            drawn = np.frombuffer(self.file.read(n_values * self.dtype.itemsize), self.dtype)
            yield start, np.append(drawn, self._empty(n_values - len(drawn))).reshape(-1, self.grid.width)

    def _empty(self, n_pixels: int) -> NDArray[Any]:
        return np.full(n_pixels, np.nan if self.dtype.kind == "f" else raster.NO_CLASS, self.dtype)


def _draw(group: zarr.Group, model: Model, layers: Mapping[str, Layer]) -> int:
    """The number of pixels of no known class, after all layers were drawn."""
    draws, n_unknown = model.draws(), 0
    for pixel, feature in _blocks(group):
        answer = maps.certainty(maps.class_probabilities(feature, draws, model.step), model.n_known)
        for name, layer in layers.items():
            layer.draw(pixel, getattr(answer, name))
        n_unknown += int((answer.unknown > 0.5).sum())
    return n_unknown


def _blocks(group: zarr.Group) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int16]]]:
    n_pixels = group["pixel"].shape[0]
    for start in range(0, n_pixels, BLOCK_PIXELS):
        yield group["pixel"][start : start + BLOCK_PIXELS], group["feature"][start : start + BLOCK_PIXELS]
