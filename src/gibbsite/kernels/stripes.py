"""Ratios of neighbouring detector columns, and their medians.

A ratio is kept as a whole number of steps, 0 for none, in 16 bits: half the memory of a float, and the median is
found by halving the range and counting, which does not depend on the order of the pixels and looks at many bands at
once.
"""

import numpy as np
from numba import njit

from gibbsite.kernels.strips import SOME_KEYS, count_above, next_lane, store_keys
from gibbsite.kernels.vectors import LANES, aligned, hold, load, spread

LOWEST, STEP = 0.5, 1.5 / 65000
"""Key k stands for the ratio LOWEST + k · STEP, from just above 1/2 to 2; the step is a twentieth of the best median's
own error."""
_NOTHING = -32768
"""What is added to keys, so that they are compared as numbers with a sign: no key then is the least number."""


@njit(nogil=True, cache=True)
def keep_ratios(lines, place, pair, turn, keys):
    """Put the ratio of each pair of neighbours into `keys` (place, band, column).

    `pair` (line, sample) is the lower detector column of a pixel and the next in its line, -1 for no pair; `turn`
    tells that the next pixel is the one of the lower column; `place` is the pair's number among those of its column,
    -1 not sampled. Ratios of values that are not positive stay 0; those beyond the keys count as the last of them.
    """
    n_bands, n_samples = lines.shape[1:]
    for y in range(len(lines)):
        for b in range(n_bands):
            for i in range(n_samples - 1):
                if place[y, i] >= 0:
                    here, following = lines[y, b, i], lines[y, b, i + 1]
                    key = _key(here, following) if turn[y, i] else _key(following, here)
                    keys[place[y, i], b, pair[y, i]] = key


@njit(nogil=True, cache=True)
def keep_level_ratios(lines, following, place, start, keys):
    """The same where sample i was seen by column start + i throughout; `place` (line) is that of all its pairs.

    `following` is the strip that follows, in which the last sample has its neighbour, NaN where there is none. The keys
    need room for a whole strip.
    """
    n_lines, n_bands, _ = lines.shape
    n_columns = keys.shape[2]
    source, beyond = lines.reshape(n_lines * n_bands, LANES), following.reshape(n_lines * n_bands, LANES)
    lowest, scale, half = spread(np.float32(LOWEST)), spread(np.float32(1.0 / STEP)), spread(np.float32(0.5))
    first, last = spread(np.float32(1.0)), spread(np.float32(65000.0))
    for y in range(n_lines):
        if place[y] < 0:
            continue
        for b in range(n_bands):
            below = load(source, y * n_bands + b)
            above = next_lane(below, load(beyond, y * n_bands + b))
            key = hold((above / below - lowest) * scale + half, first, last)
            store_keys(keys, (place[y] * n_bands + b) * n_columns + start, key, above, below)


@njit(nogil=True, cache=True)
def _key(above, below):
    """The key of above/below, 0 where one of them is not positive."""
    key = (above / below - np.float32(LOWEST)) * np.float32(1.0 / STEP) + np.float32(0.5)
    key = np.float32(1.0) if key < np.float32(1.0) else key
    key = np.float32(65000.0) if key > np.float32(65000.0) else key
    return np.uint16(np.int32(key if (above > 0) & (below > 0) else np.float32(0.0)))


@njit(nogil=True, cache=True)
def median_keys(keys, first, last):
    """The lower median (band, column) of the keys (place, band, column) that are not 0, as ratios; NaN without any.

    Of the bands first ≤ b < last. The columns must be a multiple of SOME_KEYS.
    """
    n_places, _, n_columns = keys.shape
    medians = np.empty((last - first, n_columns), np.float64)
    # Columns are read downwards, many times over. With lines one register longer than the columns fill, they share
    # no place in the nearest cache. The last line makes the number of places even; it holds nothing.
    n_rows, n_room = n_places + n_places % 2, n_columns + SOME_KEYS
    mine = aligned(2 * n_rows * n_room).view(np.int16).reshape(n_rows, n_room)
    mine[n_rows - 1] = _NOTHING
    for b in range(first, last):
        for p in range(n_places):
            for c in range(n_columns):
                mine[p, c] = np.int16(np.int32(keys[p, b, c]) + _NOTHING)
        _find_medians(mine, medians[b - first])
    return medians


@njit(nogil=True, cache=True)
def _find_medians(keys, median):
    """Set median (column) to that of the keys (place, column), which begin at _NOTHING."""
    n_columns = len(median)
    # Only keys above _NOTHING count.
    under, over = np.full(n_columns, np.int32(_NOTHING)), np.full(n_columns, np.int32(_NOTHING + 65535))
    middle, count = np.full(n_columns, np.int16(_NOTHING)), np.empty(n_columns, np.int16)
    n_known = np.empty(n_columns, np.int16)
    for start in range(0, n_columns, SOME_KEYS):
        count_above(keys, start, middle, n_known)
        for _ in range(16):
            # The median lies above `under` and at or below `over`.
            for c in range(start, start + SOME_KEYS):
                middle[c] = np.int16((under[c] + over[c]) >> 1)
            count_above(keys, start, middle, count)
            for c in range(start, start + SOME_KEYS):
                is_over = 2 * np.int32(count[c]) <= np.int32(n_known[c])
                over[c] = np.int32(middle[c]) if is_over else over[c]
                under[c] = under[c] if is_over else np.int32(middle[c])
    for c in range(n_columns):
        median[c] = LOWEST + (over[c] - _NOTHING) * STEP if n_known[c] > 0 else np.nan
