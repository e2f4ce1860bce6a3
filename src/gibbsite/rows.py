"""Rasters taken some rows at a time, so that none is held whole: arrays, maps on disk, and plain numbers on disk.

Plain numbers are what a step keeps beside memory while it works. They are written and read without GDAL, which does not
tell of a full disk, and have a header under which GDAL's algorithms read them.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.errors import NotGeoreferencedWarning

BLOCK = 256
"""Rows that are held at once: those of a row of tiles."""

PIXELS = 2**20
"""Of a list of pixels, so many are held at once."""

_TYPES = {"uint8": 1, "int32": 3, "uint16": 12}
"""Types of plain numbers, as ENVI numbers them."""


class Rows(Protocol):
    """A raster that gives some of its rows; an array is one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(height, width)."""

    def __getitem__(self, rows: slice, /) -> NDArray[Any]:
        """Values (rows, width)."""


@dataclass(frozen=True)
class Plain:
    """Plain numbers on disk."""

    path: Path
    shape: tuple[int, int]
    dtype: str

    def __getitem__(self, rows: slice, /) -> NDArray[Any]:
        start, stop, _ = rows.indices(self.shape[0])
        width, kind = self.shape[1], np.dtype(self.dtype)
        count = max(0, stop - start) * width
        return np.fromfile(self.path, kind, count, offset=start * width * kind.itemsize).reshape(-1, width)

    @contextmanager
    def band(self) -> Iterator[Any]:
        """The raster as GDAL's algorithms take it."""
        height, width = self.shape
        text = f"samples = {width}\nlines = {height}\nbands = 1\ndata type = {_TYPES[self.dtype]}\ninterleave = bsq\n"
        self.path.with_suffix(".hdr").write_text(f"ENVI\n{text}byte order = 0\n", encoding="ascii")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)
            opened = rasterio.open(self.path, driver="ENVI")
        with opened:
            yield rasterio.band(opened, 1)


@dataclass(frozen=True, eq=False)
class Listed:
    """Values of a stored list of pixels, as rows of their grid."""

    pixel: Any
    """y · width + x, rising."""
    edge: NDArray[np.int64]
    """As `edges_of` gives it."""
    value: Callable[[slice], NDArray[Any]]
    """Of a part of the list."""
    shape: tuple[int, int]
    empty: np.generic
    """Where no pixel is listed."""

    def __getitem__(self, rows: slice, /) -> NDArray[Any]:
        start, stop, _ = rows.indices(self.shape[0])
        part = slice(int(self.edge[start]), int(self.edge[stop]))
        found = np.full((stop - start, self.shape[1]), self.empty)
        found.ravel()[self.pixel[part] - start * self.shape[1]] = self.value(part)
        return found


def blocks_of(height: int) -> Iterator[slice]:
    """The rows of a raster, BLOCK at a time."""
    for start in range(0, height, BLOCK):
        yield slice(start, min(start + BLOCK, height))


def edges_of(pixel: Any, shape: tuple[int, int]) -> NDArray[np.int64]:
    """(height + 1) Where the pixels of each row begin in a stored list of them (y · width + x, rising)."""
    count = np.zeros(shape[0], np.int64)
    for start in range(0, pixel.shape[0], PIXELS):
        count += np.bincount(pixel[start : start + PIXELS] // shape[1], minlength=shape[0])
    return np.append(0, np.cumsum(count))


def write_plain(path: Path, blocks: Iterable[NDArray[Any]], width: int, dtype: str) -> Plain:
    """Plain numbers of blocks (rows, width), one below the other."""
    height = 0
    with path.open("wb") as file:
        for block in blocks:
            file.write(np.ascontiguousarray(block, f"<{np.dtype(dtype).str[1:]}").tobytes())
            height += len(block)
    return Plain(path, (height, width), dtype)
