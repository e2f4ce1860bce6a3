"""The block scan: pixels of one block choose one after the other, and may open and close components.

Components with pixels outside the block ("explicit") have drawn weights, means and covariances and cannot vanish.
Components that live in the block alone ("loose") have their mean integrated out, and classes all of whose components
are loose have mean and covariance integrated out too. Each pixel leaves its component and chooses anew with its full
conditional, so the scan is an exact Gibbs step.
"""

import math

import numpy as np
from numba import njit

LOG_2PI = math.log(2.0 * math.pi)


@njit(inline="always")
def _log_student(x, mean, factor, inflation, degrees):
    """Log density at x of one pixel in a class with Ψ = factor·factorᵀ, ν = degrees, its place blurred by inflation."""
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
        log_det += math.log(factor[a, a])
    half = 0.5 * (degrees + 1.0)
    return (
        math.lgamma(half)
        - math.lgamma(half - 0.5 * n_features)
        - 0.5 * n_features * math.log(math.pi * inflation)
        - log_det
        - half * math.log1p(distance / inflation)
    )


@njit(inline="always")
def _log_normal(white, centre, variance, log_det_whiten):
    """Log density of N(x; μ, variance·Σ) where pixel and μ are already whitened by Σ."""
    distance = 0.0
    for a in range(len(white)):
        distance += (white[a] - centre[a]) ** 2
    return log_det_whiten - 0.5 * len(white) * (LOG_2PI + math.log(variance)) - 0.5 * distance / variance


@njit(inline="always")
def _pick(score, n, u):
    """The index in [0, n) that u picks with odds exp(score)."""
    best = -np.inf
    for j in range(n):
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


@njit(cache=True)
def _update_class(k, loose, prior, posterior):
    """Recompute the posterior of a loose class from its components."""
    loose_class, loose_n, loose_sum, loose_outer = loose
    mean0, scale0, kappa0, spread, degrees0 = prior
    mean, factor, kappa, degrees = posterior
    total = kappa0 * mean0
    outer = scale0 + kappa0 * np.outer(mean0, mean0)
    kappa[k] = kappa0
    degrees[k] = degrees0
    for j in range(len(loose_n)):
        if loose_n[j] > 0 and loose_class[j] == k:
            weight = loose_n[j] / (1.0 + spread * loose_n[j])
            kappa[k] += weight
            degrees[k] += loose_n[j]
            centre = loose_sum[j] / loose_n[j]
            total += weight * centre
            outer += loose_outer[j] + (weight - loose_n[j]) * np.outer(centre, centre)
    mean[k] = total / kappa[k]
    factor[k] = np.linalg.cholesky(outer - np.outer(total, total) / kappa[k])


@njit(cache=True)
def _change(i, j, sign, x, white, loose, white_sum, is_loose_class, prior, posterior):
    """Let pixel i join (+1) or leave (-1) loose component j."""
    loose_class, loose_n, loose_sum, loose_outer = loose
    k = loose_class[j]
    loose_n[j] += sign
    if is_loose_class[k]:
        loose_sum[j] += sign * x[i]
        loose_outer[j] += sign * np.outer(x[i], x[i])
        if loose_n[j] == 0:
            # What rounding leaves behind must not reach the next component in this place.
            loose_sum[j] = 0.0
            loose_outer[j] = 0.0
        _update_class(k, loose, prior, posterior)
    else:
        white_sum[j] += sign * white[i, k]
        if loose_n[j] == 0:
            white_sum[j] = 0.0


@njit(cache=True)
def _whiten_all(x, centre, whiten):
    """(pixel, class, feature) whitened pixels."""
    n_classes, n_features = centre.shape
    white = np.zeros((len(x), n_classes, n_features))
    for i in range(len(x)):
        for k in range(n_classes):
            for a in range(n_features):
                for b in range(a, n_features):
                    white[i, k, a] += whiten[k, a, b] * (x[i, b] - centre[k, b])
    return white


@njit(nogil=True, cache=True)
def scan_block(x, known, uniform, label, explicit, loose_class, process, prior):
    """The component of each pixel of a block after the scan, and the class of each loose component.

    x (n, d) float64; known (n,) class index or -1; label (n,) component before the scan: explicit ones first, then
    loose ones, whose classes are `loose_class`, with -1 for room to open more. explicit holds (class_of, log_weight,
    whitened_mean) per explicit component and (centre, whiten, log_det_whiten) per class, drawn; process (log π_*, α, γ,
    whether a class has one component only); prior (μ0, Ψ0, κ0, 1/κ1, m). A class index past the drawn ones is new.
    """
    class_of, log_weight, whitened_mean, centre, whiten, log_det_whiten = explicit
    log_tail, alpha, gamma, is_single = process
    spread = prior[3]
    n_pixels, n_features = x.shape
    n_explicit, n_drawn, n_room = len(class_of), len(centre), len(loose_class)
    n_slots = n_drawn + n_room + 1

    loose = (
        loose_class.copy(),
        np.zeros(n_room),
        np.zeros((n_room, n_features)),
        np.zeros((n_room, n_features, n_features)),
    )
    loose_class, loose_n, loose_sum, _ = loose
    white_sum = np.zeros((n_room, n_features))
    posterior = (
        np.zeros((n_slots, n_features)),
        np.zeros((n_slots, n_features, n_features)),
        np.zeros(n_slots),
        np.zeros(n_slots),
    )
    mean, factor, kappa, degrees = posterior

    members = np.zeros(n_slots, np.int64)
    is_loose_class = np.ones(n_slots, np.bool_)
    for c in range(n_explicit):
        members[class_of[c]] += 1
        is_loose_class[class_of[c]] = False
    n_loose = 0
    for j in range(n_room):
        if loose_class[j] >= 0:
            members[loose_class[j]] += 1
            n_loose += 1
    for k in range(n_slots):
        if is_loose_class[k]:
            _update_class(k, loose, prior, posterior)

    white = _whiten_all(x, centre, whiten)
    n_tail = 0
    for i in range(n_pixels):
        if label[i] >= n_explicit:
            _change(i, label[i] - n_explicit, 1, x, white, loose, white_sum, is_loose_class, prior, posterior)
            n_tail += 1

    label = label.copy()
    zero = np.zeros(n_features)
    n_classes = n_drawn
    score = np.empty(n_explicit + n_room + n_slots)
    for i in range(n_pixels):
        if label[i] >= n_explicit:
            j = label[i] - n_explicit
            _change(i, j, -1, x, white, loose, white_sum, is_loose_class, prior, posterior)
            n_tail -= 1
            if loose_n[j] == 0:
                members[loose_class[j]] -= 1
                loose_class[j] = -1
                n_loose -= 1

        for c in range(n_explicit):
            k = class_of[c]
            score[c] = -np.inf
            if known[i] < 0 or known[i] == k:
                score[c] = log_weight[c] + _log_normal(white[i, k], whitened_mean[c], 1.0, log_det_whiten[k])

        share = log_tail - math.log(alpha + n_tail)
        free = -1
        for j in range(n_room):
            k = loose_class[j]
            n = loose_n[j]
            score[n_explicit + j] = -np.inf
            if k < 0:
                free = j
                continue
            if known[i] >= 0 and known[i] != k:
                continue
            shrink = 1.0 + spread * n
            if is_loose_class[k]:
                blur = 1.0 + spread / shrink + 1.0 / (shrink * shrink * kappa[k])
                place = (mean[k] + spread * loose_sum[j]) / shrink
                density = _log_student(x[i], place, factor[k], blur, degrees[k])
            else:
                place = white_sum[j] * (spread / shrink)
                density = _log_normal(white[i, k], place, 1.0 + spread / shrink, log_det_whiten[k])
            score[n_explicit + j] = share + math.log(n) + density

        # Opening a component: of a class there is, or of a new one.
        opening = share + math.log(alpha)
        if not is_single:
            opening -= math.log(n_explicit + n_loose + gamma)
        for k in range(n_classes + 1):
            at = n_explicit + n_room + k
            score[at] = -np.inf
            is_new = k == n_classes if known[i] < 0 else k == known[i] and members[k] == 0
            if free < 0 or (known[i] >= 0 and known[i] != k) or (members[k] == 0 and not is_new):
                continue
            if is_single and not is_new:
                continue
            if is_loose_class[k]:
                density = _log_student(x[i], mean[k], factor[k], 1.0 + spread + 1.0 / kappa[k], degrees[k])
            else:
                density = _log_normal(white[i, k], zero, 1.0 + spread, log_det_whiten[k])
            odds = 0.0 if is_single else math.log(gamma if is_new else members[k])
            score[at] = opening + odds + density

        chosen = _pick(score, n_explicit + n_room + n_classes + 1, uniform[i])
        if chosen >= n_explicit + n_room:
            k = chosen - n_explicit - n_room
            chosen = n_explicit + free
            loose_class[free] = k
            members[k] += 1
            n_loose += 1
            if k == n_classes:
                n_classes += 1
        label[i] = chosen
        if chosen >= n_explicit:
            _change(i, chosen - n_explicit, 1, x, white, loose, white_sum, is_loose_class, prior, posterior)
            n_tail += 1
    return label, loose_class
