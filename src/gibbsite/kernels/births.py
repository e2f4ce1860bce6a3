"""The tail of the Dirichlet process: pixels of one block may leave for components that do not exist yet.

A Gibbs scan, one pixel after the other, given the drawn components. The tail is empty when it begins. Components that
open in an existing class use that class's drawn mean and covariance; those that open a class of their own have both
integrated out (a Student t that sharpens as pixels join).
"""

import math

import numpy as np
from numba import njit

MAX_TAIL = 128
"""Components one scan may open; the block is small, so the bound is never felt."""

LOG_2PI = math.log(2.0 * math.pi)


@njit(inline="always")
def _log_student(x, mean, factor, inflation, degrees):
    """Log density at x of the pixel predictive of a class with Ψ = factor·factorᵀ and ν = degrees."""
    n_features = len(x)
    z = np.empty(n_features)
    distance = 0.0
    log_det = 0.0
    for a in range(n_features):
        value = x[a] - mean[a]
        for b in range(a):
            value -= factor[a, b] * z[b]
        z[a] = value / factor[a, a]
        distance += z[a] * z[a]
        log_det += 2.0 * math.log(factor[a, a])
    half = 0.5 * (degrees + 1.0)
    return (
        math.lgamma(half)
        - math.lgamma(half - 0.5 * n_features)
        - 0.5 * n_features * math.log(math.pi * inflation)
        - 0.5 * log_det
        - half * math.log1p(distance / inflation)
    )


@njit(inline="always")
def _log_normal(y, centre, variance, log_det_whiten):
    """Log density of N(x; μ, variance·Σ) where y and centre are already whitened by Σ."""
    distance = 0.0
    for a in range(len(y)):
        distance += (y[a] - centre[a]) ** 2
    return log_det_whiten - 0.5 * len(y) * (LOG_2PI + math.log(variance)) - 0.5 * distance / variance


@njit(inline="always")
def _update_class(q, tail, prior, posterior):
    """Recompute the posterior of new class q from its tail components."""
    tail_class, tail_n, tail_sum, tail_outer = tail
    mean0, scale0, kappa0, spread, degrees0 = prior
    mean, factor, kappa, degrees = posterior
    n_features = len(mean0)
    total = kappa0 * mean0
    outer = scale0 + kappa0 * np.outer(mean0, mean0)
    kappa[q] = kappa0
    degrees[q] = degrees0
    for j in range(len(tail_n)):
        if tail_n[j] > 0 and tail_class[j] == q:
            weight = tail_n[j] / (1.0 + spread * tail_n[j])
            kappa[q] += weight
            degrees[q] += tail_n[j]
            centre = tail_sum[j] / tail_n[j]
            total += weight * centre
            outer += tail_outer[j] + (weight - tail_n[j]) * np.outer(centre, centre)
    for a in range(n_features):
        mean[q, a] = total[a] / kappa[q]
    outer -= np.outer(total, total) / kappa[q]
    factor[q] = np.linalg.cholesky(outer)


@njit(inline="always")
def _pick(score, n, u):
    """The index in [0, n) that u picks with odds exp(score)."""
    best = score[0]
    for j in range(1, n):
        best = max(best, score[j])
    total = 0.0
    for j in range(n):
        total += math.exp(score[j] - best)
    goal = u * total
    running = 0.0
    chosen = 0
    for j in range(n):
        odds = math.exp(score[j] - best)
        if odds > 0.0:
            running += odds
            chosen = j
            if running > goal:
                break
    return chosen


@njit(nogil=True, cache=True)
def scan_tail(x, known, uniform, components, process, prior):
    """The component of each pixel of a block, and the class of each component the scan opened.

    x (n, d) float64; known (n,) class index or -1; components (class_of, log_weight, whitened mean per component,
    centre, whiten, log_det_whiten per class), all drawn; process (log π_*, α, γ, one_component_per_class);
    prior (μ0, Ψ0, κ0, 1/κ1, m). A label of n_components + j is tail component j; a class of n_classes + q is new.
    """
    class_of, log_weight, whitened_mean, centre, whiten, log_det_whiten = components
    log_tail, alpha, gamma, is_single = process
    mean0, _, kappa0, spread, _ = prior
    n_pixels, n_features = x.shape
    n_components, n_classes = len(class_of), len(centre)

    tail_class = np.full(MAX_TAIL, -1, np.int64)
    tail_n = np.zeros(MAX_TAIL)
    tail_sum = np.zeros((MAX_TAIL, n_features))
    tail_white = np.zeros((MAX_TAIL, n_features))
    tail_outer = np.zeros((MAX_TAIL, n_features, n_features))
    tail = (tail_class, tail_n, tail_sum, tail_outer)
    # Row q of the posterior is new class n_classes + q; the row after the last is a class without pixels.
    rows = MAX_TAIL + n_classes + 1
    posterior = (
        np.zeros((rows, n_features)),
        np.zeros((rows, n_features, n_features)),
        np.zeros(rows),
        np.zeros(rows),
    )
    mean, factor, kappa, degrees = posterior
    members = np.zeros(rows)
    for c in range(n_components):
        members[class_of[c]] += 1.0
    n_all = n_classes
    _update_class(n_all, tail, prior, posterior)

    label = np.empty(n_pixels, np.int64)
    white = np.empty((n_classes, n_features))
    zero = np.zeros(n_features)
    score = np.empty(n_components + MAX_TAIL + rows)
    n_tail = 0
    n_moved = 0.0
    for i in range(n_pixels):
        for k in range(n_classes):
            for a in range(n_features):
                white[k, a] = 0.0
                for b in range(a, n_features):
                    white[k, a] += whiten[k, a, b] * (x[i, b] - centre[k, b])
        for c in range(n_components):
            k = class_of[c]
            score[c] = -np.inf
            if known[i] < 0 or known[i] == k:
                score[c] = log_weight[c] + _log_normal(white[k], whitened_mean[c], 1.0, log_det_whiten[k])
        share = log_tail - math.log(alpha + n_moved)
        for j in range(n_tail):
            k = tail_class[j]
            n = tail_n[j]
            shrink = 1.0 + spread * n
            at = n_components + j
            score[at] = -np.inf
            if known[i] < 0 or known[i] == k:
                if k < n_classes:
                    density = _log_normal(
                        white[k], tail_white[j] * (spread / shrink), 1.0 + spread / shrink, log_det_whiten[k]
                    )
                else:
                    inflation = 1.0 + spread / shrink + 1.0 / (shrink * shrink * kappa[k])
                    density = _log_student(
                        x[i], (mean[k] + spread * tail_sum[j]) / shrink, factor[k], inflation, degrees[k]
                    )
                score[at] = share + math.log(n) + density
        # Opening: a new component of each class there is (old ones, then those the scan opened), then of a new class.
        opening = share + math.log(alpha)
        if not is_single:
            opening -= math.log(n_components + n_tail + gamma)
        n_options = n_all + 1 if n_tail < MAX_TAIL else 0
        for k in range(n_options):
            at = n_components + n_tail + k
            score[at] = -np.inf
            if (known[i] >= 0 and known[i] != k) or (is_single and k < n_all):
                continue
            if k < n_classes:
                density = _log_normal(white[k], zero, 1.0 + spread, log_det_whiten[k])
            else:
                density = _log_student(x[i], mean[k], factor[k], 1.0 + spread + 1.0 / kappa[k], degrees[k])
            prior_odds = 0.0 if is_single else math.log(members[k] if k < n_all else gamma)
            score[at] = opening + prior_odds + density
        chosen = _pick(score, n_components + n_tail + n_options, uniform[i])
        if chosen >= n_components + n_tail:
            k = chosen - n_components - n_tail
            chosen = n_components + n_tail
            tail_class[n_tail] = k
            members[k] += 1.0
            n_tail += 1
            if k == n_all:
                n_all += 1
                _update_class(n_all, tail, prior, posterior)
        label[i] = chosen
        if chosen >= n_components:
            j = chosen - n_components
            k = tail_class[j]
            tail_n[j] += 1.0
            n_moved += 1.0
            tail_sum[j] += x[i]
            tail_outer[j] += np.outer(x[i], x[i])
            if k < n_classes:
                tail_white[j] += white[k]
            else:
                _update_class(k, tail, prior, posterior)
    return label, tail_class[:n_tail].copy()
