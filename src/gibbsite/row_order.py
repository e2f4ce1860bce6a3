"""The order in which the rows of a table are sampled."""

import numpy as np
from numpy.typing import NDArray

from gibbsite import streams
from gibbsite.statistics import Integers
from gibbsite.streams import Purpose

CHANCE = 6.0
"""Standard deviations by which neighbours may be alike by chance: one column in a billion is beyond."""


def sampling_order(feature: NDArray[np.int16], seed: int) -> Integers:
    """(n_rows,) numbers of the rows of `feature` in the order to sample them: shuffled where neighbours are alike.

    A chain begins from runs of neighbours, and a run is what opens components in a sweep: so an image is read fast.
    But in a table sorted by class a run is of one class, and others are missed. Rows in no order stay as they are.
    """
    n_rows, n_features = feature.shape
    if any(_is_ordered(feature[:, column].astype(np.float64)) for column in range(n_features)):
        return streams.generator(seed, 0, Purpose.ROW_ORDER).permutation(n_rows)
    return np.arange(n_rows)


def _is_ordered(value: NDArray[np.float64]) -> bool:
    """Whether neighbours in a column are alike, by half of von Neumann's ratio: 1 ± 1/√n when their order is chance."""
    spread = value.var()
    if spread == 0.0:
        return False
    return bool((1.0 - np.square(np.diff(value)).mean() / (2.0 * spread)) * np.sqrt(len(value)) > CHANCE)
