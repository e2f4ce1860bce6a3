"""Loops over all pixels of a tile, many pixels side by side in vector lanes.

A pixel's arithmetic never depends on where in a tile it stands: blocks are padded, lanes do not mix, and no `fastmath`
reorders sums. That is what makes results independent of tile size. Scores are logarithms to base 2
(`Components.lanes`).
"""

import math

import numpy as np
from numba import njit

from gibbsite.kernels.products import score_class, whiten
from gibbsite.kernels.vectors import (
    LANES,
    aligned,
    count_reached,
    exp2,
    load,
    load_feature,
    move_others_away,
    spread,
    stay_apart,
    store,
)


@njit(inline="always")
def _hash(key, rank):
    """SplitMix64: what comes `rank` steps after `key`. Keys are hashes themselves, so sequences do not meet."""
    z = key + rank * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(inline="always")
def _hash_lanes(key, first_rank, out):
    for i in range(LANES):
        out[i] = _hash(key, np.uint64(first_rank + i))


@njit(inline="always")
def _uniform(bits):
    return np.float64(bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(nogil=True, cache=True)
def uniforms(key, first, out):
    """Fill `out` with the numbers in [0, 1) of the pixels of rank first, first + 1, ..."""
    for i in range(len(out)):
        out[i] = _uniform(_hash(key, np.uint64(first + i)))


@njit(inline="always")
def _rows(n_rows):
    """(n_rows, LANES) float32, uninitialised."""
    return aligned(4 * LANES * n_rows).view(np.float32).reshape(n_rows, LANES)


@njit(inline="always")
def _work(n_features):
    """Work space of `_score`: y, square, best."""
    return _rows(n_features), _rows(1), _rows(1)


@njit(nogil=True, cache=True)
def lay_out(feature):
    """(d, n + LANES) feature (n, d) int16 turned, its pixels side by side, with room for the lanes of a last vector."""
    n_pixels, n_features = feature.shape
    plane = np.empty((n_features, n_pixels + LANES), np.int16)
    for first in range(0, n_pixels, LANES):
        for a in range(n_features):
            for i in range(first, min(first + LANES, n_pixels)):
                plane[a, i] = feature[i, a]
    plane[:, n_pixels:] = 0
    return plane


@njit(inline="always")
def _load(plane, first, step, x):
    """Set x[a, i] to feature a of pixel first + i."""
    for a in range(plane.shape[0]):
        load_feature(plane, a, first, step, x)


@njit(inline="always")
def _load_known(known, first, stop, lane_known):
    """Whether any pixel has a known class; if so, those of all lanes go into `lane_known`."""
    # A slice, here and below: LLVM does not vectorise loops whose index might be negative.
    here = known[first:stop]
    is_any = False
    for i in range(len(here)):
        is_any |= here[i] >= 0
    if is_any:
        for i in range(LANES):
            lane_known[i] = here[min(i, len(here) - 1)]
    return is_any


@njit(nogil=True)
def _score(x, labels, components, work, score):
    """Set score[c, i] = log2 π_c N(x_i; μ_c, Σ), up to one constant, for all components, and the best of each lane.

    labels: whether any lane has a known class, those of all lanes, and by how much components of another class score
    lower. Whitened once per class.
    """
    is_any_known, lane_known, trust = labels
    class_start, matrix, shift, offset, direction = components
    y, square, best = work
    store(best, 0, spread(np.float32(-np.inf)))
    for k in range(len(class_start) - 1):
        whiten(x, matrix, shift, k, y, square)
        if is_any_known:
            store(square, 0, move_others_away(load(square, 0), lane_known, k, trust))
        score_class(y, offset, direction, (class_start[k], class_start[k + 1]), square, score, best)


@njit(nogil=True)
def _add_odds(score, best, running):
    """Set running[c] to the sum of the odds 2^(score − best) of components 0 .. c."""
    stay_apart()
    top = load(best, 0)
    total = spread(np.float32(0.0))
    for c in range(score.shape[0]):
        total = total + exp2(load(score, c) - top)
        store(running, c, total)


@njit(nogil=True)
def _choose(running, uniform, chosen):
    """Set chosen[0, i] to the component that uniform[0, i] picks."""
    stay_apart()
    goal = load(running, running.shape[0] - 1) * load(uniform, 0)
    count = spread(np.float32(0.0))
    for c in range(running.shape[0]):
        count = count_reached(count, load(running, c), goal)
    store(chosen, 0, count)


@njit(inline="always")
def _choose_one(score, i, u):
    """The component that the uniform u picks for lane i, with odds 2^score; -1 if none has odds."""
    best = score[0, i]
    for c in range(1, score.shape[0]):
        best = max(best, score[c, i])
    total = 0.0
    for c in range(score.shape[0]):
        total += 2.0 ** (score[c, i] - best)
    goal = u * total
    running = 0.0
    chosen = -1
    for c in range(score.shape[0]):
        odds = 2.0 ** (score[c, i] - best)
        if odds > 0.0:
            running += odds
            chosen = c
            if running > goal:
                break
    return chosen


@njit(nogil=True, cache=True)
def indicate(plane, start, labels, first_rank, keys, step, components, anchor_order, label):
    """Draw the component of every pixel into `label`, -1 where the odds are not numbers; how many of these there are.

    A pixel draws only among components whose anchor comes before it in this sweep's random order (`tiles.Anchors` says
    why). The pixels are `start` and those after it of a plane that `lay_out` made; labels: known (n,) class index or
    -1, and by how many bits the odds of other classes are lower; keys: of the draw and of the order; components as
    `Components.lanes` gives them; anchor_order (n_components,).
    """
    known, trust = labels
    n_pixels, n_features = len(label), plane.shape[0]
    n_components = components[0][-1]
    x, work = _rows(n_features), _work(n_features)
    score, running = _rows(n_components), _rows(n_components)
    uniform, drawn = _rows(1), _rows(1)
    lane_known = np.empty(LANES, np.int32)
    bits, order = np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    n_lost = 0
    for first in range(0, n_pixels, LANES):
        stop = min(first + LANES, n_pixels)
        _load(plane, start + first, step, x)
        is_any_known = _load_known(known, first, stop, lane_known)
        _score(x, (is_any_known, lane_known, trust), components, work, score)
        _add_odds(score, work[2], running)
        _hash_lanes(keys[0], first_rank + first, bits)
        _hash_lanes(keys[1], first_rank + first, order)
        for i in range(LANES):
            # An odd multiple of 2^-24 is never rounded: the goal stays below the total, and above all odds of nil.
            uniform[0, i] = (np.float32(np.int32(bits[i] >> np.uint64(41))) + np.float32(0.5)) * np.float32(2.0**-23)
        _choose(running, uniform, drawn)

        mine = label[first:stop]
        is_any_refused = False
        for i in range(len(mine)):
            mine[i] = np.int64(drawn[0, i])
            is_any_refused |= anchor_order[np.uint64(mine[i])] > order[i] or math.isnan(running[n_components - 1, i])
        if is_any_refused:
            n_lost += _redraw(score, running, (bits, order), first_rank + first, anchor_order, mine)
    return n_lost


@njit(nogil=True)
def _redraw(score, running, hashed, first_rank, anchor_order, label):
    """Draw again what was refused; how many labels are -1 in the end.

    Drawing again without what was refused is drawing among what is allowed. Refusals are rare: only small components
    have late anchors. There is always a component that a pixel may join, unless the odds are not numbers.
    """
    stay_apart()
    bits, order = hashed
    n_lost = 0
    for i in range(len(label)):
        if math.isnan(running[-1, i]):
            label[i] = -1
        while label[i] >= 0 and anchor_order[label[i]] > order[i]:
            score[label[i], i] = -np.inf
            bits[i] = _hash(bits[i], np.uint64(first_rank + i))
            label[i] = _choose_one(score, i, _uniform(bits[i]))
        n_lost += label[i] < 0
    return n_lost


@njit(nogil=True, cache=True)
def find_anchors(label, first_rank, key, skip, order, rank):
    """Lower `order` and `rank` of each component to its pixel that comes first under `key`; ranks in `skip` do not."""
    hashed = np.empty(LANES, np.uint64)
    for first in range(0, len(label), LANES):
        _hash_lanes(key, first_rank + first, hashed)
        here = label[first : first + LANES]
        for i in range(len(here)):
            if hashed[i] < order[here[i]]:
                r = first_rank + first + i
                if r < skip[0] or r >= skip[1]:
                    order[here[i]] = hashed[i]
                    rank[here[i]] = r


@njit(nogil=True, cache=True)
def add_odds(plane, step, components, start, probability):
    """Add each pixel's probabilities under one draw to `probability` (n, n_groups): of classes, or of components.

    start (n_groups + 1,) where each group of components starts.
    """
    n_pixels, n_features = len(probability), plane.shape[0]
    n_groups = len(start) - 1
    x, work = _rows(n_features), _work(n_features)
    score, odds = _rows(start[-1]), _rows(n_groups)
    nobody = np.empty(LANES, np.int32)
    for first in range(0, n_pixels, LANES):
        stop = min(first + LANES, n_pixels)
        _load(plane, first, step, x)
        _score(x, (False, nobody, np.float32(0.0)), components, work, score)
        best = load(work[2], 0)
        total = spread(np.float32(0.0))
        for k in range(n_groups):
            mine = spread(np.float32(0.0))
            for c in range(start[k], start[k + 1]):
                mine = mine + exp2(load(score, c) - best)
            store(odds, k, mine)
            total = total + mine
        for k in range(n_groups):
            store(odds, k, load(odds, k) / total)
        for i in range(stop - first):
            for k in range(n_groups):
                probability[first + i, k] += odds[k, i]


@njit(nogil=True, cache=True)
def fit_best(plane, step, components, label):
    """Fill `label` with the component under which each pixel's weighted density is highest, the first of equals."""
    n_pixels, n_features = len(label), plane.shape[0]
    n_components = components[0][-1]
    x, work, score = _rows(n_features), _work(n_features), _rows(n_components)
    nobody, best = np.empty(LANES, np.int32), work[2]
    for first in range(0, n_pixels, LANES):
        stop = min(first + LANES, n_pixels)
        _load(plane, first, step, x)
        _score(x, (False, nobody, np.float32(0.0)), components, work, score)
        for i in range(stop - first):
            c = 0
            while score[c, i] < best[0, i]:
                c += 1
            label[first + i] = c


@njit(nogil=True, cache=True)
def log_density(plane, class_index, step, components, out):
    """Fill `out` with log p(x_i | class of i): the class-conditional density, up to one constant per model."""
    n_pixels, n_features = len(out), plane.shape[0]
    n_components = components[0][-1]
    x, work = _rows(n_features), _work(n_features)
    score, running = _rows(n_components), _rows(n_components)
    lane_known = np.empty(LANES, np.int32)
    best = work[2]
    for first in range(0, n_pixels, LANES):
        stop = min(first + LANES, n_pixels)
        _load(plane, first, step, x)
        is_any_known = _load_known(class_index, first, stop, lane_known)
        _score(x, (is_any_known, lane_known, np.float32(np.inf)), components, work, score)
        _add_odds(score, best, running)
        for i in range(stop - first):
            out[first + i] = (best[0, i] + math.log2(running[n_components - 1, i])) * math.log(2.0)
