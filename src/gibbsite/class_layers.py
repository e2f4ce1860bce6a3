"""The probability of every class, on disk between mapping and publishing: class by class, usable pixels only."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import zarr
from numpy.typing import NDArray

from gibbsite import store
from gibbsite.rows import BLOCK, blocks_of

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


def layer(group: zarr.Group, code: int, shape: tuple[int, int]) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """First row and values (rows, width) of the probability of one class, NaN where there is no usable pixel."""
    for rows, part in pixels_of_rows(group["pixel"], shape):
        values = np.full((rows.stop - rows.start, shape[1]), np.nan, np.float32)
        values.ravel()[group["pixel"][part] - rows.start * shape[1]] = group["probability"][code - 1, part]
        yield rows.start, values


def pixels_of_rows(pixel: zarr.Array, shape: tuple[int, int]) -> Iterator[tuple[slice, slice]]:
    """Some rows of the grid at a time, and where their pixels stand among the usable ones (y · width + x, rising)."""
    rows, n_pixels = list(blocks_of(shape[0])), pixel.shape[0]
    count = np.zeros(len(rows), np.int64)
    for start in range(0, n_pixels, store.CHUNK_PIXELS):
        count += np.bincount(pixel[start : start + store.CHUNK_PIXELS] // (BLOCK * shape[1]), minlength=len(rows))
    end = np.cumsum(count).tolist()
    yield from zip(rows, map(slice, [0, *end[:-1]], end), strict=True)
