"""The scale of a table's columns: their standard deviation, without values that stray far from all others.

One row of 1,200 with a fill value in it stretches the scale of its columns until classes seem to lie on top of each
other: the vague prior Ψ0 = I is as wide as the table.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STRAYS = 0.01
"""Share of the rows that may stray at each end of a column; more are a class, which a scale has to show."""
LEAST_ROWS = 20
"""Fewer do not tell what is far."""
GAP = 4.0
"""Standard deviations that are left of a wider gap among strays: they stay outside, groups of them apart, each as wide
as it is; and several have room within the ends of the fixed point, 32."""
BEYOND = 64.0
"""Standard deviations, from end to end of the fixed point."""
ROUNDING = 1e-12
"""A column of 0.1 alone has a standard deviation of 1e-17: what is left of rounding."""


@dataclass(frozen=True)
class Scale:
    """What makes columns comparable."""

    mean: Floats
    """(n_columns,)"""
    deviation: Floats
    """(n_columns,) 1 for constant columns."""
    places: dict[int, tuple[Floats, Floats]]
    """Of columns with strays: rising values, and where they lie in standard deviations; those between lie between."""

    def apply(self, table: Floats) -> Floats:
        """The table (n_rows, n_columns) in standard deviations, strays drawn in."""
        # What is too large for a quotient is clipped later.
        with np.errstate(over="ignore"):
            out = (table - self.mean) / self.deviation
        for column, (value, place) in self.places.items():
            out[:, column] = np.interp(table[:, column], value, place)
        return out


def measure(table: Floats) -> Scale:
    """The scale of the columns of a table (n_rows, n_columns); refuses columns too large to have one."""
    largest, places = np.abs(table).max(0), {}
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = table.mean(0), table.std(0)
        for number, column in enumerate(table.T):
            low, high = common_range(column)
            if low > column.min() or high < column.max():
                near = np.clip(column, low, high)
                mean[number], deviation[number], largest[number] = near.mean(), near.std(), np.abs(near).max()
                places[number] = _places(column, (low, high), (mean[number], deviation[number]))
    is_small = np.isfinite(deviation)
    if not is_small.all():
        raise ValueError(f"column {int(np.argmin(is_small))} is too large to be scaled; divide it first")
    return Scale(mean, np.where(deviation <= ROUNDING * largest, 1.0, deviation), places)


def _places(column: Floats, common: tuple[float, float], scale: tuple[float, float]) -> tuple[Floats, Floats]:
    """Rising values, the ends of the common range and all strays, and where they lie, wide gaps narrowed."""
    mean, deviation = scale
    value = np.unique(np.append(common, column[(column < common[0]) | (column > common[1])]))
    step, first = np.diff(value) / deviation, int(np.searchsorted(value, common[0]))
    narrowed = np.minimum(step, GAP)
    narrowed[first] = step[first]
    place = np.append(0.0, np.cumsum(narrowed))
    place += (common[0] - mean) / deviation - place[first]
    # What is still farther out goes on beyond the first and the last, as far as the fixed point reaches.
    ends = np.array([-BEYOND, BEYOND])
    return np.insert(value[[0, -1]] + ends * deviation, 1, value), np.insert(place[[0, -1]] + ends, 1, place)


def common_range(column: Floats) -> tuple[float, float]:
    """Smallest and largest value that do not stray: beyond them is a gap wider than all between them."""
    n_rows = len(column)
    n_strays = int(np.ceil(STRAYS * n_rows)) if n_rows >= LEAST_ROWS else 0
    ordered = np.partition(column, [n_strays, n_rows - 1 - n_strays])
    low, high = float(ordered[n_strays]), float(ordered[-1 - n_strays])
    if low == high:
        return float(column.min()), float(column.max())
    below, above = np.sort(column[column < low])[::-1], np.sort(column[column > high])
    while True:
        further = -_reach(-below, -low, -high), _reach(above, high, low)
        if further == (low, high):
            return low, high
        low, high = further


def _reach(outer: Floats, last: float, first: float) -> float:
    """How far rising values go on from `last`, until a step is wider than all since `first`."""
    values = np.append(last, outer[outer > last])
    is_gap = np.diff(values) > values[:-1] - first
    return float(values[np.argmax(np.append(is_gap, True))])
