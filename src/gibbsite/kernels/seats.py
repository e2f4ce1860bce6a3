"""Components choose their classes, one after the other, from sums alone.

A class is the sums of its components, and what a component makes of a class follows from them by one of three rules
(`gibbsite.class_rules` says what they mean).
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from gibbsite.kernels.matrices import factorise, invert

LOG_PI = math.log(math.pi)
EVIDENCE, PREDICTIVE, REACH = 0, 1, 2


class Given(NamedTuple):
    """What does not change while components choose."""

    rule: int
    reach_weight: float
    mean: np.ndarray
    """μ0."""
    scale: np.ndarray
    """Ψ0."""
    kappa0: float
    spread: float
    """1/κ1."""
    degrees: float
    """m."""
    gamma: float
    log_evidence: float
    """What Ψ0 and m contribute to the evidence of any class."""
    abroad: np.ndarray
    """Covariance of where new classes lie."""


class Guests(NamedTuple):
    """The components."""

    n: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray
    weight: np.ndarray
    """w_l: of the mean in the class's sums."""
    class_of: np.ndarray
    """-1 for a component that stands alone."""


class Tables(NamedTuple):
    """The classes, with room for as many new ones as there are components."""

    members: np.ndarray
    """Components."""
    n: np.ndarray
    weight: np.ndarray
    """Σ w_l."""
    total: np.ndarray
    """Σ w_l x̄_l."""
    outer: np.ndarray
    """Σ (S_l + w_l x̄_l x̄_lᵀ)."""
    within: np.ndarray
    """Σ S_l."""
    squares: np.ndarray
    """Σ n_l²."""
    is_stale: np.ndarray
    """Whether what follows has to be computed anew."""
    middle: np.ndarray
    """Of the Student t."""
    inverse: np.ndarray
    """Of its scale matrix times its degrees."""
    half: np.ndarray
    """Minus its power."""
    constant: np.ndarray
    """Its log density at the middle; for the rule `evidence` the log evidence of the class."""


@njit(nogil=True, cache=True)
def take_seats(class_of, given, guests, tables):
    """Let components with pixels join their class, if they have one."""
    for c in range(len(class_of)):
        if class_of[c] >= 0 and guests.n[c] > 0.0:
            change_seat(c, class_of[c], 1.0, given, guests, tables)


@njit(nogil=True, cache=True)
def choose_seats(order, uniform, given, guests, tables, n_classes):
    """Let components draw their class anew, one after the other; the number of classes after that."""
    for step in range(len(order)):
        c = order[step]
        if guests.class_of[c] >= 0:
            change_seat(c, guests.class_of[c], -1.0, given, guests, tables)
        k = _pick(score_seats(c, n_classes, given, guests, tables), uniform[step])
        change_seat(c, k, 1.0, given, guests, tables)
        n_classes = max(n_classes, k + 1)
    return n_classes


@njit(nogil=True, cache=True)
def part_seats(order, chosen, uniform, given, guests, tables):
    """Let components join class 0 or 1, one after the other: the chosen one, or where that is -1 one they draw.

    Returns the log-probability that they would draw just so.
    """
    log_q = 0.0
    for step in range(len(order)):
        c = order[step]
        score = score_seats(c, 2, given, guests, tables)
        log_odds = score[1] - score[0]
        k = chosen[c]
        if k < 0:
            k = 1 if uniform[step] * (1.0 + math.exp(-log_odds)) < 1.0 else 0
        against = -log_odds if k == 1 else log_odds
        # log(1 + e^x), which e^x alone would overflow.
        log_q -= max(against, 0.0) + math.log1p(math.exp(-abs(against)))
        change_seat(c, k, 1.0, given, guests, tables)
    return log_q


@njit(nogil=True, cache=True)
def score_seats(c, n_classes, given, guests, tables):
    """(n_classes + 1,) log odds of each class, the last one new, for a component that stands alone."""
    score = np.empty(n_classes + 1)
    for k in range(n_classes + 1):
        members = given.gamma if k == n_classes else tables.members[k]
        score[k] = -np.inf
        if members > 0.0:
            score[k] = math.log(members) + log_fit(c, k, given, guests, tables)
    return score


@njit(nogil=True, cache=True)
def change_seat(c, k, sign, given, guests, tables):
    """Let a component join (+1) or leave (-1) a class."""
    guests.class_of[c] = k if sign > 0 else -1
    tables.members[k] += sign
    tables.is_stale[k] = True
    # What rounding leaves behind in an emptied class must not reach the next one that opens there.
    keep = 1.0 if tables.members[k] > 0.5 else 0.0
    weight = sign * guests.weight[c]
    tables.n[k] = keep * (tables.n[k] + sign * guests.n[c])
    tables.weight[k] = keep * (tables.weight[k] + weight)
    tables.squares[k] = keep * (tables.squares[k] + sign * guests.n[c] ** 2)
    for a in range(len(given.mean)):
        pull = weight * guests.mean[c, a]
        tables.total[k, a] = keep * (tables.total[k, a] + pull)
        for b in range(len(given.mean)):
            scatter = sign * guests.scatter[c, a, b]
            tables.within[k, a, b] = keep * (tables.within[k, a, b] + scatter)
            tables.outer[k, a, b] = keep * (tables.outer[k, a, b] + scatter + pull * guests.mean[c, b])


@njit(nogil=True, cache=True)
def log_fit(c, k, given, guests, tables):
    """Log density of a component's pixels in a class, the component's own factor of the evidence left out."""
    n_features = len(given.mean)
    if given.rule == EVIDENCE:
        if tables.is_stale[k]:
            tables.constant[k] = _log_evidence(-1, k, given, guests, tables)
            tables.is_stale[k] = False
        return _log_evidence(c, k, given, guests, tables) - tables.constant[k]
    if tables.is_stale[k]:
        _set_student(k, given, tables)
    distance = 0.0
    for a in range(n_features):
        away = guests.mean[c, a] - tables.middle[k, a]
        for b in range(n_features):
            spread = guests.scatter[c, a, b] / guests.n[c] + away * (guests.mean[c, b] - tables.middle[k, b])
            distance += tables.inverse[k, a, b] * spread
    return guests.n[c] * (tables.constant[k] - tables.half[k] * math.log1p(distance))


@njit(cache=True)
def _log_evidence(c, k, given, guests, tables):
    """log M of class k with component c (-1: none) in it, but for the components' shrinkage, which cancels."""
    n_features = len(given.mean)
    n, kappa = tables.n[k], given.kappa0 + tables.weight[k]
    total, scale = np.empty(n_features), np.empty((n_features, n_features))
    _add_prior(k, given, tables, total, scale)
    if c >= 0:
        n, kappa = n + guests.n[c], kappa + guests.weight[c]
        for a in range(n_features):
            pull = guests.weight[c] * guests.mean[c, a]
            total[a] += pull
            for b in range(n_features):
                scale[a, b] += guests.scatter[c, a, b] + pull * guests.mean[c, b]
    _centre(total, kappa, 1.0, scale)
    degrees = given.degrees + n
    log_gamma = 0.0
    for a in range(n_features):
        log_gamma += math.lgamma(0.5 * (degrees - a))
    return (
        -0.5 * n_features * (n * LOG_PI + math.log(kappa / given.kappa0))
        - 0.5 * degrees * factorise(scale)
        + log_gamma
        + given.log_evidence
    )


@njit(cache=True)
def _set_student(k, given, tables):
    """The Student t of a class, with ν − d + 1 degrees of freedom and scale matrix Ψ/(ν − d + 1)."""
    n_features, degrees = len(given.mean), given.degrees + tables.n[k]
    total, scale = np.empty(n_features), np.empty((n_features, n_features))
    if tables.n[k] == 0.0:
        for a in range(n_features):
            tables.middle[k, a] = given.mean[a]
            for b in range(n_features):
                place = (degrees - n_features + 1.0) * given.abroad[a, b]
                scale[a, b] = (1.0 + given.spread) * given.scale[a, b] + place
    elif given.rule == PREDICTIVE:
        kappa = given.kappa0 + tables.weight[k]
        _add_prior(k, given, tables, total, scale)
        _centre(total, kappa, 1.0 + given.spread + 1.0 / kappa, scale)
        for a in range(n_features):
            tables.middle[k, a] = total[a] / kappa
    else:
        free = degrees - n_features + 1.0
        n_effective = tables.n[k] ** 2 / tables.squares[k]
        for a in range(n_features):
            tables.middle[k, a] = tables.total[k, a] / tables.n[k]
        for a in range(n_features):
            for b in range(n_features):
                covariance = (given.scale[a, b] + tables.within[k, a, b]) / free
                between = (tables.outer[k, a, b] - tables.within[k, a, b]) / tables.n[k]
                between -= tables.middle[k, a] * tables.middle[k, b]
                scatter = given.reach_weight * given.spread * covariance + n_effective * between
                scale[a, b] = free * (covariance + scatter / (given.reach_weight + n_effective))
    half = 0.5 * (degrees + 1.0)
    log_gamma = math.lgamma(half) - math.lgamma(half - 0.5 * n_features)
    log_det = factorise(scale)
    invert(scale, tables.inverse[k])
    tables.half[k] = half
    tables.constant[k] = log_gamma - 0.5 * n_features * LOG_PI - 0.5 * log_det
    tables.is_stale[k] = False


@njit(cache=True)
def _add_prior(k, given, tables, total, scale):
    """Set κ0 μ0 + Σ w_l x̄_l, and Ψ0 + κ0 μ0 μ0ᵀ + Σ (S_l + w_l x̄_l x̄_lᵀ)."""
    for a in range(len(total)):
        total[a] = given.kappa0 * given.mean[a] + tables.total[k, a]
        for b in range(len(total)):
            scale[a, b] = given.scale[a, b] + given.kappa0 * given.mean[a] * given.mean[b] + tables.outer[k, a, b]


@njit(cache=True)
def _centre(total, kappa, factor, scale):
    """Take the outer product of the mean from the scale, and multiply."""
    for a in range(len(total)):
        for b in range(len(total)):
            scale[a, b] = factor * (scale[a, b] - total[a] * total[b] / kappa)


@njit(cache=True)
def _pick(score, u):
    """The index that u picks with odds exp(score)."""
    best, total = -np.inf, 0.0
    for k in range(len(score)):
        best = max(best, score[k])
    for k in range(len(score)):
        total += math.exp(score[k] - best)
    goal, running, chosen = u * total, 0.0, 0
    for k in range(len(score)):
        odds = math.exp(score[k] - best)
        running += odds
        if odds > 0.0:
            chosen = k
            if running > goal:
                break
    return chosen
