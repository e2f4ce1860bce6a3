"""Columns of few values: answers on a scale, counts, yes and no, measurements that were rounded.

To a Gaussian, rows that share a value lie infinitely close together: each value becomes a class of its own, or, where
the prior is estimated (ai2gmm), the spread of components about their class outgrows all else and classes fall together.
"""

import numpy as np
from numpy.typing import NDArray

from gibbsite import streams
from gibbsite.streams import Purpose

Floats = NDArray[np.float64]

MOST_VALUES = 32
"""Of a coarse column: with more the steps are small against the spread of classes."""
ROWS_PER_VALUE = 5
"""A coarse column has at least so many on average; fewer say nothing."""


def spread(table: Floats, seed: int) -> Floats:
    """The table (n_rows, n_columns) with the values of coarse columns spread evenly over their step.

    A value that was rounded to whole steps may have been any within half of one (Sheppard 1897).
    """
    generator, out = streams.generator(seed, 0, Purpose.COARSE_COLUMNS), table
    for column in range(table.shape[1]):
        step = _step(table[:, column])
        if step > 0.0:
            out = table.copy() if out is table else out
            out[:, column] += step * (generator.random(len(table)) - 0.5)
    return out


def _step(values: Floats) -> float:
    """The smallest distance of two values of a coarse column; 0 for any other."""
    # Most columns show in their first rows that they are not.
    if len(np.unique(values[: 2 * MOST_VALUES])) > MOST_VALUES:
        return 0.0
    found = np.unique(values)
    is_coarse = 1 < len(found) <= min(MOST_VALUES, len(values) // ROWS_PER_VALUE)
    return float(np.diff(found).min()) if is_coarse else 0.0
