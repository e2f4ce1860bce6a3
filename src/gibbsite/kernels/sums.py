"""The sums of a tile: pixels sorted by component, then one small matrix product per component."""

import numpy as np
from numba import njit

from gibbsite.kernels.products import COLUMNS, HEIGHT, WIDTH, add_outer, add_wide_outer, widen
from gibbsite.kernels.vectors import aligned

PART = 16384
"""Pixels sorted at a time: few enough for the second-level cache, and for float64 to hold their sums exactly."""
CHUNK = 64
"""Pixels of a component multiplied at a time: few enough for the first-level cache."""


@njit(nogil=True, cache=True)
def add_up(feature, label, n, total, outer):
    """Add the pixels of each component to n, Σx and Σxxᵀ, as `Statistics` has them.

    Fixed-point products are at most 2^30 and a part has 2^14 pixels, so all sums within a part are whole numbers that
    float64 holds exactly, in whatever order they are added.
    """
    table = np.ascontiguousarray(feature)
    n_features = table.shape[1]
    # A last feature of 1 makes the products hold the sums of the features and the number of pixels as well.
    width = (n_features + 1 + WIDTH - 1) // WIDTH * WIDTH
    values = aligned(8 * CHUNK * width).view(np.float64).reshape(CHUNK, width)
    values[:] = 0.0
    products = aligned(8 * width * width).view(np.float64).reshape(width, width)
    order = np.empty(PART, np.int32)
    stop = np.empty(len(n) + 1, np.int32)
    for first in range(0, len(label), PART):
        _sort(label[first : first + PART], stop, order)
        begin = 0
        for c in range(len(n)):
            if begin == stop[c]:
                continue
            products[:] = 0.0
            while begin < stop[c]:
                n_chunk = min(CHUNK, stop[c] - begin)
                for p in range(n_chunk):
                    widen(table, first + order[begin + p], values, p)
                    values[p, n_features] = 1.0
                for r in range(0, n_features + 1, HEIGHT):
                    s = r // WIDTH * WIDTH
                    while s + COLUMNS <= width:
                        add_wide_outer(values, n_chunk, (r, s), products)
                        s += COLUMNS
                    if s < width:
                        add_outer(values, n_chunk, (r, s), products)
                begin += n_chunk
            n[c] += np.int64(products[n_features, n_features])
            for b in range(n_features):
                total[c, b] += np.int64(products[b, n_features])
                for a in range(b + 1):
                    outer[c, b, a] += np.int64(products[a, b])
    # Products were made on and above the diagonal only.
    for c in range(len(n)):
        for b in range(n_features):
            for a in range(b):
                outer[c, a, b] = outer[c, b, a]


@njit(inline="always")
def _sort(label, stop, order):
    """Set `order` to the pixels by component, and stop[c] to where those of c end."""
    stop[:] = 0
    for i in range(len(label)):
        stop[label[i] + 1] += 1
    for c in range(len(stop) - 1):
        stop[c + 1] += stop[c]
    for i in range(len(label)):
        c = label[i]
        order[stop[c]] = i
        stop[c] += 1
