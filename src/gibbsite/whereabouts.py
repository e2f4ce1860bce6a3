"""Where the pixels of each class lie (edges, spikes, detector columns), counted some rows at a time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, binary_fill_holes

EDGE = 3
"""Pixels from the edge of the scene."""
SPIKY = 0.95
"""Pixels with more despiked values than this share of the scene are spiky."""
MOST = 0.8
"""Share of a class's pixels that must lie in few columns."""

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Places:
    """Where the pixels of one class lie."""

    n_pixels: int
    n_at_edge: int
    n_spiky: int
    n_placed: int = 0
    """Pixels whose detector column is known."""
    n_columns: int = 0
    """The fewest columns that together hold MOST of these."""
    n_inside: int = 0
    """Pixels in those columns."""
    n_lines: int = 0
    """Lines, or samples if these are more, of the pixels in those columns."""


@dataclass(frozen=True, eq=False)
class Tally:
    """Pixels of each position, 0 for no class: all, at edges, spiky, and in each detector column (position, column)."""

    n_pixels: Integers
    n_at_edge: Integers
    n_spiky: Integers
    in_column: Integers

    @classmethod
    def none(cls, n_classes: int, n_columns: int) -> "Tally":
        """Of no pixel."""
        sizes = ((n_classes + 1,), (n_classes + 1,), (n_classes + 1,), (n_classes + 1, n_columns))
        return cls(*(np.zeros(size, np.int64) for size in sizes))

    def add(
        self, position: NDArray[np.integer], column: NDArray[np.integer], is_at_edge: Flags, is_spiky: Flags
    ) -> None:
        """Add pixels; arrays are of one shape, columns -1 where unknown; pixels of no class may be in any."""
        n, n_columns = self.in_column.shape
        np.add(self.n_pixels, np.bincount(position.ravel(), minlength=n), out=self.n_pixels)
        np.add(self.n_at_edge, np.bincount(position[is_at_edge], minlength=n), out=self.n_at_edge)
        np.add(self.n_spiky, np.bincount(position[is_spiky], minlength=n), out=self.n_spiky)
        known = (column >= 0) & (position > 0)
        pair = position[known].astype(np.int64) * n_columns + column[known]
        np.add(self.in_column, np.bincount(pair, minlength=n * n_columns).reshape(n, -1), out=self.in_column)

    def needed(self) -> Flags:
        """Which columns (position, column) hold MOST of a class: the fewest that do, none of no class."""
        found = np.zeros(self.in_column.shape, bool)
        for k, count in enumerate(self.in_column):
            if k and count.any():
                order = np.argsort(-count, kind="stable")
                n_needed = int(np.searchsorted(np.cumsum(count[order]), MOST * count.sum() - 1e-9)) + 1
                found[k, order[:n_needed]] = True
        return found

    def places(self, n_lines: Integers) -> list[Places]:
        """Of each class; `n_lines` (position) as in `Places`."""
        needed = self.needed()
        columns = (self.in_column.sum(1), needed.sum(1), np.where(needed, self.in_column, 0).sum(1), n_lines)
        facts = np.stack([self.n_pixels, self.n_at_edge, self.n_spiky, *columns], axis=1)
        return [Places(*row) for row in facts[1:].tolist()]


@dataclass(frozen=True, eq=False)
class Extent:
    """Lines and samples (position, ..) of one scene in which pixels of a class lie in its needed columns."""

    lines: Flags
    samples: Flags

    @classmethod
    def none(cls, n_classes: int, shape: tuple[int, int]) -> "Extent":
        """Of no pixel, in a scene of this shape."""
        return cls(*(np.zeros((n_classes + 1, n), bool) for n in shape))

    def add(self, first: int, position: NDArray[np.integer], column: NDArray[np.integer], needed: Flags) -> None:
        """Add the pixels of rows (rows, width) from line `first` on."""
        row, sample = np.nonzero((column >= 0) & (position > 0))
        own, at = position[row, sample], column[row, sample]
        inside = needed[own, at]
        self.lines[own[inside], first + row[inside]] = True
        self.samples[own[inside], sample[inside]] = True


def at_edge(valid: Flags) -> Flags:
    """Which pixels (y, x) lie within EDGE pixels of the outline of the valid ones; holes have no outline."""
    reach = np.arange(-EDGE, EDGE + 1)
    disc = reach[:, None] ** 2 + reach**2 <= EDGE**2
    return np.asarray(binary_dilation(~binary_fill_holes(valid), disc, border_value=1)) & valid


def usual_spikes(count: Integers) -> float:
    """The number of despiked values that a share SPIKY of the pixels do not exceed; `count` of pixels by number."""
    n = int(count.sum())
    if not n:
        return 0.0
    rank = SPIKY * (n - 1)
    low, high = np.searchsorted(np.cumsum(count), (np.floor(rank), np.ceil(rank)), side="right")
    return float(low + (high - low) * (rank - np.floor(rank)))
