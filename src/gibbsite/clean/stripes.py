"""Stripes of detector columns.

Destriping compares neighbours only: a column's median follows the mineral that fills the column, but the ratio of
one column to the next, taken line by line, is mostly stripe. Its result does not depend on how a scene is cut into
blocks:

    pair = neighbour_columns(detector_column, valid)
    place = places(pair)                            which pairs to read, the same for every cut
    ratio = kernels.median_keys(keys)               of each column's neighbour to itself
    gains = column_gains(ratio)                     divide each spectrum by the gain of its column
"""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

Floats = NDArray[np.floating]

MOST_PAIRS = 480
"""Pairs of neighbours read in each pair of columns, spread over the scene: those of a whole FRT."""
WIDTH = 5
"""Columns; what changes more slowly is the scene's. Wider takes out more of strong stripes, but then the scene's own
differences, which add up from column to column, weigh more. Of the stripes' variance in simulated TRR3 scenes (0.4 %,
as strong as the noise), 5 removes 40 to 50 % with 120 lines and 73 % with 480; 9 removes -49 to 3 % and 74 %."""
_LARGEST_GAIN = 2.0
"""Stripes are a few per cent; a gain beyond this comes from a dark or broken band and would do harm."""
_BIWEIGHT = 6.0
"""Residuals beyond this many median absolute deviations do not pull on the smooth curve (Cleveland 1979)."""


def neighbour_columns(column: NDArray[np.integer], valid: NDArray[np.bool_]) -> NDArray[np.integer]:
    """The lower detector column (y, x) of a pixel and the next in its line, where theirs are neighbours; else -1.

    `column` and `valid` are (y, x); both pixels must be valid and of known column (not -1).
    """
    owner = np.where(valid, column, column.dtype.type(-1))
    left, right = owner[:, :-1], owner[:, 1:]
    is_pair = (left >= 0) & (right >= 0) & (np.abs(right - left) == 1)
    pair = np.full_like(owner, -1)
    np.copyto(pair[:, :-1], np.minimum(left, right), where=is_pair)
    return pair


def line_places(n_lines: int, most: int = MOST_PAIRS) -> NDArray[np.int32]:
    """The number (line) of each line among those whose pairs are read where samples are columns; -1 left out."""
    line = np.arange(n_lines)
    if n_lines <= most:
        return line.astype(np.int32)
    place = line * most // n_lines
    return np.where(place != (line + 1) * most // n_lines, place, -1).astype(np.int32)


def places(pair: NDArray[np.integer], most: int = MOST_PAIRS) -> NDArray[np.int32]:
    """The number (y, x) of each pair of neighbours among those of its column, -1 where there is none or it is left out.

    Of a column with more than `most`, that many are taken, spread over the scene.
    """
    pixel = np.flatnonzero(pair.ravel() >= 0)
    owner = pair.ravel()[pixel]
    by_column = np.argsort(owner, kind="stable")
    _, start, count = np.unique(owner[by_column], return_index=True, return_counts=True)
    rank = np.arange(pixel.size) - np.repeat(start, count)
    size = np.repeat(count, count)
    # Of `size` pairs the ones are taken where rank·most/size passes a whole number: `most` of them, evenly.
    place = np.where(size <= most, rank, rank * most // size)
    taken = (size <= most) | (place != (rank + 1) * most // size)
    found = np.full(pair.size, -1, np.int32)
    found[pixel[by_column[taken]]] = place[taken]
    return found.reshape(pair.shape)


def column_gains(ratio: NDArray[np.float64], width: int = WIDTH) -> NDArray[np.float64]:
    """Gains (band, n_columns) of the stripes: the columns' levels over their smooth course.

    `ratio` (band, n_columns) is that of the next column to each column, NaN where unknown, which counts as 1. The
    smooth course is a robust local line through the logarithms, under a Gaussian window about `width` columns wide:
    what changes broadly across the scene is kept, up to its edges. The gain is 1 where no ratio is known.
    """
    after = np.log(ratio)
    before = np.hstack([np.full_like(after[:, :1], np.nan), after[:, :-1]])
    known = np.isfinite(before) | np.isfinite(after)
    level = np.cumsum(np.nan_to_num(before), axis=1)
    residual = level - _local_line(level, known.astype(np.float64), width)
    spread = _median(np.where(known, np.abs(residual), np.nan))[:, None]
    scale = np.where(spread > 0, _BIWEIGHT * spread, np.inf)
    weight = np.where(known, np.clip(1 - (residual / scale) ** 2, 0, None) ** 2, 0.0)
    residual = np.where(known, level - _local_line(level, weight, width), 0.0)
    return np.clip(np.exp(residual), 1 / _LARGEST_GAIN, _LARGEST_GAIN)


def _median(values: Floats) -> NDArray[np.float64]:
    """Median over the last axis of the finite values; NaN where there are none."""
    finite = np.isfinite(values)
    count = np.count_nonzero(finite, axis=1, keepdims=True)
    ordered = np.sort(np.where(finite, values, np.inf), axis=1)
    lower = np.take_along_axis(ordered, np.maximum((count - 1) // 2, 0), axis=1)
    upper = np.take_along_axis(ordered, np.minimum(count // 2, values.shape[1] - 1), axis=1)
    middle = np.where(count > 0, lower, 0).astype(np.float64) + np.where(count > 0, upper, 0)
    return np.where(count > 0, middle / 2, np.nan)[:, 0]


def _local_line(level: NDArray[np.float64], weight: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Value at each column (band, n_columns) of the line fitted to its neighbours under a Gaussian window.

    Weighted least squares, with moments S_k = Σ w dᵏ and T_k = Σ w dᵏ y of the column distance d:
    (S_2 T_0 − S_1 T_1)/(S_2 S_0 − S_1²); the weighted mean where they share one column; 0 without any.
    """
    radius = max(1, width)
    distance = np.arange(-radius, radius + 1, dtype=np.float64)
    # Standard deviation width/4: a stripe then counts for about 1/(0.9·width) of its own smooth course.
    window = np.exp(-0.5 * (4 * distance / max(1, width)) ** 2)

    def moment(values: NDArray[np.float64], power: int) -> NDArray[np.float64]:
        return correlate1d(values, window * distance**power, axis=1, mode="constant", cval=0.0)

    s0, s1, s2 = (moment(weight, power) for power in (0, 1, 2))
    t0, t1 = (moment(weight * level, power) for power in (0, 1))
    determinant = s2 * s0 - s1 * s1
    is_line = determinant > 1e-9 * s0 * s0
    mean = np.divide(t0, s0, out=np.zeros_like(t0), where=s0 > 0)
    return np.divide(s2 * t0 - s1 * t1, determinant, out=mean, where=is_line)
