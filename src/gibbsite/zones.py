"""Pixels, area and mean probability of everything that has a number on a map: classes, or patches of one."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gibbsite.ground import Floats, pixel_areas
from gibbsite.rows import Rows
from gibbsite.scene import Grid


@dataclass(frozen=True, eq=False)
class Sizes:
    """Of each number from 0 on, (n)."""

    n_pixels: NDArray[np.int64]
    area: Floats
    """m² on the planet's surface, NaN without a reference."""
    mean_probability: Floats
    """Over pixels that have one, NaN when none has."""


def measure(number: Rows, probability: Rows, grid: Grid, n: int) -> Sizes:
    """Sizes of the numbers 0 .. n - 1 of a map, added up block by block."""
    n_pixels, n_values = np.zeros(n, np.int64), np.zeros(n, np.int64)
    area, total = np.zeros(n), np.zeros(n)
    for rows, size in pixel_areas(grid):
        index, chance = number[rows].ravel(), probability[rows].ravel()
        has_value = np.isfinite(chance)
        n_pixels += np.bincount(index, minlength=n)
        area += np.bincount(index, size.ravel(), n)
        n_values += np.bincount(index[has_value], minlength=n)
        total += np.bincount(index[has_value], chance[has_value].astype(np.float64), n)
    mean = np.divide(total, n_values, out=np.full(n, np.nan), where=n_values > 0)
    return Sizes(n_pixels, area, mean)
