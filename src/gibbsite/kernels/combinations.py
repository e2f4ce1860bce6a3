"""Bands of strips combined: by weights into other bands, and on axes into features."""

import numpy as np
from numba import njit

from gibbsite.kernels.products import score_class
from gibbsite.kernels.vectors import LANES, add_product, aligned_lines, hold, load, spread, store

_NAN = np.float32(np.nan)


@njit(nogil=True, cache=True)
def combine_bands(lines, start, weight):
    """Lines (line, n_out, sample) whose band b is the sum of weight (n_out, width) times the bands from start (n_out)
    on."""
    combined = np.zeros((len(lines), len(start), lines.shape[2]), np.float32)
    for y in range(len(lines)):
        for b in range(len(start)):
            for t in range(weight.shape[1]):
                share, source = weight[b, t], lines[y, start[b] + t]
                for i in range(lines.shape[2]):
                    combined[y, b, i] += share * source[i]
    return combined


@njit(nogil=True, cache=True)
def combine_bands_by_column(lines, start, weight, column):
    """As `combine_bands`, with weight (n_out, width, column) by detector column (line, sample); NaN where that is
    -1."""
    n_lines, _, n_samples = lines.shape
    combined = np.zeros((n_lines, len(start), n_samples), np.float32)
    for b in range(len(start)):
        # All lines with one set of weights: the whole table is larger than the cache.
        for y in range(n_lines):
            for t in range(weight.shape[1]):
                for i in range(n_samples):
                    c = column[y, i]
                    share = weight[b, t, c] if c >= 0 else _NAN
                    combined[y, b, i] += share * lines[y, start[b] + t, i]
    return combined


@njit(nogil=True, cache=True)
def combine_bands_of_strip(lines, start, weight):
    """As `combine_bands`, with weight (n_out, width, LANES) by sample."""
    n_lines, n_bands, _ = lines.shape
    n_out, width, _ = weight.shape
    combined = aligned_lines(n_lines, n_out)
    source, target = lines.reshape(n_lines * n_bands, LANES), combined.reshape(n_lines * n_out, LANES)
    share = weight.reshape(n_out * width, LANES)
    n_even = n_lines - n_lines % 4
    # Four lines with one load of the weights, of which there are more than the nearest cache holds.
    for y in range(0, n_even, 4):
        for b in range(n_out):
            first = y * n_bands + start[b]
            one = two = three = four = spread(np.float32(0.0))
            for t in range(width):
                some = load(share, b * width + t)
                one = add_product(one, some, load(source, first + t))
                two = add_product(two, some, load(source, first + n_bands + t))
                three = add_product(three, some, load(source, first + 2 * n_bands + t))
                four = add_product(four, some, load(source, first + 3 * n_bands + t))
            store(target, y * n_out + b, one)
            store(target, (y + 1) * n_out + b, two)
            store(target, (y + 2) * n_out + b, three)
            store(target, (y + 3) * n_out + b, four)
    for y in range(n_even, n_lines):
        for b in range(n_out):
            total = spread(np.float32(0.0))
            for t in range(width):
                total = add_product(total, load(share, b * width + t), load(source, y * n_bands + start[b] + t))
            store(target, y * n_out + b, total)
    return combined


@njit(nogil=True, cache=True)
def project_lines(lines, table, axes, within):
    """Features (line, feature, LANES) of standardised values z, and what z has beyond them (line, LANES).

    `table` (4, band) is low, high, mean and 1/scale; axes are (band, feature). The rest is the root mean square over
    bands of z less its projection on the axes; `within` (feature, feature) is the inverse of axesᵀ · axes.
    """
    n_lines, n_bands, _ = lines.shape
    n_features = axes.shape[1]
    feature = np.empty((n_lines, n_features, LANES), np.float32)
    rest = np.empty((n_lines, LANES), np.float64)
    source = lines.reshape(n_lines * n_bands, LANES)
    z = aligned_lines(1, n_bands)[0]
    offset, nothing = np.zeros(n_features, np.float32), np.zeros((1, LANES), np.float32)
    square, best = np.empty((1, LANES), np.float32), np.empty((1, LANES), np.float32)
    for y in range(n_lines):
        total = spread(np.float32(0.0))
        for b in range(n_bands):
            value = hold(load(source, y * n_bands + b), spread(table[0, b]), spread(table[1, b]))
            value = (value - spread(table[2, b])) * spread(table[3, b])
            store(z, b, value)
            total = add_product(total, value, value)
        store(square, 0, total)
        score_class(z, offset, axes, (0, n_features), nothing, feature[y], best)
        _subtract_projection(feature[y], within, square[0], rest[y])
        for i in range(LANES):
            # Rounding may leave less than nothing; what is not a number stays so.
            rest[y, i] = np.sqrt(max(rest[y, i], 0.0) / n_bands)
    return feature, rest


@njit(nogil=True, cache=True)
def _subtract_projection(feature, within, square, rest):
    """Set rest (sample) to square less the square of what the features (feature, sample) say of it."""
    n_features, n_samples = feature.shape
    for i in range(n_samples):
        rest[i] = square[i]
    for f in range(n_features):
        for g in range(n_features):
            for i in range(n_samples):
                rest[i] -= within[f, g] * feature[f, i] * feature[g, i]
