"""Write class, probability, entropy, unknown and component maps of a scene."""

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

from gibbsite import class_layers, maps, raster, store
from gibbsite.errors import InputError
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

KINDS = dict.fromkeys(("code", "component"), np.dtype(np.uint16)) | dict.fromkeys(MEANING, np.dtype(np.float32))
"""Layers, and the type of their values."""


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
    n_pixels = group["pixel"].shape[0]
    with ExitStack() as stack:
        each_class = None
        if settings.map.class_probabilities:
            path = args.out_dir / f"{scene}_probabilities.zarr"
            each_class = stack.enter_context(class_layers.create(path, scene, group["pixel"][...], len(model.classes)))
        out = stack.enter_context(store.writing_together(args.out_dir))
        files = {name: stack.enter_context(TemporaryFile(dir=out)) for name in KINDS}
        layers = {name: Layer(files[name], grid, dtype) for name, dtype in KINDS.items()}
        n_unknown = draw_layers(group, model, layers, each_class)
        raster.write_class_map(out / f"{scene}_class.tif", grid, model.classes, layers["code"].rows())
        components = named_components(model.classes, model.class_of)
        path = out / f"{scene}_component.tif"
        raster.write_class_map(path, grid, components, layers["component"].rows(), "component")
        for name, meaning in MEANING.items():
            raster.write_layer(out / f"{scene}_{name}.tif", grid, layers[name].rows(), meaning)
    log.info("%s: %d pixels mapped, %.1f %% of no known class", scene, n_pixels, 100.0 * n_unknown / n_pixels)


@dataclass
class Layer:
    """A map while it is drawn, on disk: the layers of a large scene are more than memory may hold."""

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


def draw_layers(
    group: zarr.Group, model: Model, layers: Mapping[str, Layer], each_class: zarr.Array | None = None
) -> int:
    """The number of pixels of no known class, after all layers were drawn.

    Probabilities of all classes go to `each_class` (class, pixel), when it is given.
    """
    draws, n_unknown = model.draws(), 0
    for first, pixel, feature in _blocks(group):
        by_component = maps.component_probabilities(feature, draws, model.step)
        by_class = maps.sum_by_class(by_component, model.class_of, len(model.classes))
        answer = maps.certainty(by_class, model.n_known)
        for name in ("code", *MEANING):
            layers[name].draw(pixel, getattr(answer, name))
        layers["component"].draw(pixel, maps.likeliest_component(by_component, model.class_of, answer.code))
        n_unknown += int((answer.unknown > 0.5).sum())
        if each_class is not None:
            each_class[:, first : first + len(pixel)] = by_class.T.astype(np.float32)
    return n_unknown


def _blocks(group: zarr.Group) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int16]]]:
    """First rank, pixels and features of each block."""
    n_pixels = group["pixel"].shape[0]
    for start in range(0, n_pixels, BLOCK_PIXELS):
        stop = start + BLOCK_PIXELS
        yield start, group["pixel"][start:stop], group["feature"][start:stop]
