"""Stripes of detector columns.

Destriping compares neighbours only: a column's median follows the mineral that fills the column, but the ratio of
one column to the next, taken line by line, is mostly stripe. What stands for the ratio of two columns is the median of
some lines, moved one step towards where the middle of all lines is (Huber's estimate, one step of Newton's from a good
start): as good as the median of all, which would have to hold all ratios. It does not depend on how a scene is cut into
blocks:

    pair = neighbour_columns(detector_column, valid)
    place = places(pair)                            which pairs are looked at first, the same for every cut
    median, quarter = kernels.quantiles_of_keys(keys, …)    of their ratios
    limit = limits(median, quarter)                 how far off a ratio counts
    ratio = move(median, limit, sums)               by the sums of all pairs
    gains = column_gains(ratio)                     divide each spectrum by the gain of its column
"""

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels
from gibbsite.kernels.stripes import LOWEST, PARTS, STEP

Floats = NDArray[np.floating]

FIRST_PAIRS = 72
"""Pairs of neighbours, in each pair of columns, that are looked at first, spread over the scene."""
ENOUGH_PAIRS = 24
"""Of each pair of columns, if it has as many, that must be among the lines looked at first."""
GROUP_LINES = 8
"""Lines that are looked at first together: chunks of a store are read whole."""
LIMIT = 0.75
"""Standard deviations (as normal ratios had them) from the median beyond which a ratio counts as if it lay there:
ratios have long tails. Of the stripes' variance, .5 to 1 remove the same within .01; the median of all ratios too."""
WIDTH = 5
"""Columns; what changes more slowly is the scene's. Wider takes out more of strong stripes, but then the scene's own
differences, which add up from column to column, weigh more. Of the stripes' variance in simulated TRR3 scenes (0.4 %,
as strong as the noise), by the median of all lines, 5 removed 40 to 50 % with 120 lines and 73 % with 480; 9 removed
-49 to 3 % and 74 %."""
_LARGEST_GAIN = 2.0
"""Stripes are a few per cent; a gain beyond this comes from a dark or broken band and would do harm."""
_BIWEIGHT = 6.0
"""Residuals beyond this many median absolute deviations do not pull on the smooth curve (Cleveland 1979)."""
_TO_SIGMA = 1.4826
"""From the median to the lower quarter of normal values -> their standard deviation."""


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


def line_places(pair: NDArray[np.integer], most: int = FIRST_PAIRS) -> NDArray[np.int32] | None:
    """The number (y) of each line among those looked at first where samples are columns, -1 left out; None where whole
    lines would leave a pair of columns with too few.

    `pair` (y, x) is that of `neighbour_columns`. Of more than `most` lines that have any, groups spread over them are
    taken.
    """
    is_pair = pair >= 0
    line = np.flatnonzero(is_pair.any(axis=1))
    group = np.arange(len(line)) // GROUP_LINES
    every = 1 if len(line) <= most else -(-(int(group[-1]) + 1) // (most // GROUP_LINES))
    taken = line[group % every == every // 2]
    if (is_pair[taken].sum(axis=0) < np.minimum(is_pair.sum(axis=0), ENOUGH_PAIRS)).any():
        return None
    place = np.full(len(pair), -1, np.int32)
    place[taken] = np.arange(len(taken))
    return place


def places(pair: NDArray[np.integer], most: int = FIRST_PAIRS) -> NDArray[np.int32]:
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


def limits(median: NDArray[np.float64], quarter: NDArray[np.float64]) -> NDArray[np.float32]:
    """How far from the median (band, n_columns) a ratio counts, from medians and lower quarters of ratios.

    Of few ratios the quarter says little: at least as far as in the band's middle column.
    """
    width = LIMIT * _TO_SIGMA * (median - quarter)
    # Without noise, or any ratio, a step of the keys.
    return np.fmax(np.fmax(width, _median(width)[:, None]), STEP).astype(np.float32)


def move(median: NDArray[np.float64], limit: NDArray[np.float32], sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Medians (band, n_columns) of some ratios, moved by the sums (2, band, n_columns) over all, at most to the limit
    (band, n_columns)."""
    total, n_within = sums
    step = np.clip(total / (PARTS * np.maximum(n_within, 1.0)), -1.0, 1.0)
    # As far up as down: into a dark column and out of it, what is beyond the keys must cancel.
    return np.clip(median + limit * step, LOWEST, 1.0 / LOWEST)


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
    residual = level - kernels.local_line(level, known.astype(np.float64), width)
    spread = _median(np.where(known, np.abs(residual), np.nan))[:, None]
    scale = np.where(spread > 0, _BIWEIGHT * spread, np.inf)
    weight = np.where(known, np.clip(1 - (residual / scale) ** 2, 0, None) ** 2, 0.0)
    residual = np.where(known, level - kernels.local_line(level, weight, width), 0.0)
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
