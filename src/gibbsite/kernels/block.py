"""The block scan: pixels of one block choose one after the other, and may open and close components.

Components with pixels outside the block ("explicit") have drawn weights, means and covariances and cannot vanish.
Components that live in the block alone ("loose") have their mean integrated out, and classes all of whose components
are loose have mean and covariance integrated out too. Each pixel leaves its component and chooses anew with its full
conditional, so the scan is an exact Gibbs step.

What a pixel makes of the explicit components, and of opening one in a class with drawn parameters, does not change
during the scan: it is computed for a chunk of pixels at a time, in vector registers.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from gibbsite.kernels.loose import Vague, change_class, clear_class, log_student, start_classes, start_loose

LOG_2PI = math.log(2.0 * math.pi)
LOG2_E = 1.0 / math.log(2.0)
ROUND = 1.5 * 2.0**52
"""A small float64 added to it is rounded to a whole number, which then stands in the lowest bits."""
CHUNK = 64
"""Pixels scored at a time."""
NEGLIGIBLE = -50.0
"""Log odds against the best below which a choice is none: 2e-22 is less than a uniform resolves."""


class Drawn(NamedTuple):
    """The explicit components and the classes with drawn parameters."""

    class_of: np.ndarray
    log_weight: np.ndarray
    whitened_mean: np.ndarray
    centre: np.ndarray
    whiten: np.ndarray
    log_det_whiten: np.ndarray


class Process(NamedTuple):
    """The Dirichlet processes."""

    log_tail: float
    """log π_*."""
    alpha: float
    gamma: float
    is_single: bool
    """A class has one component only."""


class Settled(NamedTuple):
    """What the pixels of a chunk make of whatever does not change during the scan."""

    white: np.ndarray
    """(n_classes, n_features, CHUNK) U_k (x − μ_k)."""
    opening: np.ndarray
    """(n_classes, CHUNK) log density in a component yet to open in a drawn class."""
    odds: np.ndarray
    """(n_explicit, CHUNK) odds of the explicit components, against the best of them."""
    best: np.ndarray
    """(CHUNK,) log odds of the best, -inf where none is open to the pixel."""
    total: np.ndarray
    """(CHUNK,) sum of the odds."""


@njit(nogil=True, cache=True)
def scan_block(x, known, uniform, label, explicit, loose_class, process, prior):
    """The component of each pixel of a block after the scan, and the class of each loose component.

    x (n, d) float64; known (n,) class index or -1; label (n,) component before the scan: explicit ones first, then
    loose ones, whose classes are `loose_class`, with -1 for room to open more. explicit holds (class_of, log_weight,
    whitened_mean) per explicit component and (centre, whiten, log_det_whiten) per class, drawn; process (log π_*, α, γ,
    whether a class has one component only); prior (μ0, Ψ0, κ0, 1/κ1, m). A class index past the drawn ones is new.
    """
    drawn, process = Drawn(*explicit), Process(*process)
    vague = Vague(prior[0], np.ascontiguousarray(np.linalg.cholesky(prior[1]).T), prior[2], prior[3], prior[4])
    (n_pixels, n_features), n_explicit, n_classes = x.shape, len(drawn.class_of), len(drawn.centre)
    loose = start_loose(loose_class, n_features)
    classes = start_classes(drawn.class_of, loose_class, n_classes + len(loose_class) + 1, vague)
    for k in range(n_classes + 1):
        clear_class(k, classes, vague)
    label = label.copy()
    for i in range(n_pixels):
        if label[i] >= n_explicit:
            _change(x[i], label[i] - n_explicit, 1, drawn, loose, classes, vague)

    # Loose components stand below `top`: the room after them need not be looked at.
    top = int(np.flatnonzero(np.append(-2, loose.class_of) != -1)[-1])
    n_loose, n_tail = int((loose.class_of >= 0).sum()), int((label >= n_explicit).sum())
    settled = _make_room(n_explicit, n_classes, n_features)
    score = np.empty(2 * len(loose_class) + n_classes + 1)
    for i in range(n_pixels):
        at = i % CHUNK
        if at == 0:
            _settle(x[i : i + CHUNK], known[i : i + CHUNK], drawn, vague.spread, settled)
        if label[i] >= n_explicit:
            n_loose -= _leave(x[i], label[i] - n_explicit, drawn, loose, classes, vague)
            n_tail -= 1

        free = 0
        while free < len(loose_class) and loose.class_of[free] >= 0:
            free += 1
        share = process.log_tail - math.log(process.alpha + n_tail)
        _score_loose(x[i], known[i], at, share, drawn, loose, classes, vague.spread, settled, score[:top])
        openings = score[top : top + n_classes + 1]
        openings[:] = -np.inf
        if free < len(loose_class):
            share += math.log(process.alpha)
            share -= 0.0 if process.is_single else math.log(n_explicit + n_loose + process.gamma)
            _score_openings(x[i], known[i], at, share, process, loose, classes, vague.spread, settled, openings)

        chosen = _pick(at, settled, score[: top + n_classes + 1], uniform[i])
        if chosen >= n_explicit + top:
            k = chosen - n_explicit - top
            chosen = n_explicit + free
            loose.class_of[free] = k
            classes.members[k] += 1
            n_loose += 1
            top = max(top, free + 1)
            if k == n_classes:
                n_classes += 1
                clear_class(n_classes, classes, vague)
        label[i] = chosen
        if chosen >= n_explicit:
            _change(x[i], chosen - n_explicit, 1, drawn, loose, classes, vague)
            n_tail += 1
    return label, loose.class_of


@njit(cache=True)
def _change(x, j, sign, drawn, loose, classes, vague):
    """Let pixel x join (+1) or leave (-1) loose component j."""
    k = loose.class_of[j]
    if not classes.is_drawn[k]:
        change_class(x, j, sign, loose, classes, vague.spread)
        return
    loose.size[j] += sign
    for a in range(len(x)):
        for b in range(a, len(x)):
            loose.white_total[j, a] += sign * drawn.whiten[k, a, b] * (x[b] - drawn.centre[k, b])


@njit(cache=True)
def _leave(x, j, drawn, loose, classes, vague):
    """Let pixel x leave loose component j; 1 if that closes it."""
    _change(x, j, -1, drawn, loose, classes, vague)
    if loose.size[j] > 0.0:
        return 0
    k = loose.class_of[j]
    loose.class_of[j] = -1
    classes.members[k] -= 1
    # What rounding leaves behind must not reach those who come after.
    loose.total[j], loose.white_total[j] = 0.0, 0.0
    if classes.members[k] == 0:
        clear_class(k, classes, vague)
    return 1


@njit(cache=True)
def _make_room(n_explicit, n_classes, n_features):
    return Settled(
        np.empty((n_classes, n_features, CHUNK)),
        np.empty((n_classes, CHUNK)),
        np.empty((n_explicit, CHUNK)),
        np.empty(CHUNK),
        np.empty(CHUNK),
    )


@njit(cache=True)
def _settle(x, known, drawn, spread, settled):
    """Score a chunk of pixels against whatever does not change."""
    n_features, c = x.shape[1], 0
    distance = np.empty(CHUNK)
    for k in range(len(drawn.centre)):
        white = settled.white[k]
        _whiten(x, drawn.centre[k], drawn.whiten[k], white)
        peak = drawn.log_det_whiten[k] - 0.5 * n_features * LOG_2PI
        _measure(white, np.zeros(n_features), distance)
        settled.opening[k] = peak - 0.5 * n_features * math.log1p(spread) - distance * (0.5 / (1.0 + spread))
        while c < len(drawn.class_of) and drawn.class_of[c] == k:
            _measure(white, drawn.whitened_mean[c], distance)
            settled.odds[c] = drawn.log_weight[c] + peak - 0.5 * distance
            c += 1
    for i in range(len(x)):
        if known[i] >= 0:
            settled.odds[drawn.class_of != known[i], i] = -np.inf
    _normalise(settled.odds, settled.best, settled.total)


# Coefficients are read before the loops over pixels that use them: only then do these become vector code.


@njit(cache=True, fastmath={"contract"})
def _whiten(x, centre, whiten, white):
    """U (x − centre) of each pixel, into columns."""
    n, n_features = x.shape
    away = np.zeros((n_features, CHUNK))
    for a in range(n_features):
        middle = centre[a]
        for i in range(n):
            away[a, i] = x[i, a] - middle
    white[:] = 0.0
    for a in range(n_features):
        for b in range(a, n_features):
            weight = whiten[a, b]
            for i in range(CHUNK):
                white[a, i] += weight * away[b, i]


@njit(cache=True, fastmath={"contract"})
def _measure(white, centre, distance):
    """Squared distances of columns from a centre."""
    distance[:] = 0.0
    for a in range(len(white)):
        middle = centre[a]
        for i in range(CHUNK):
            distance[i] += (white[a, i] - middle) ** 2


@njit(cache=True, fastmath={"contract"})
def _normalise(odds, best, total):
    """Log odds to odds against the best of each pixel.

    eᵗ = 2ᵏ eʳ with a whole k and |r| ≤ ln(2)/2: eʳ by its series, to 1e-14, and k by what ROUND leaves in the lowest
    bits, from where it moves to the exponent.
    """
    best[:] = -np.inf
    total[:] = 0.0
    raised, scale = np.empty(CHUNK), np.empty(CHUNK)
    bits, exponent = raised.view(np.int64), scale.view(np.int64)
    for row in odds:
        for i in range(CHUNK):
            best[i] = row[i] if row[i] > best[i] else best[i]
    for row in odds:
        for i in range(CHUNK):
            # Where no component is open to a pixel, t is no number.
            t = row[i] - best[i]
            raised[i] = (t if t > NEGLIGIBLE else NEGLIGIBLE) * LOG2_E + ROUND
            exponent[i] = (bits[i] + 1023) << 52
        for i in range(CHUNK):
            t = row[i] - best[i]
            r = t - (raised[i] - ROUND) / LOG2_E
            series = 1.0 + r / 11.0
            for power in (10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0):
                series = 1.0 + series * (r / power)
            row[i] = series * scale[i] if t > NEGLIGIBLE else 0.0
            total[i] += row[i]


@njit(inline="always")
def _score_loose(x, known, at, share, drawn, loose, classes, spread, settled, score):
    """Log odds of the loose components."""
    n_features = len(x)
    for j in range(len(score)):
        k = loose.class_of[j]
        score[j] = -np.inf
        if k < 0 or (known >= 0 and known != k):
            continue
        if classes.is_drawn[k]:
            shrink = 1.0 + spread * loose.size[j]
            variance, distance = 1.0 + spread / shrink, 0.0
            for a in range(n_features):
                distance += (settled.white[k, a, at] - spread / shrink * loose.white_total[j, a]) ** 2
            density = drawn.log_det_whiten[k] - 0.5 * n_features * (LOG_2PI + math.log(variance))
            density -= 0.5 * distance / variance
        else:
            density = log_student(x, j, k, loose, classes, spread)
        score[j] = share + math.log(loose.size[j]) + density


@njit(inline="always")
def _score_openings(x, known, at, share, process, loose, classes, spread, settled, score):
    """Log odds of opening a component in each class, the last one new."""
    newest = len(score) - 1
    for k in range(newest + 1):
        is_new = k == newest if known < 0 else k == known and classes.members[k] == 0
        if (known >= 0 and known != k) or not (is_new or (classes.members[k] > 0 and not process.is_single)):
            continue
        density = settled.opening[k, at] if classes.is_drawn[k] else log_student(x, -1, k, loose, classes, spread)
        seats = 0.0 if process.is_single else math.log(process.gamma if is_new else classes.members[k])
        score[k] = share + seats + density


@njit(inline="always")
def _pick(at, settled, score, u):
    """What u picks: an explicit component, or after those one of the scored choices, with odds exp(score)."""
    best = settled.best[at]
    for j in range(len(score)):
        best = max(best, score[j])
    explicit = math.exp(settled.best[at] - best) * settled.total[at]
    total = explicit
    for j in range(len(score)):
        if score[j] - best > NEGLIGIBLE:
            total += math.exp(score[j] - best)
    goal, n_explicit = u * total, len(settled.odds)
    chosen, running = 0, explicit
    if goal < explicit:
        goal *= settled.total[at] / explicit
        running = 0.0
        for c in range(n_explicit):
            if settled.odds[c, at] > 0.0:
                running += settled.odds[c, at]
                chosen = c
                if running > goal:
                    break
        return chosen
    for j in range(len(score)):
        if score[j] - best > NEGLIGIBLE:
            running += math.exp(score[j] - best)
            chosen = n_explicit + j
            if running > goal:
                break
    return chosen
