"""Gains of the detector columns, from the ratios of neighbours in two passes: over some lines, and over all."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels, lit
from gibbsite.blocks import padded
from gibbsite.clean import stripes
from gibbsite.corrections import Corrections
from gibbsite.kernels import LANES
from gibbsite.sources import Lines, Source
from gibbsite.threads import in_order

SOME_LINES = 16
"""Lines, or a little more, that are read at once: no other lines are looked at, and so few stay in the cache."""
ADDED_LINES = 48
"""Lines, or a little more, whose sums are handed over together."""
SOME_BANDS = 16
"""Bands that a thread looks at at once."""


def column_gains(source: Source, corrections: Corrections) -> NDArray[np.float32] | None:
    """Gains (n_bands, n_columns) of the detector columns; None where no two neighbours are known."""
    pair = stripes.neighbour_columns(source.column, source.valid)
    if pair.max() < 0:
        return None
    scene = _Neighbours(source, corrections, pair)
    keys = scene.first_keys()
    some_bands = list(_cut(slice(0, keys.shape[1]), SOME_BANDS))
    median, limit = map(np.concatenate, zip(*in_order(partial(_look, keys), some_bands), strict=True))
    ratio = stripes.move(median, limit, scene.sums(median.astype(np.float32), limit))
    ratio = ratio[:, : int(source.column.max()) + 1]
    # In one thread: two would wait for each other at every operation on arrays so small.
    return np.concatenate([stripes.column_gains(ratio[some]) for some in some_bands]).astype(np.float32)


@dataclass(frozen=True, eq=False)
class _Neighbours:
    """The pairs of neighbouring columns of a scene."""

    source: Source
    corrections: Corrections
    pair: NDArray[np.integer]
    """(y, x) The lower detector column of a pixel and the next in its line, -1 for no pair."""

    @cached_property
    def is_level(self) -> bool:
        """Whether each sample was seen by the detector column of its own number."""
        return lit.is_level(self.source)

    def first_keys(self) -> NDArray[np.uint16]:
        """Ratios (place, band, column) of the pairs that are looked at first, 0 for none."""
        by_line = stripes.line_places(self.pair) if self.is_level else None
        place = stripes.places(self.pair) if by_line is None else by_line
        # Room for whole strips, and for whole registers of keys.
        room, n_columns = math.lcm(LANES, kernels.SOME_KEYS), int(self.source.column.max()) + 1
        keys = np.zeros((int(place.max()) + 1, len(self.corrections.band), -(-n_columns // room) * room), np.uint16)

        def keep(rows: slice) -> None:
            if by_line is not None:
                for start, here, following in self._level_strips(rows):
                    kernels.keep_level_ratios(here, following, place[rows], start, keys)
            else:
                for here, turn, mine, number in self._aslant_strips(rows, place):
                    kernels.keep_ratios(here, number, mine, turn, keys)

        for _ in in_order(keep, (rows for rows in self._rows(stripes.GROUP_LINES) if place[rows].max() >= 0)):
            pass
        return keys

    def sums(self, middle: NDArray[np.float32], limit: NDArray[np.float32]) -> NDArray[np.float64]:
        """Sums (2, band, column) over all pairs, of `kernels.add_ratios`."""

        # Aslant, two columns may be neighbours in a line many times.
        kind = np.float32 if self.is_level else np.float64

        def add(rows: slice) -> NDArray[np.floating]:
            sums = np.zeros((2, *middle.shape), kind)
            for some in _cut(rows, self.source.whole_chunks(SOME_LINES)):
                if self.is_level:
                    for start, here, following in self._level_strips(some):
                        kernels.add_level_ratios(here, following, start, middle, limit, sums)
                else:
                    for here, turn, mine in self._aslant_strips(some):
                        kernels.add_ratios(here, mine, turn, middle, limit, sums)
            return sums

        total = np.zeros((2, *middle.shape))
        for some in in_order(add, self._rows(ADDED_LINES)):
            total += some
        return total

    def _rows(self, n_lines: int) -> Iterator[slice]:
        """All lines, so many at a time or a little more, but never more than can be added up exactly."""
        return _cut(slice(0, len(self.pair)), min(self.source.whole_chunks(n_lines), kernels.MOST_ADDED))

    def _level_strips(self, rows: slice) -> Iterator[tuple[int, Lines, Lines]]:
        """First sample, strip and the strip that follows it, where samples are columns."""
        strip, width = lit.strips(self.source, self.corrections, rows), self.pair.shape[1]
        here = strip(0)
        for start in range(0, width, LANES):
            # The last pixel of a strip has its neighbour in the next.
            following = strip(start + LANES) if start + LANES < width else np.full_like(here, np.nan)
            yield start, here, following
            here = following

    def _aslant_strips(self, rows: slice, *others: NDArray[np.integer]) -> Iterator[tuple[NDArray[Any], ...]]:
        """Strip, whether columns fall from left to right in it, its pairs and its part of others (y, x), for columns
        that run aslant over a map."""
        strip, column = lit.strips(self.source, self.corrections, rows), self.source.column[rows]
        where = [some[rows] for some in (self.pair, *others)]
        # Where columns fall, the right pixel belongs to the lower one.
        turn = np.diff(column, axis=1, append=0) < 0
        # The last pixel of a strip is the first of the next, so that no pair is cut.
        for start in range(0, column.shape[1], LANES - 1):
            here = slice(start, start + LANES)
            yield strip(start), *(padded(some, here, -1) for some in (turn, *where))


def _look(keys: NDArray[np.uint16], band: slice) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Medians of the ratios kept, and how far from them a ratio counts (band, column), of some bands."""
    median, quarter = kernels.quantiles_of_keys(keys, band.start, band.stop)
    return median, stripes.limits(median, quarter)


def _cut(whole: slice, length: int) -> Iterator[slice]:
    """The parts of a slice, so long or shorter."""
    return (slice(start, min(start + length, whole.stop)) for start in range(whole.start, whole.stop, length))
