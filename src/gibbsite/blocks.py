"""Blocks of lines and strips of them, and a window of lines in which bland pixels are looked for."""

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels
from gibbsite.kernels import LANES
from gibbsite.sources import Lines

Number = TypeVar("Number", bound=np.generic)


class Block(NamedTuple):
    """Some lines of a scene, or a strip of them."""

    first: int
    """The first line's number."""
    start: int
    """The first sample's number."""
    lines: Lines
    """(line, band, sample) cleaned; NaN in pixels that are not usable."""
    n_despiked: NDArray[np.int32]
    """(line, sample) Values that were taken for spikes and replaced."""

    def usable(self) -> NDArray[np.bool_]:
        """(line, sample) Whether all bands of a pixel are finite."""
        return np.isfinite(self.lines.sum(axis=1))


def cut(block: Block) -> Iterator[Block]:
    """The strips of whole lines."""
    for start in range(0, block.lines.shape[2], LANES):
        here = slice(start, start + LANES)
        yield Block(block.first, start, padded(block.lines, here), padded(block.n_despiked, here, 0))


def padded(whole: NDArray[Number], here: slice, fill: float = np.nan) -> NDArray[Number]:
    """A strip (…, LANES) of an array (…, sample), C-contiguous, filled beyond its end."""
    part = whole[..., here]
    wanted = np.full((*part.shape[:-1], LANES), fill, part.dtype)
    wanted[..., : part.shape[-1]] = part
    return wanted


class Window:
    """Consecutive lines, with the blandest pixel of each detector column in each."""

    def __init__(self, column: NDArray[np.int16], wavelength: NDArray[np.float64]) -> None:
        self.column, self.wavelength = column, wavelength
        self.n_columns = int(column.max()) + 1
        self.first = self.last = 0
        self.parts: list[tuple[Lines, NDArray[np.int32], NDArray[np.float32], NDArray[np.int32]]] = []

    def add(self, block: Block) -> None:
        score = kernels.crookedness(block.lines, self.wavelength)
        rows = slice(block.first, block.first + len(block.lines))
        best, sample = kernels.best_of_columns(score, self.column[rows], self.n_columns)
        self.parts.append((block.lines, block.n_despiked, best, sample))
        self.last = rows.stop

    def divided(self, rows: slice, choice: tuple[int, int]) -> Block:
        if len(self.parts) > 1:
            self.parts = [tuple(np.concatenate(part) for part in zip(*self.parts, strict=True))]  # type: ignore[list-item]
        lines, n_despiked, best, sample = self.parts[0]
        first, last = rows.start - self.first, rows.stop - self.first
        column = self.column[self.first : self.last]
        ratio = kernels.divide_by_bland(lines, first, last, (best, sample), column, choice)
        return Block(rows.start, 0, ratio, n_despiked[first:last])

    def forget(self, first: int) -> None:
        if first > self.first:
            self.parts = [tuple(part[first - self.first :] for part in parts) for parts in self.parts]  # type: ignore[misc]
            self.first = first
