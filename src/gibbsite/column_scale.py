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
BEND = 16.0
"""Standard deviations beyond which the logarithm of a stray is taken, so that all strays do not become one value."""
SHRINK = 4.0
"""Of the logarithm: strays of 870 standard deviations are at the end of the fixed point, 32."""
ROUNDING = 1e-12
"""A column of 0.1 alone has a standard deviation of 1e-17: what is left of rounding."""


@dataclass(frozen=True)
class Scale:
    """What makes columns comparable."""

    mean: Floats
    """(n_columns,)"""
    deviation: Floats
    """(n_columns,) 1 for constant columns."""
    has_strays: NDArray[np.bool_]
    """(n_columns,) whether values of the column stray."""

    def apply(self, table: Floats) -> Floats:
        """The table (n_rows, n_columns) in standard deviations, strays drawn in."""
        out = (table - self.mean) / self.deviation
        for column in np.flatnonzero(self.has_strays):
            far = np.abs(out[:, column])
            bent = np.copysign(BEND + SHRINK * np.log(np.maximum(far, BEND) / BEND), out[:, column])
            out[:, column] = np.where(far > BEND, bent, out[:, column])
        return out


def measure(table: Floats) -> Scale:
    """The scale of the columns of a table (n_rows, n_columns); refuses columns too large to have one."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = table.mean(0), table.std(0)
    largest, has_strays = np.abs(table).max(0), np.zeros(table.shape[1], np.bool_)
    for number, column in enumerate(table.T):
        low, high = common_range(column)
        if low > column.min() or high < column.max():
            near = np.clip(column, low, high)
            mean[number], deviation[number], largest[number] = near.mean(), near.std(), np.abs(near).max()
            has_strays[number] = True
    is_small = np.isfinite(deviation)
    if not is_small.all():
        raise ValueError(f"column {int(np.argmin(is_small))} is too large to be scaled; divide it first")
    return Scale(mean, np.where(deviation <= ROUNDING * largest, 1.0, deviation), has_strays)


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
