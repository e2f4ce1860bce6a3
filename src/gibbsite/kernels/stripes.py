"""Ratios of neighbouring detector columns: their quantiles in some lines, and a step from there by all lines.

Of some lines ratios are kept, as whole numbers of steps in 16 bits, 0 for none: a quantile is then found by halving the
range and counting, which does not depend on the order of the pixels and looks at many columns at once. Of all lines
only sums are kept, of whole numbers too, so these do not depend on the order either.
"""

import numpy as np
from numba import njit

from gibbsite.kernels.strips import (
    SOME_KEYS,
    add_known,
    count_above,
    count_within,
    load_from,
    next_lane,
    ratio_of,
    store_from,
    store_keys,
)
from gibbsite.kernels.vectors import LANES, TO_WHOLE, aligned, hold, load, spread

LOWEST, STEP = 0.5, 1.5 / 65000
"""Key k stands for the ratio LOWEST + k · STEP, from just above 1/2 to 2; the step is a twentieth of the best median's
own error."""
_NOTHING = -32768
"""What is added to keys, so that they are compared as numbers with a sign: no key then is the least number."""
PARTS = 1024
"""Steps to the limit that a ratio is held within when it is added up."""
MOST_ADDED = 2**24 // PARTS
"""So many of them float32 adds exactly, as where samples are columns."""
_TO_WHOLE = np.float32(TO_WHOLE)


@njit(nogil=True, cache=True)
def keep_ratios(lines, place, pair, turn, keys):
    """Put the ratio of each pair of neighbours into `keys` (place, band, column).

    `pair` (line, sample) is the lower detector column of a pixel and the next in its line, -1 for no pair; `turn`
    tells that the next pixel is the one of the lower column; `place` is the pair's number among those of its column,
    -1 not sampled. Ratios of values that are not positive stay 0; those beyond the keys count as the last of them.
    """
    n_bands, n_samples = lines.shape[1:]
    lowest, scale = np.float32(LOWEST), np.float32(1.0 / STEP)
    for y in range(len(lines)):
        for b in range(n_bands):
            for i in range(n_samples - 1):
                if place[y, i] >= 0:
                    ratio = _ratio(lines[y, b, i], lines[y, b, i + 1], turn[y, i])
                    key = min(max((ratio - lowest) * scale + np.float32(0.5), np.float32(1.0)), np.float32(65000.0))
                    keys[place[y, i], b, pair[y, i]] = np.uint16(0 if np.isnan(ratio) else np.int32(key))


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
            ratio = ratio_of(next_lane(below, load(beyond, y * n_bands + b)), below)
            key = hold((ratio - lowest) * scale + half, first, last)
            store_keys(keys, (place[y] * n_bands + b) * n_columns + start, key)


@njit(nogil=True, cache=True)
def add_ratios(lines, pair, turn, middle, limit, sums):
    """Add to sums (2, band, column) the distance of each ratio from the middle (band, column) of its columns, held
    within ± their limit (band, column) and in whole PARTS of it; and 1 if it lies within.

    `pair` and `turn` are those of `keep_ratios`. A pair of columns may lie in a line many times.
    """
    n_bands, n_samples = lines.shape[1:]
    most = np.float32(PARTS)
    for y in range(len(lines)):
        for b in range(n_bands):
            for i in range(n_samples - 1):
                c = pair[y, i]
                if c >= 0:
                    scale = most / limit[b, c]
                    away = (_ratio(lines[y, b, i], lines[y, b, i + 1], turn[y, i]) - middle[b, c]) * scale
                    if not np.isnan(away):
                        sums[0, b, c] += (min(max(away, -most), most) + _TO_WHOLE) - _TO_WHOLE
                        sums[1, b, c] += np.float32(abs(away) < most)


@njit(nogil=True, cache=True)
def add_level_ratios(lines, following, start, middle, limit, sums):
    """The same where sample i was seen by column start + i throughout; `following` is that of `keep_level_ratios`."""
    n_lines, n_bands, _ = lines.shape
    n_columns = middle.shape[1]
    source, beyond = lines.reshape(n_lines * n_bands, LANES), following.reshape(n_lines * n_bands, LANES)
    most, least, to_whole = spread(np.float32(PARTS)), spread(np.float32(-PARTS)), spread(_TO_WHOLE)
    for b in range(n_bands):
        here = b * n_columns + start
        usual, scale = load_from(middle, here), most / load_from(limit, here)
        total, within = load_from(sums, here), load_from(sums, n_bands * n_columns + here)
        for y in range(n_lines):
            below = load(source, y * n_bands + b)
            away = (ratio_of(next_lane(below, load(beyond, y * n_bands + b)), below) - usual) * scale
            total = add_known(total, (hold(away, least, most) + to_whole) - to_whole)
            within = count_within(within, away, most)
        store_from(sums, here, total)
        store_from(sums, n_bands * n_columns + here, within)


@njit(nogil=True, cache=True, inline="always")
def _ratio(here, following, is_turned):
    """The ratio of a pair; not a number where one of them is not positive."""
    above, below = (here, following) if is_turned else (following, here)
    return above / below if (above > 0) & (below > 0) else np.float32(np.nan)


@njit(nogil=True, cache=True)
def quantiles_of_keys(keys, first, last):
    """Medians and lower quarters (2, band, column) of the keys (place, band, column) that are not 0, as ratios; NaN
    without any.

    Of an even number the lower of both in the middle; of the bands first ≤ b < last. The columns must be a multiple of
    SOME_KEYS.
    """
    n_places, _, n_columns = keys.shape
    found = np.empty((2, last - first, n_columns), np.float64)
    # Columns are read downwards, many times over. With lines one register longer than the columns fill, they share
    # no place in the nearest cache. The last line makes the number of places even; it holds nothing.
    n_rows, n_room = n_places + n_places % 2, n_columns + SOME_KEYS
    mine = aligned(2 * n_rows * n_room).view(np.int16).reshape(n_rows, n_room)
    mine[n_rows - 1] = _NOTHING
    for b in range(first, last):
        for p in range(n_places):
            for c in range(n_columns):
                mine[p, c] = np.int16(np.int32(keys[p, b, c]) + _NOTHING)
        _find_quantiles(mine, 2, found[0, b - first])
        _find_quantiles(mine, 3, found[1, b - first])
    return found


@njit(nogil=True, cache=True)
def _find_quantiles(keys, quarters, found):
    """Set found (column) to what no more than so many quarters of the keys (place, column), which begin at _NOTHING,
    are above."""
    n_columns = len(found)
    # Only keys above _NOTHING count.
    under, over = np.full(n_columns, np.int32(_NOTHING)), np.full(n_columns, np.int32(_NOTHING + 65535))
    middle, count = np.full(n_columns, np.int16(_NOTHING)), np.empty(n_columns, np.int16)
    n_known = np.empty(n_columns, np.int16)
    for start in range(0, n_columns, SOME_KEYS):
        count_above(keys, start, middle, n_known)
        low, high, half = under[start:], over[start:], middle[start:]
        above, known = count[start:], n_known[start:]
        for _ in range(16):
            # The quantile lies above `under` and at or below `over`.
            for c in range(SOME_KEYS):
                half[c] = np.int16((low[c] + high[c]) >> 1)
            count_above(keys, start, middle, count)
            for c in range(SOME_KEYS):
                is_over = 4 * np.int32(above[c]) <= quarters * np.int32(known[c])
                high[c] = np.int32(half[c]) if is_over else high[c]
                low[c] = low[c] if is_over else np.int32(half[c])
    for c in range(n_columns):
        found[c] = LOWEST + (over[c] - _NOTHING) * STEP if n_known[c] > 0 else np.nan


@njit(nogil=True, cache=True)
def local_line(level, weight, width):
    """Value at each column (band, n_columns) of the line fitted to its neighbours under a Gaussian window.

    Weighted least squares, with moments S_k = Σ w dᵏ and T_k = Σ w dᵏ y of the column distance d:
    (S_2 T_0 − S_1 T_1)/(S_2 S_0 − S_1²); the weighted mean where they share one column; 0 without any.
    """
    n_bands, n_columns = level.shape
    radius = max(1, width)
    fitted = np.zeros((n_bands, n_columns), np.float64)
    # Room for neighbours beyond either end, which weigh nothing.
    share, product = np.zeros(n_columns + 2 * radius), np.zeros(n_columns + 2 * radius)
    moment = np.empty((5, n_columns), np.float64)
    s0, s1, s2, t0, t1 = moment[0], moment[1], moment[2], moment[3], moment[4]
    for b in range(n_bands):
        for c in range(n_columns):
            share[radius + c] = weight[b, c]
            product[radius + c] = weight[b, c] * level[b, c]
        moment[:] = 0.0
        for k in range(2 * radius + 1):
            distance = np.float64(k - radius)
            # Standard deviation width/4: a stripe then counts for about 1/(0.9·width) of its own smooth course.
            once = np.exp(-0.5 * (4.0 * distance / radius) ** 2)
            far, farther = once * distance, once * distance * distance
            weights, values = share[k:], product[k:]
            for c in range(n_columns):
                s0[c] += once * weights[c]
                s1[c] += far * weights[c]
                s2[c] += farther * weights[c]
                t0[c] += once * values[c]
                t1[c] += far * values[c]
        for c in range(n_columns):
            determinant = s2[c] * s0[c] - s1[c] * s1[c]
            if determinant > 1e-9 * s0[c] * s0[c]:
                fitted[b, c] = (s2[c] * t0[c] - s1[c] * t1[c]) / determinant
            elif s0[c] > 0.0:
                fitted[b, c] = t0[c] / s0[c]
    return fitted
