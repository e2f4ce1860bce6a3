"""Patches of a class map: pixels of one class that share sides, found block by block and joined at the seams.

What is held is one block of rows and some numbers for each patch; the map itself stays on disk.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rasterio import features
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gibbsite import zones
from gibbsite.rows import Plain, Rows, blocks_of, write_plain
from gibbsite.scene import Grid
from gibbsite.zones import Sizes

Integers = NDArray[np.int64]


def without_specks(code: Rows, min_pixels: int, folder: Path) -> Rows:
    """The class map with smaller patches merged into their largest neighbour, missing pixels untouched.

    A speck with only specks or missing pixels around it stays. Passes repeat until nothing changes, since a
    merged patch may be large enough to take in its neighbours. `folder` takes what is kept on disk meanwhile.
    """
    height, width = code.shape
    if min_pixels <= 1 or height * width == 1:
        return code
    least = min(min_pixels, height * width)
    mask = write_plain(folder / "mapped", (code[rows] > 0 for rows in blocks_of(height)), width, "uint8")
    found = write_plain(folder / "sieved", (code[rows] for rows in blocks_of(height)), width, "uint16")
    while True:
        with found.band() as source, mask.band() as is_mapped:
            sieved: NDArray[np.uint16] = features.sieve(source, least, mask=is_mapped, connectivity=4)
        if all(np.array_equal(sieved[rows], found[rows]) for rows in blocks_of(height)):
            return found
        found = write_plain(found.path, [sieved], width, "uint16")


@dataclass(frozen=True)
class Numbers:
    """Patch of each pixel, 1 .. n_patches, 0 for none: its piece within a block, looked up."""

    piece: Plain
    patch_of: NDArray[np.int32]

    @property
    def shape(self) -> tuple[int, int]:
        """(height, width)."""
        return self.piece.shape

    def __getitem__(self, rows: slice, /) -> NDArray[np.int32]:
        return self.patch_of[self.piece[rows]]


@dataclass(frozen=True, eq=False)
class Patches:
    """The patches of a map, numbered by class and by their first pixels; arrays are (n_patches)."""

    number: Numbers
    """Of each pixel."""
    code: NDArray[np.uint16]
    """Class of each."""
    first: Integers
    """Row in which it begins."""
    last: Integers
    """Row in which it ends."""


def find_patches(code: Rows, folder: Path) -> Patches:
    """The patches of a class map; `folder` keeps their numbers on disk."""
    height, width = code.shape
    pieces, seams = _Pieces([], [], []), []
    with (folder / "pieces").open("wb") as file:
        above = None
        for rows in blocks_of(height):
            block = code[rows]
            piece = pieces.add(block, rows.start)
            if above is not None:
                seams.append(_pairs(above, (block[0], piece[0])))
            above = block[-1], piece[-1]
            file.write(piece.astype("<i4").tobytes())
    joined = np.concatenate(seams) if seams else np.zeros((0, 2), np.int64)
    return _patches(Plain(folder / "pieces", (height, width), "int32"), pieces, joined)


def measure(patches: Patches, probability: Rows, grid: Grid) -> Sizes:
    """Sizes of the patches, (n_patches)."""
    found = zones.measure(patches.number, probability, grid, len(patches.code) + 1)
    return Sizes(found.n_pixels[1:], found.area[1:], found.mean_probability[1:])


@dataclass(frozen=True)
class _Pieces:
    """What blocks have of patches, numbered from 1 in the order of their first pixels: class, first and last row."""

    code: list[NDArray[np.uint16]]
    first: list[Integers]
    last: list[Integers]

    def add(self, block: NDArray[np.uint16], row: int) -> NDArray[np.int64]:
        """The piece of each pixel of the block that begins at a row of the map, 0 for none."""
        n_before = sum(map(len, self.code))
        run, code, run_row = _runs(block)
        touching = _pairs((block[:-1], run[:-1]), (block[1:], run[1:]))
        label = _connected(touching, len(code))
        mapped = np.flatnonzero(code > 0)
        _, start, piece = np.unique(label[mapped], return_index=True, return_inverse=True)
        # Numbers of components are arbitrary, so pieces are ranked by their first run.
        rank = np.empty(len(start), np.int64)
        rank[np.argsort(start)] = np.arange(len(start))
        of_run = np.zeros(len(code), np.int64)
        of_run[mapped] = n_before + 1 + rank[piece]
        last = np.zeros(len(start), np.int64)
        np.maximum.at(last, rank[piece], run_row[mapped])
        first = mapped[np.sort(start)]
        self.code.append(code[first])
        self.first.append(row + run_row[first])
        self.last.append(row + last)
        return of_run[run]


def _runs(block: NDArray[np.uint16]) -> tuple[Integers, NDArray[np.uint16], Integers]:
    """Run of each pixel (equal codes side by side in a row), and code and row of each run."""
    begins = np.ones(block.shape, bool)
    begins[:, 1:] = block[:, 1:] != block[:, :-1]
    at = np.flatnonzero(begins)
    return np.cumsum(begins).reshape(block.shape) - 1, block.ravel()[at], at // block.shape[1]


def _pairs(above: tuple[NDArray[np.uint16], Integers], below: tuple[NDArray[np.uint16], Integers]) -> Integers:
    """(n, 2) numbers above and below each other where both are of one class; `above` and `below` are code, number."""
    same = (above[0] == below[0]) & (above[0] > 0)
    pairs = np.stack([above[1][same], below[1][same]], axis=1)
    # Neighbours along the row mostly repeat each other.
    return pairs[np.append(True, (pairs[1:] != pairs[:-1]).any(axis=1))[: len(pairs)]]


def _connected(pairs: Integers, n: int) -> NDArray[np.int32]:
    """Component of each of n numbers (from 0) that pairs join."""
    joins = coo_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    label: NDArray[np.int32] = connected_components(joins, directed=False)[1]
    return label


def _patches(piece: Plain, pieces: _Pieces, seams: Integers) -> Patches:
    """The pieces joined along the seams, and numbered by class and first piece."""
    code, first, last = np.concatenate(pieces.code), np.concatenate(pieces.first), np.concatenate(pieces.last)
    label = _connected(seams - 1, len(code))
    _, begin, joined = np.unique(label, return_index=True, return_inverse=True)
    order = np.lexsort((begin, code[begin]))
    rank = np.empty(len(begin), np.int64)
    rank[order] = np.arange(len(begin))
    patch_of = np.append(0, 1 + rank[joined]).astype(np.int32)
    end = np.zeros(len(begin), np.int64)
    np.maximum.at(end, rank[joined], last)
    return Patches(Numbers(piece, patch_of), code[begin][order], first[begin][order], end)
