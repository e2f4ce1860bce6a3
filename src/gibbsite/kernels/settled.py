"""What the pixels of a block make of whatever does not change during its scan, in vector registers.

That is the explicit components, and opening a component in a class with drawn parameters or in a new class.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from gibbsite.kernels.loose import log_peak_of_new

LOG_2PI = math.log(2.0 * math.pi)
LN_2 = math.log(2.0)
LOG2_E = 1.0 / LN_2
SERIES = tuple(1.0 / math.factorial(power) for power in range(11, -1, -1))
"""Of the exponential function, the highest power first."""
ROUND = 1.5 * 2.0**52
"""A small float64 added to it is rounded to a whole number, which then stands in the lowest bits."""
CHUNK = 64
"""Pixels scored at a time."""
LEAST = -600.0
"""Log odds against the best are at least this: what is open to a pixel stays so, if nothing else is left."""


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
    odds: np.ndarray
    """(n_explicit + n_classes + 1, CHUNK) of explicit components; of the tail in each drawn class and in a new one."""
    best: np.ndarray
    """(CHUNK,) log odds of the best of them, against which odds are; -inf where none is open to the pixel."""
    total: np.ndarray
    """(CHUNK,) sum of the odds of the explicit components."""


@njit(cache=True)
def make_room(n_explicit, n_classes, n_features):
    """Work space of `settle`."""
    return Settled(
        np.empty((n_classes, n_features, CHUNK)),
        np.empty((n_explicit + n_classes + 1, CHUNK)),
        np.empty(CHUNK),
        np.empty(CHUNK),
    )


@njit(cache=True)
def settle(x, labels, drawn, process, vague, classes, settled):
    """Score a chunk of pixels against whatever does not change; labels as in `scan_block`."""
    known, trust = labels
    n_features, n_explicit, n_classes, c = x.shape[1], len(drawn.class_of), len(drawn.centre), 0
    distance, away = np.empty(CHUNK), np.zeros((n_features, CHUNK))
    for k in range(n_classes):
        white = settled.white[k]
        _move(x, drawn.centre[k], away)
        _whiten(away, drawn.whiten[k], white)
        peak = drawn.log_det_whiten[k] - 0.5 * n_features * LOG_2PI
        _measure(white, np.zeros(n_features), distance)
        wide = process.log_tail + peak - 0.5 * n_features * math.log1p(vague.spread)
        # Of a class whose parameters are integrated out the pixels in the block know more.
        wide = wide if classes.is_drawn[k] else -np.inf
        for i in range(CHUNK):
            settled.odds[n_explicit + k, i] = wide - distance[i] * (0.5 / (1.0 + vague.spread))
        while c < n_explicit and drawn.class_of[c] == k:
            _measure(white, drawn.whitened_mean[c], distance)
            height = drawn.log_weight[c] + peak
            for i in range(CHUNK):
                settled.odds[c, i] = height - 0.5 * distance[i]
            c += 1
    _move(x, vague.mean, away)
    _measure_back(away, vague.factor, distance)
    blur = 1.0 + vague.spread + 1.0 / vague.kappa
    peak = process.log_tail + log_peak_of_new(vague, blur)
    for i in range(CHUNK):
        settled.odds[-1, i] = peak - 0.5 * (vague.degrees + 1.0) * math.log1p(distance[i] / blur)
    for i in range(len(x)):
        if known[i] >= 0:
            for c in range(n_explicit):
                if drawn.class_of[c] != known[i]:
                    settled.odds[c, i] -= trust
            for k in range(n_classes + 1):
                if k != known[i]:
                    settled.odds[n_explicit + k, i] -= trust
    _normalise(settled.odds, settled.best)
    for i in range(CHUNK):
        settled.total[i] = 0.0
    for c in range(n_explicit):
        for i in range(CHUNK):
            settled.total[i] += settled.odds[c, i]


# Coefficients are read before the loops over pixels that use them: only then do these become vector code.


@njit(cache=True)
def _move(x, centre, away):
    """x − centre of each pixel, into columns."""
    for a in range(x.shape[1]):
        middle = centre[a]
        for i in range(len(x)):
            away[a, i] = x[i, a] - middle


@njit(cache=True, fastmath={"contract"})
def _measure_back(away, factor, distance):
    """Squared lengths of R⁻ᵀ times columns, which are spoilt."""
    n_features = len(away)
    for i in range(CHUNK):
        distance[i] = 0.0
    for a in range(n_features):
        scale = 1.0 / factor[a, a]
        for i in range(CHUNK):
            away[a, i] *= scale
            distance[i] += away[a, i] ** 2
        for b in range(a + 1, n_features):
            weight = factor[a, b]
            for i in range(CHUNK):
                away[b, i] -= weight * away[a, i]


@njit(cache=True, fastmath={"contract"})
def _whiten(away, whiten, white):
    """U times columns."""
    n_features = len(away)
    for a in range(n_features):
        for i in range(CHUNK):
            white[a, i] = 0.0
        for b in range(a, n_features):
            weight = whiten[a, b]
            for i in range(CHUNK):
                white[a, i] += weight * away[b, i]


@njit(cache=True, fastmath={"contract"})
def _measure(white, centre, distance):
    """Squared distances of columns from a centre."""
    for i in range(CHUNK):
        distance[i] = 0.0
    for a in range(len(white)):
        middle = centre[a]
        for i in range(CHUNK):
            distance[i] += (white[a, i] - middle) ** 2


@njit(cache=True, fastmath={"contract"})
def _normalise(odds, best):
    """Log odds to odds against the best of each pixel.

    eᵗ = 2ᵏ eʳ with a whole k and |r| ≤ ln(2)/2: eʳ by its series, to 1e-14, and k by what ROUND leaves in the lowest
    bits, from where it moves to the exponent.
    """
    for i in range(CHUNK):
        best[i] = -np.inf
    raised, scale = np.empty(CHUNK), np.empty(CHUNK)
    bits, exponent = raised.view(np.int64), scale.view(np.int64)
    for row in odds:
        for i in range(CHUNK):
            best[i] = row[i] if row[i] > best[i] else best[i]
    for row in odds:
        for i in range(CHUNK):
            # Where nothing is open to a pixel, t is no number.
            t = row[i] - best[i]
            row[i] = t if t > LEAST else LEAST
            raised[i] = row[i] * LOG2_E + ROUND
            exponent[i] = (bits[i] + 1023) << 52 if t > -np.inf else 0
        for i in range(CHUNK):
            r = row[i] - (raised[i] - ROUND) * LN_2
            series = SERIES[0]
            for coefficient in SERIES[1:]:
                series = series * r + coefficient
            row[i] = series * scale[i]
