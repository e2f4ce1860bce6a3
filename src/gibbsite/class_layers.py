"""The probability of every class, on disk between mapping and publishing: class by class, usable pixels only."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import zarr
from numpy.typing import NDArray

from gibbsite import store
from gibbsite.errors import InputError
from gibbsite.rows import Listed, Rows, edges_of

CHUNK_PIXELS = 65536
"""Pixels of a class in one chunk."""


@contextmanager
def create(path: Path, scene: str, pixel: NDArray[np.int64], n_classes: int) -> Iterator[zarr.Array]:
    """An array (class, pixel) float32 to fill, for the pixels of a features store; at `path` when it is complete."""
    with store.create(path, "probabilities", scene=scene) as group:
        store.add_array(group, "pixel", ("pixel",), pixel)
        yield store.add_array(
            group,
            "probability",
            ("class", "pixel"),
            shape=(n_classes, len(pixel)),
            dtype="float32",
            chunks=(1, CHUNK_PIXELS),
        )


def check(group: zarr.Group, path: Path, scene: str, n_classes: int, shape: tuple[int, int]) -> None:
    """Refuse probabilities of another scene or model."""
    found, n_found = group.attrs["scene"], group["probability"].shape[0]
    if found != scene:
        raise InputError(
            f"{path}: probabilities of scene {found!r}, but the map shows {scene!r}; give those of the scene"
        )
    pixel = group["pixel"]
    last = int(pixel[-1]) if pixel.shape[0] else -1
    if n_found != n_classes or last >= shape[0] * shape[1]:
        raise InputError(
            f"{path}: {n_found} classes of pixels up to number {last}, but the model has {n_classes} and the map "
            f"{shape[0]} × {shape[1]} pixels; map the scene anew"
        )


def layers(group: zarr.Group, shape: tuple[int, int]) -> Callable[[int], Rows]:
    """A function from the code of a class to its probability (height, width), NaN where there is no usable pixel."""
    pixel, probability = group["pixel"], group["probability"]
    edge = edges_of(pixel, shape)
    return lambda code: Listed(pixel, edge, lambda part: probability[code - 1, part], shape, np.float32(np.nan))
