"""Loops over all pixels of a tile, many pixels side by side in vector lanes.

A pixel's arithmetic never depends on where in a tile it stands: blocks are padded, lanes do not mix, and no
`fastmath` reorders sums. That is what makes results independent of tile size.
"""

import math

import numpy as np
from numba import njit

BLOCK = 256
"""Pixels worked on together, one per vector lane: d + L rows of them stay in the second-level cache."""


@njit(inline="always")
def _hash(key, rank):
    # Two rounds of the SplitMix64 finaliser, keyed before each: flips of any bit of key or rank reach all bits.
    z = key + rank * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = (z ^ (z >> np.uint64(31))) + key
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(inline="always")
def _uniform(bits):
    return np.float64(bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(nogil=True, cache=True)
def uniforms(key, first, out):
    """Fill `out` with the numbers in [0, 1) of the pixels of rank first, first + 1, ..."""
    for i in range(len(out)):
        out[i] = _uniform(_hash(key, np.uint64(first + i)))


@njit(inline="always")
def _load(feature, first, step, x):
    """Copy one block of fixed-point pixels into lanes: x[a, i]; lanes past the end are zero."""
    n_lanes = min(BLOCK, feature.shape[0] - first)
    for i in range(n_lanes):
        for a in range(feature.shape[1]):
            x[a, i] = np.float32(feature[first + i, a]) * step
    for i in range(n_lanes, BLOCK):
        for a in range(feature.shape[1]):
            x[a, i] = np.float32(0.0)
    return n_lanes


@njit(inline="always")
def _score(x, components, y, square, score):
    """score[c, i] = log π_c N(x_i; μ_c, Σ), up to one constant, for all components; whitened once per class."""
    class_start, centre, whiten, offset, direction = components
    n_features = x.shape[0]
    for k in range(len(class_start) - 1):
        for i in range(BLOCK):
            square[i] = np.float32(0.0)
        for a in range(n_features):
            # whiten[k] is upper triangular: feature a of the whitened pixel needs b >= a only. Rows are made in
            # place of the centred pixel, which row a is the last to need.
            for i in range(BLOCK):
                y[a, i] = x[a, i] - centre[k, a]
        for a in range(n_features):
            w = whiten[k, a, a]
            for i in range(BLOCK):
                y[a, i] *= w
            for b in range(a + 1, n_features):
                w = whiten[k, a, b]
                for i in range(BLOCK):
                    y[a, i] += w * y[b, i]
            for i in range(BLOCK):
                square[i] += y[a, i] * y[a, i]
        for c in range(class_start[k], class_start[k + 1]):
            o = offset[c]
            for i in range(BLOCK):
                score[c, i] = o - np.float32(0.5) * square[i]
            for a in range(n_features):
                v = direction[c, a]
                for i in range(BLOCK):
                    score[c, i] += v * y[a, i]


@njit(inline="always")
def _choose(score, i, low, high, u):
    """The component in [low, high) that the uniform u picks for lane i, with odds exp(score)."""
    best = score[low, i]
    for c in range(low + 1, high):
        best = max(best, score[c, i])
    total = 0.0
    for c in range(low, high):
        # exp(-40) is below the resolution of a sum of float64 odds that a uniform could tell apart.
        if score[c, i] > best - np.float32(40.0):
            total += math.exp(score[c, i] - best)
    goal = u * total
    running = 0.0
    chosen = low
    for c in range(low, high):
        if score[c, i] > best - np.float32(40.0):
            running += math.exp(score[c, i] - best)
            chosen = c
            if running > goal:
                break
    return chosen


@njit(nogil=True, cache=True)
def indicate(feature, known, first_rank, keys, step, components, anchor_order, label):
    """Draw the component of every pixel into `label`.

    A labelled pixel draws among its own class's components, and a pixel only among components whose anchor comes before
    it in this sweep's random order (`tiles.Anchors` says why). feature (n, d) int16; known (n,) class index or -1;
    keys: of the draw and of the order; components as `_score` takes them; anchor_order (n_components,).
    """
    n_features = feature.shape[1]
    class_start = components[0]
    n_components = class_start[-1]
    draw_key, order_key = keys
    x = np.empty((n_features, BLOCK), np.float32)
    y = np.empty((n_features, BLOCK), np.float32)
    square = np.empty(BLOCK, np.float32)
    score = np.empty((n_components, BLOCK), np.float32)
    for first in range(0, feature.shape[0], BLOCK):
        n_lanes = _load(feature, first, step, x)
        _score(x, components, y, square, score)
        for i in range(n_lanes):
            low, high = 0, n_components
            if known[first + i] >= 0:
                low = class_start[known[first + i]]
                high = class_start[known[first + i] + 1]
            rank = np.uint64(first_rank + first + i)
            bits = _hash(draw_key, rank)
            order = _hash(order_key, rank)
            chosen = _choose(score, i, low, high, _uniform(bits))
            # Drawing again without what was refused is drawing among what is allowed. Refusals are rare: only small
            # components have late anchors.
            while anchor_order[chosen] > order:
                score[chosen, i] = -np.inf
                bits = _hash(bits, rank)
                chosen = _choose(score, i, low, high, _uniform(bits))
            label[first + i] = chosen


@njit(nogil=True, cache=True)
def find_anchors(label, first_rank, key, skip, order, rank):
    """Lower `order` and `rank` of each component to its pixel that comes first under `key`; ranks in `skip` do not."""
    for i in range(len(label)):
        r = first_rank + i
        if skip[0] <= r < skip[1]:
            continue
        c = label[i]
        h = _hash(key, np.uint64(r))
        if h < order[c]:
            order[c] = h
            rank[c] = r


@njit(nogil=True, cache=True)
def add_up(feature, known, label, n, total, outer, n_pinning):
    """Add the pixels to the sums of their components; only the upper triangle of `outer` is filled.

    Fixed-point products are below 2^30 and a tile has at most 2^22 pixels, so float64 holds every sum exactly; float64
    lanes are faster than int64 ones.
    """
    n_features = feature.shape[1]
    row = np.empty(n_features, np.float64)
    for i in range(feature.shape[0]):
        c = label[i]
        n[c] += 1
        if known[i] >= 0:
            n_pinning[c] += 1
        for a in range(n_features):
            row[a] = feature[i, a]
        for a in range(n_features):
            total[c, a] += row[a]
            xa = row[a]
            for b in range(a, n_features):
                outer[c, a, b] += xa * row[b]


@njit(nogil=True, cache=True)
def class_odds(feature, step, components, probability):
    """Add each pixel's class probabilities under one draw to `probability` (n, n_classes)."""
    n_features = feature.shape[1]
    class_start = components[0]
    n_classes = len(class_start) - 1
    x = np.empty((n_features, BLOCK), np.float32)
    y = np.empty((n_features, BLOCK), np.float32)
    square = np.empty(BLOCK, np.float32)
    score = np.empty((class_start[-1], BLOCK), np.float32)
    odds = np.empty(n_classes, np.float64)
    for first in range(0, feature.shape[0], BLOCK):
        n_lanes = _load(feature, first, step, x)
        _score(x, components, y, square, score)
        for i in range(n_lanes):
            best = score[0, i]
            for c in range(1, class_start[-1]):
                best = max(best, score[c, i])
            total = 0.0
            for k in range(n_classes):
                odds[k] = 0.0
                for c in range(class_start[k], class_start[k + 1]):
                    if score[c, i] > best - np.float32(40.0):
                        odds[k] += math.exp(score[c, i] - best)
                total += odds[k]
            for k in range(n_classes):
                probability[first + i, k] += odds[k] / total


@njit(nogil=True, cache=True)
def log_density(feature, class_index, step, components, out):
    """Fill `out` with log p(x_i | class of i): the class-conditional density, up to one constant per model."""
    n_features = feature.shape[1]
    class_start = components[0]
    x = np.empty((n_features, BLOCK), np.float32)
    y = np.empty((n_features, BLOCK), np.float32)
    square = np.empty(BLOCK, np.float32)
    score = np.empty((class_start[-1], BLOCK), np.float32)
    for first in range(0, feature.shape[0], BLOCK):
        n_lanes = _load(feature, first, step, x)
        _score(x, components, y, square, score)
        for i in range(n_lanes):
            k = class_index[first + i]
            best = score[class_start[k], i]
            for c in range(class_start[k] + 1, class_start[k + 1]):
                best = max(best, score[c, i])
            total = 0.0
            for c in range(class_start[k], class_start[k + 1]):
                total += math.exp(score[c, i] - best)
            out[first + i] = best + math.log(total)
