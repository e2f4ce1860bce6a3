"""Loose components and classes: those that live in the block alone, with their parameters integrated out.

A class all of whose components are loose is known by μ̄_k, κ_k, ν_k and an upper triangular R_k with R_kᵀR_k = Ψ_k. One
pixel more or less changes Ψ_k by the outer product of its distance from where it was expected, so that R_k is kept up
to date in O(d²).
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

LOG_PI = math.log(math.pi)


class Vague(NamedTuple):
    """The prior of a class."""

    mean: np.ndarray
    factor: np.ndarray
    """R with RᵀR = Ψ0."""
    kappa: float
    spread: float
    """1/κ1."""
    degrees: float


class Loose(NamedTuple):
    """Components that live in the block alone."""

    class_of: np.ndarray
    """-1 for room to open one."""
    size: np.ndarray
    """Pixels."""
    total: np.ndarray
    """Σx."""
    white_total: np.ndarray
    """Σ U_k (x − μ_k), where the class was drawn."""


class Classes(NamedTuple):
    """Posteriors of classes all of whose components are loose, and the size of all classes."""

    members: np.ndarray
    """Components, explicit and loose."""
    is_drawn: np.ndarray
    """Whether there are explicit ones among them: the class has drawn parameters, and no use for what follows."""
    mean: np.ndarray
    factor: np.ndarray
    kappa: np.ndarray
    degrees: np.ndarray
    log_det: np.ndarray
    """log |R_k|."""
    constant: np.ndarray
    """What gamma functions and π contribute to the Student t."""


@njit(cache=True)
def start_loose(class_of, n_features):
    """Loose components of these classes, still without pixels."""
    n_room = len(class_of)
    return Loose(class_of.copy(), np.zeros(n_room), np.zeros((n_room, n_features)), np.zeros((n_room, n_features)))


@njit(cache=True)
def start_classes(explicit_class, loose_class, n_slots, vague):
    """Classes with these components, still without pixels."""
    n_features = len(vague.mean)
    members, is_drawn = np.zeros(n_slots, np.int64), np.zeros(n_slots, np.bool_)
    for k in explicit_class:
        members[k] += 1
        is_drawn[k] = True
    for k in loose_class:
        if k >= 0:
            members[k] += 1
    mean, factor = np.zeros((n_slots, n_features)), np.zeros((n_slots, n_features, n_features))
    kappa, degrees, log_det, constant = np.zeros((4, n_slots))
    return Classes(members, is_drawn, mean, factor, kappa, degrees, log_det, constant)


@njit(cache=True)
def clear_class(k, classes, vague):
    """Let class k be a new one."""
    # Loops over features, here and below: assigning whole rows takes numba seconds to compile.
    for a in range(len(vague.mean)):
        classes.mean[k, a] = vague.mean[a]
        for b in range(len(vague.mean)):
            classes.factor[k, a, b] = vague.factor[a, b]
    classes.kappa[k], classes.degrees[k] = vague.kappa, vague.degrees
    _note_constants(k, classes)


@njit(inline="always")
def _note_constants(k, classes):
    n_features = classes.mean.shape[1]
    classes.log_det[k] = 0.0
    for a in range(n_features):
        classes.log_det[k] += math.log(classes.factor[k, a, a])
    half = 0.5 * (classes.degrees[k] + 1.0)
    classes.constant[k] = math.lgamma(half) - math.lgamma(half - 0.5 * n_features) - 0.5 * n_features * LOG_PI


@njit(cache=True)
def log_peak_of_new(vague, blur):
    """Log density at the mean of a new class; blur as `_distance` has it."""
    n_features = len(vague.mean)
    half = 0.5 * (vague.degrees + 1.0)
    peak = math.lgamma(half) - math.lgamma(half - 0.5 * n_features) - 0.5 * n_features * (LOG_PI + math.log(blur))
    for a in range(n_features):
        peak -= math.log(vague.factor[a, a])
    return peak


@njit(cache=True)
def log_student(x, j, k, loose, classes, spread):
    """Log density of pixel x in loose component j (-1: one yet to open) of class k."""
    away, blur = _distance(x, j, k, loose, classes, spread)
    n_features, distance = len(x), 0.0
    for a in range(n_features):
        z = away[a] / classes.factor[k, a, a]
        distance += z * z
        for b in range(a + 1, n_features):
            away[b] -= z * classes.factor[k, a, b]
    log_scale = classes.log_det[k] + 0.5 * n_features * math.log(blur)
    return classes.constant[k] - log_scale - 0.5 * (classes.degrees[k] + 1.0) * math.log1p(distance / blur)


@njit(inline="always")
def _distance(x, j, k, loose, classes, spread):
    """Pixel x less where class k expects it in component j, and how many Σ_k blur that place."""
    n_features = len(x)
    away = np.empty(n_features)
    if j < 0:
        for a in range(n_features):
            away[a] = x[a] - classes.mean[k, a]
        return away, 1.0 + spread + 1.0 / classes.kappa[k]
    shrink = 1.0 + spread * loose.size[j]
    for a in range(n_features):
        away[a] = x[a] - (classes.mean[k, a] + spread * loose.total[j, a]) / shrink
    return away, 1.0 + spread / shrink + 1.0 / (shrink * shrink * classes.kappa[k])


@njit(cache=True)
def change_class(x, j, sign, loose, classes, spread):
    """Let pixel x join (+1) or leave (-1) component j of a loose class."""
    k = loose.class_of[j]
    if sign < 0:
        _change_means(x, j, k, sign, loose, classes, spread)
    away, blur = _distance(x, j, k, loose, classes, spread)
    if sign > 0:
        _change_means(x, j, k, sign, loose, classes, spread)
    for a in range(len(away)):
        away[a] /= math.sqrt(blur)
    _change_factor(classes.factor[k], away, sign)
    classes.degrees[k] += sign
    _note_constants(k, classes)


@njit(inline="always")
def _change_means(x, j, k, sign, loose, classes, spread):
    """Size and Σx of the component, κ_k and μ̄_k of its class."""
    before, after = 1.0 + spread * loose.size[j], 1.0 + spread * (loose.size[j] + sign)
    kappa = classes.kappa[k] + (loose.size[j] + sign) / after - loose.size[j] / before
    for a in range(len(x)):
        joined = loose.total[j, a] + sign * x[a]
        moved = classes.kappa[k] * classes.mean[k, a] + joined / after - loose.total[j, a] / before
        classes.mean[k, a] = moved / kappa
        loose.total[j, a] = joined
    classes.kappa[k] = kappa
    loose.size[j] += sign


@njit(inline="always")
def _change_factor(factor, away, sign):
    """Make RᵀR + sign·away awayᵀ of R, by one rotation per feature; `away` is spoilt."""
    n_features = len(away)
    for a in range(n_features):
        old = factor[a, a]
        # What leaves was added before, so this is positive but for rounding.
        new = math.sqrt(max(old * old + sign * away[a] * away[a], 1e-12 * old * old))
        cosine, sine = new / old, away[a] / old
        factor[a, a] = new
        for b in range(a + 1, n_features):
            factor[a, b] = (factor[a, b] + sign * sine * away[b]) / cosine
            away[b] = cosine * away[b] - sine * factor[a, b]
