"""Loops over all pixels of a tile, many pixels side by side in vector lanes.

A pixel's arithmetic never depends on where in a tile it stands: blocks are padded, lanes do not mix, and no
`fastmath` reorders sums. That is what makes results independent of tile size.
"""

import math

import numpy as np
from numba import njit

from gibbsite.kernels.vectors import LANES, multiply_1, multiply_4

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
def _add_products(out, start, stop, coefficient, rows, is_triangular):
    """out[r, i] += Σ_a coefficient[r, a] · rows[a, i] for rows start .. stop − 1; a from r on where triangular."""
    for lane in range(0, BLOCK, LANES):
        r = start
        while r + 3 < stop:
            multiply_4(out, r, coefficient, r, rows, (r if is_triangular else 0, lane))
            r += 4
        while r < stop:
            multiply_1(out, r, coefficient, r, rows, (r if is_triangular else 0, lane))
            r += 1


@njit(nogil=True, cache=True)
def _score(x, components, lanes, score):
    """score[c, i] = log π_c N(x_i; μ_c, Σ), up to one constant, for all components; whitened once per class."""
    class_start, centre, whiten, offset, direction = components
    away, y, square = lanes
    n_features = x.shape[0]
    for k in range(len(class_start) - 1):
        for a in range(n_features):
            for i in range(BLOCK):
                away[a, i] = x[a, i] - centre[k, a]
                y[a, i] = np.float32(0.0)
        # whiten[k] is upper triangular: feature a of the whitened pixel needs the features from a on.
        _add_products(y, 0, n_features, whiten[k], away, True)
        for i in range(BLOCK):
            square[i] = np.float32(0.0)
        for a in range(n_features):
            for i in range(BLOCK):
                square[i] += y[a, i] * y[a, i]
        for c in range(class_start[k], class_start[k + 1]):
            for i in range(BLOCK):
                score[c, i] = offset[c] - np.float32(0.5) * square[i]
        _add_products(score, class_start[k], class_start[k + 1], direction, y, False)


@njit(inline="always")
def _lanes(n_features):
    """Work space of `_score`."""
    return (
        np.empty((n_features, BLOCK), np.float32),
        np.empty((n_features, BLOCK), np.float32),
        np.empty(BLOCK, np.float32),
    )


@njit(nogil=True, cache=True)
def _exponentiate(score, best, odds, total, whole):
    """odds[c, i] = exp(score[c, i] − best[i]) and their sum over c, to about 2e-7, many lanes at a time.

    2^t with t split into a whole number, put into the exponent bits of a float (`whole` seen as int32), and a rest in
    (−1, 0], by the Taylor series about −1/2. math.exp would be called lane by lane; this is 5 times faster. Odds end at
    2^−100: smaller ones pick nothing, and denormal numbers would halve the speed.
    """
    exponent = whole.view(np.int32)
    for i in range(BLOCK):
        total[i] = np.float32(0.0)
    for c in range(score.shape[0]):
        for i in range(BLOCK):
            t = max((score[c, i] - best[i]) * np.float32(1.4426950408889634), np.float32(-100.0))
            n = np.int32(t)
            g = (t - np.float32(n) + np.float32(0.5)) * np.float32(0.6931471805599453)
            p = np.float32(1.0 / 720.0)
            p = p * g + np.float32(1.0 / 120.0)
            p = p * g + np.float32(1.0 / 24.0)
            p = p * g + np.float32(1.0 / 6.0)
            p = p * g + np.float32(0.5)
            p = p * g + np.float32(1.0)
            p = p * g + np.float32(1.0)
            odds[c, i] = p * np.float32(0.7071067811865476)
            exponent[i] = (n + np.int32(127)) << np.int32(23)
        for i in range(BLOCK):
            odds[c, i] *= whole[i]
            total[i] += odds[c, i]


@njit(nogil=True, cache=True)
def _choose_all(odds, total, uniform, running, count):
    """count[i] = the component that uniform[i] picks among all, for every lane at once."""
    for i in range(BLOCK):
        # A float64 uniform may round to 1; the largest float32 below it keeps the goal below the total.
        total[i] *= min(uniform[i], np.float32(1.0 - 2.0**-24))
        running[i] = np.float32(0.0)
        count[i] = 0
    # Added in the order of the total, so the last sum is the total itself and is above the goal.
    for c in range(odds.shape[0]):
        for i in range(BLOCK):
            running[i] += odds[c, i]
            count[i] += np.int32(running[i] <= total[i])


@njit(inline="always")
def _choose(score, i, low, high, u):
    """The component in [low, high) that the uniform u picks for lane i, with odds exp(score)."""
    best = score[low, i]
    for c in range(low + 1, high):
        best = max(best, score[c, i])
    total = 0.0
    for c in range(low, high):
        total += math.exp(score[c, i] - best)
    goal = u * total
    running = 0.0
    chosen = low
    for c in range(low, high):
        odds = math.exp(score[c, i] - best)
        if odds > 0.0:
            running += odds
            chosen = c
            if running > goal:
                break
    return chosen


@njit(nogil=True, cache=True)
def indicate(feature, known, first_rank, keys, step, components, anchor_order, label):
    """Draw the component of every pixel into `label`; -1 where the scores are not numbers.

    A labelled pixel draws among its own class's components, and a pixel only among components whose anchor comes before
    it in this sweep's random order (`tiles.Anchors` says why). feature (n, d) int16; known (n,) class index or -1;
    keys: of the draw and of the order; components as `_score` takes them; anchor_order (n_components,).
    """
    n_features = feature.shape[1]
    class_start = components[0]
    n_components = class_start[-1]
    draw_key, order_key = keys
    x = np.empty((n_features, BLOCK), np.float32)
    lanes = _lanes(n_features)
    lane = np.empty((4, BLOCK), np.float32)
    best, total, running, uniform = lane[0], lane[1], lane[2], lane[3]
    whole = np.empty(BLOCK, np.float32)
    count = np.empty(BLOCK, np.int32)
    score = np.empty((n_components, BLOCK), np.float32)
    odds = np.empty((n_components, BLOCK), np.float32)
    for first in range(0, feature.shape[0], BLOCK):
        n_lanes = _load(feature, first, step, x)
        _score(x, components, lanes, score)
        for i in range(BLOCK):
            best[i] = score[0, i]
            uniform[i] = _uniform(_hash(draw_key, np.uint64(first_rank + first + i)))
        for c in range(1, n_components):
            for i in range(BLOCK):
                best[i] = max(best[i], score[c, i])
        _exponentiate(score, best, odds, total, whole)
        _choose_all(odds, total, uniform, running, count)
        for i in range(n_lanes):
            rank = np.uint64(first_rank + first + i)
            order = _hash(order_key, rank)
            low, high = 0, n_components
            chosen = np.int64(count[i])
            bits = _hash(draw_key, rank)
            if known[first + i] >= 0:
                low = class_start[known[first + i]]
                high = class_start[known[first + i] + 1]
                chosen = _choose(score, i, low, high, _uniform(bits))
            # Drawing again without what was refused is drawing among what is allowed. Refusals are rare: only small
            # components have late anchors.
            n_refused = 0
            while anchor_order[chosen] > order and n_refused < high - low:
                score[chosen, i] = -np.inf
                bits = _hash(bits, rank)
                chosen = _choose(score, i, low, high, _uniform(bits))
                n_refused += 1
            # There is always one it may choose, unless the scores are not numbers.
            label[first + i] = chosen if n_refused < high - low else -1


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
def class_odds(feature, step, components, probability):
    """Add each pixel's class probabilities under one draw to `probability` (n, n_classes)."""
    n_features = feature.shape[1]
    class_start = components[0]
    n_classes = len(class_start) - 1
    x = np.empty((n_features, BLOCK), np.float32)
    lanes = _lanes(n_features)
    score = np.empty((class_start[-1], BLOCK), np.float32)
    odds = np.empty(n_classes, np.float64)
    for first in range(0, feature.shape[0], BLOCK):
        n_lanes = _load(feature, first, step, x)
        _score(x, components, lanes, score)
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
    lanes = _lanes(n_features)
    score = np.empty((class_start[-1], BLOCK), np.float32)
    for first in range(0, feature.shape[0], BLOCK):
        n_lanes = _load(feature, first, step, x)
        _score(x, components, lanes, score)
        for i in range(n_lanes):
            k = class_index[first + i]
            best = score[class_start[k], i]
            for c in range(class_start[k] + 1, class_start[k + 1]):
                best = max(best, score[c, i])
            total = 0.0
            for c in range(class_start[k], class_start[k + 1]):
                total += math.exp(score[c, i] - best)
            out[first + i] = best + math.log(total)
