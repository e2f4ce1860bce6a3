"""The block scan: pixels of one block choose one after the other, and may open and close components.

Components with pixels outside the block ("explicit") have drawn weights, means and covariances and cannot vanish.
Components that live in the block alone ("loose") have their mean integrated out, and classes all of whose components
are loose have mean and covariance integrated out too. Each pixel leaves its component and chooses anew with its full
conditional, so the scan is an exact Gibbs step.

What does not change during the scan is computed beforehand (`settled`). Where there is nothing loose, which is the
rule, the scan itself only adds and compares.
"""

import math

import numpy as np
from numba import njit

from gibbsite.kernels.loose import Vague, change_class, clear_class, log_student, start_classes, start_loose
from gibbsite.kernels.settled import CHUNK, LOG_2PI, Drawn, Process, make_room, settle


@njit(nogil=True, cache=True)
def scan_block(x, labels, uniform, label, explicit, loose_class, process, prior):
    """The component of each pixel of a block after the scan, and the class of each loose component.

    x (n, d) float64; labels: known (n,) class index or -1, and by how much log odds of other classes are lower;
    label (n,) component before the scan: explicit ones first, then loose ones, whose classes are `loose_class`, with -1
    for room to open more. explicit holds (class_of, log_weight, whitened_mean) per explicit component and (centre,
    whiten, log_det_whiten) per class, drawn; process (log π_*, α, γ, whether a class has one component only); prior
    (μ0, Ψ0, κ0, 1/κ1, m). A class index past the drawn ones is new.
    """
    (known, trust), drawn, process = labels, Drawn(*explicit), Process(*process)
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
    top, n_loose, n_tail = 0, 0, 0
    for j in range(len(loose_class)):
        if loose.class_of[j] >= 0:
            top, n_loose = j + 1, n_loose + 1
    for i in range(n_pixels):
        n_tail += label[i] >= n_explicit
    settled = make_room(n_explicit, n_classes, n_features)
    score = np.empty(2 * len(loose_class) + n_classes + 1)
    for i in range(n_pixels):
        at = i % CHUNK
        if at == 0:
            settle(x[i : i + CHUNK], (known[i : i + CHUNK], trust), drawn, process, vague, classes, settled)
        if label[i] >= n_explicit:
            n_loose -= _leave(x[i], label[i] - n_explicit, drawn, loose, classes, vague)
            n_tail -= 1

        free = 0
        while free < len(loose_class) and loose.class_of[free] >= 0:
            free += 1
        share = 1.0 / (process.alpha + n_tail)
        opening = share * process.alpha if free < len(loose_class) else 0.0
        opening /= 1.0 if process.is_single else n_explicit + n_loose + process.gamma
        choices = score[: top + n_classes + 1]
        is_settled = settled.best[at] > -np.inf
        tail = process.log_tail - (settled.best[at] if is_settled else 0.0)
        _score_loose(x[i], (known[i], trust), at, tail, drawn, loose, classes, vague.spread, settled, choices[:top])
        _score_openings(x[i], (known[i], trust), tail, loose, classes, vague.spread, choices[top:])
        scale = _to_odds(choices, is_settled)
        for j in range(top):
            choices[j] *= share
        _seat(at, opening, scale, process, classes, settled, choices[top:])

        chosen = _pick(at, settled, scale, n_explicit, choices, uniform[i])
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
    for a in range(len(x)):
        loose.total[j, a] = 0.0
        loose.white_total[j, a] = 0.0
    if classes.members[k] == 0:
        clear_class(k, classes, vague)
    return 1


@njit(inline="always")
def _distrust(labels, k):
    """By how much a label lowers the log odds of class k; labels: a known class or -1, and the trust in it."""
    known, trust = labels
    return trust if known >= 0 and known != k else 0.0


@njit(inline="always")
def _score_loose(x, labels, at, tail, drawn, loose, classes, spread, settled, score):
    """Log odds of the loose components; tail: log π_* against the best of what is settled."""
    n_features = len(x)
    for j in range(len(score)):
        k = loose.class_of[j]
        score[j] = -np.inf
        away = _distrust(labels, k)
        if k < 0 or away == np.inf:
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
        score[j] = tail + math.log(loose.size[j]) + density - away


@njit(inline="always")
def _score_openings(x, labels, tail, loose, classes, spread, score):
    """Log odds of a component in each class whose parameters are integrated out, -inf for the others and a new one."""
    newest = len(score) - 1
    score[newest] = -np.inf
    for k in range(newest):
        score[k] = -np.inf
        # A known class may be without components; its own pixels may open one.
        away = _distrust(labels, k)
        is_open = k == labels[0] or (classes.members[k] > 0 and away < np.inf)
        if is_open and not classes.is_drawn[k]:
            score[k] = tail + log_student(x, -1, k, loose, classes, spread) - away


@njit(inline="always")
def _to_odds(score, is_settled):
    """Log odds to odds against the best of all; that of what is settled, if anything is, against it."""
    top = 0.0 if is_settled else -np.inf
    for j in range(len(score)):
        top = max(top, score[j])
    for j in range(len(score)):
        score[j] = math.exp(score[j] - top) if score[j] > -np.inf else 0.0
    return math.exp(-top) if top > 0.0 else 1.0


@njit(inline="always")
def _seat(at, opening, scale, process, classes, settled, odds):
    """Let every class have as many chances that a component opens in it as it has components, and a new one γ."""
    newest, n_explicit = len(odds) - 1, len(settled.odds) - len(settled.white) - 1
    odds[newest] = opening * (1.0 if process.is_single else process.gamma) * scale * settled.odds[-1, at]
    for k in range(newest):
        if classes.is_drawn[k]:
            odds[k] = scale * settled.odds[n_explicit + k, at]
        if process.is_single:
            odds[k] *= opening if classes.members[k] == 0 else 0.0
        else:
            odds[k] *= opening * (classes.members[k] if classes.members[k] > 0 else process.gamma)


@njit(inline="always")
def _pick(at, settled, scale, n_explicit, odds, u):
    """What u picks: an explicit component, or after those one of the other choices, with these odds."""
    explicit = scale * settled.total[at]
    total = explicit
    for j in range(len(odds)):
        total += odds[j]
    goal = u * total
    chosen, running = 0, explicit
    if goal < explicit:
        goal, running = goal / scale, 0.0
        for c in range(n_explicit):
            if settled.odds[c, at] > 0.0:
                running += settled.odds[c, at]
                chosen = c
                if running > goal:
                    break
        return chosen
    for j in range(len(odds)):
        if odds[j] > 0.0:
            running += odds[j]
            chosen = n_explicit + j
            if running > goal:
                break
    return chosen
