"""Ratios of neighbouring detector columns, and their medians.

A ratio is kept as a whole number of steps, 0 for none, in 16 bits: half the memory of a float, and the median is
found by halving the range and counting, which does not depend on the order of the pixels and looks at many bands at
once.
"""

import numpy as np
from numba import njit

LOWEST, STEP = 0.5, 1.5 / 65000
"""Key k stands for the ratio LOWEST + k · STEP, from just above 1/2 to 2; the step is a twentieth of the best median's
own error."""


@njit(nogil=True, cache=True)
def keep_ratios(lines, place, pair, turn, keys):
    """Put the ratio of each pair of neighbours into `keys` (column, place, band).

    `pair` (line, sample) is the lower detector column of a pixel and the next in its line, -1 for no pair; `turn`
    tells that the next pixel is the one of the lower column; `place` is the pair's number among those of its column,
    -1 not sampled. Ratios of values that are not positive stay 0; those beyond the keys count as the last of them.
    """
    n_bands, n_samples = lines.shape[1:]
    line = np.zeros((n_bands, n_samples), np.uint16)
    for y in range(len(lines)):
        for b in range(n_bands):
            values, made = lines[y, b], line[b]
            for i in range(n_samples - 1):
                made[i] = _key(values[i + 1], values[i])
        for i in range(n_samples - 1):
            if place[y, i] < 0:
                continue
            kept = keys[pair[y, i], place[y, i]]
            for b in range(n_bands):
                kept[b] = _key(lines[y, b, i], lines[y, b, i + 1]) if turn[y, i] else line[b, i]


@njit(nogil=True, cache=True)
def _key(above, below):
    """The key of above/below, 0 where one of them is not positive."""
    key = (above / below - np.float32(LOWEST)) * np.float32(1.0 / STEP) + np.float32(0.5)
    key = np.float32(1.0) if key < np.float32(1.0) else key
    key = np.float32(65000.0) if key > np.float32(65000.0) else key
    return np.uint16(np.int32(key if (above > 0) & (below > 0) else np.float32(0.0)))


@njit(nogil=True, cache=True)
def median_keys(keys):
    """The lower median (column, band) of the keys (column, place, band) that are not 0, as ratios; NaN without any."""
    n_columns, n_places, n_bands = keys.shape
    medians = np.empty((n_columns, n_bands), np.float64)
    for c in range(n_columns):
        known = np.zeros(n_bands, np.int32)
        for p in range(n_places):
            for b in range(n_bands):
                known[b] += np.int32(keys[c, p, b] > 0)
        # The median lies above `under` and at or below `over`.
        under, over = np.zeros(n_bands, np.uint16), np.full(n_bands, 65535, np.uint16)
        middle, count = np.empty(n_bands, np.uint16), np.empty(n_bands, np.int32)
        for _ in range(16):
            count[:] = 0
            for b in range(n_bands):
                middle[b] = np.uint16((np.int32(under[b]) + np.int32(over[b])) // 2)
            for p in range(n_places):
                for b in range(n_bands):
                    key = keys[c, p, b]
                    count[b] += np.int32(key > 0) & np.int32(key <= middle[b])
            for b in range(n_bands):
                if 2 * count[b] >= known[b]:
                    over[b] = middle[b]
                else:
                    under[b] = middle[b]
        for b in range(n_bands):
            medians[c, b] = LOWEST + over[b] * STEP if known[b] else np.nan
    return medians
