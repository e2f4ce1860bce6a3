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


@njit(nogil=True, cache=True)
def _add_products(coefficient, first, rows, out):
    """out[i] += Σ_a coefficient[a] · rows[a, i] for a from `first` on.

    Four rows at a time: `out` is loaded and stored once for four of them, which doubles the speed.
    """
    n_rows = rows.shape[0]
    a = first
    while a + 3 < n_rows:
        c0, c1, c2, c3 = coefficient[a], coefficient[a + 1], coefficient[a + 2], coefficient[a + 3]
        r0, r1, r2, r3 = rows[a], rows[a + 1], rows[a + 2], rows[a + 3]
        for i in range(BLOCK):
            out[i] = out[i] + c0 * r0[i] + c1 * r1[i] + c2 * r2[i] + c3 * r3[i]
        a += 4
    while a < n_rows:
        c0, r0 = coefficient[a], rows[a]
        for i in range(BLOCK):
            out[i] = out[i] + c0 * r0[i]
        a += 1


@njit(nogil=True, cache=True)
def _score(x, components, lanes, score):
    """score[c, i] = log π_c N(x_i; μ_c, Σ), up to one constant, for all components; whitened once per class."""
    class_start, centre, whiten, offset, direction = components
    away, y, square = lanes
    n_features = x.shape[0]
    for k in range(len(class_start) - 1):
        for a in range(n_features):
            x_a, away_a, centre_a = x[a], away[a], centre[k, a]
            for i in range(BLOCK):
                away_a[i] = x_a[i] - centre_a
        for i in range(BLOCK):
            square[i] = np.float32(0.0)
        for a in range(n_features):
            # whiten[k] is upper triangular: feature a of the whitened pixel needs the features from a on.
            y_a = y[a]
            for i in range(BLOCK):
                y_a[i] = np.float32(0.0)
            _add_products(whiten[k, a], a, away, y_a)
            for i in range(BLOCK):
                square[i] += y_a[i] * y_a[i]
        for c in range(class_start[k], class_start[k + 1]):
            o, score_c = offset[c], score[c]
            for i in range(BLOCK):
                score_c[i] = o - np.float32(0.5) * square[i]
            _add_products(direction[c], 0, y, score_c)


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
    (−1, 0], by the Taylor series about −1/2. math.exp would be called lane by lane; this is 5 times faster.
    """
    exponent = whole.view(np.int32)
    for i in range(BLOCK):
        total[i] = np.float32(0.0)
    for c in range(score.shape[0]):
        for i in range(BLOCK):
            t = max((score[c, i] - best[i]) * np.float32(1.4426950408889634), np.float32(-126.0))
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
        running[i] = -uniform[i] * total[i]
        count[i] = 0
    # The last component takes what rounding leaves.
    for c in range(odds.shape[0] - 1):
        for i in range(BLOCK):
            running[i] += odds[c, i]
            count[i] += np.int32(running[i] <= np.float32(0.0))


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
