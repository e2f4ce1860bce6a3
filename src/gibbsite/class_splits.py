"""Splits and merges of classes: exact moves from the components' sums alone, for the rule `evidence`.

Two components are drawn. If they share a class, each of its other components joins one of the two, one after the other,
by the evidence of the two classes so far (Dahl 2005: sequentially allocated); if not, their classes are to become one,
and the same allocation tells how likely they would have parted just so. The first component's class keeps its name and
its pinned components. The rules `predictive` and `reach` are no conditionals of any posterior that such a move could
keep, so it is not for them.
"""

import numpy as np
from scipy.special import gammaln

from gibbsite import class_rules, kernels, moves, niw, splits, statistics, streams
from gibbsite.niw import Prior
from gibbsite.splits import Tries
from gibbsite.state import Rules, State, name_classes, tidy
from gibbsite.statistics import Floats, Integers, Moments
from gibbsite.streams import Purpose


def is_due(state: State, rules: Rules) -> bool:
    """Whether this sweep proposes splits and merges of classes."""
    return splits.is_due(state, rules) and rules.class_rule == "evidence"


def split_and_merge(state: State, rules: Rules) -> tuple[State, Tries]:
    """The state after a few proposals, and how many were accepted."""
    generator = streams.generator(rules.seed, state.sweep, Purpose.CLASS_SPLITS)
    moments = statistics.moments(state.statistics, rules.step)
    pinned = moves.pinned_class(state.statistics, rules) >= 0
    class_of, n_classes = state.class_of.copy(), len(state.class_id)
    count = dict.fromkeys(Tries.__dataclass_fields__, 0)
    # How many are tried must not depend on what they change: on the number of components, not on that of classes.
    for _ in range(len(class_of) // 2):
        first, second = generator.choice(len(class_of), 2, replace=False)
        is_split = bool(class_of[first] == class_of[second])
        # A pinned component cannot leave its class, and the second's class gives up its name.
        if pinned[second] or (not is_split and class_of[second] < rules.n_known):
            continue
        name = "split" if is_split else "merge"
        count[f"{name}_proposed"] += 1
        parting, log_ratio = propose(moments, class_of, pinned, (first, second), state.prior, generator)
        if np.log(generator.random()) < (log_ratio if is_split else -log_ratio):
            count[f"{name}_accepted"] += 1
            # A new class has a new index, and so a new id, though a merge has left one free.
            class_of[parting] = n_classes if is_split else class_of[first]
            n_classes += is_split
    return tidy(name_classes(state, class_of, n_classes), rules.n_known), Tries(**count)


def propose(
    moments: Moments,
    class_of: Integers,
    pinned: np.ndarray,
    pair: tuple[int, int],
    prior: Prior,
    generator: np.random.Generator,
) -> tuple[Integers, float]:
    """The components on the second's side of a split or before a merge, and the log acceptance ratio of the split."""
    first, second = pair
    is_split = bool(class_of[first] == class_of[second])
    members = np.flatnonzero((class_of == class_of[first]) | (class_of == class_of[second]))
    others = generator.permutation(np.flatnonzero(~pinned[members] & (members != first) & (members != second)))
    chosen = np.full(len(members), -1) if is_split else (class_of[members] != class_of[first]).astype(np.int64)
    taken = np.where(pinned[members] | (members == first), 0, np.where(members == second, 1, -1))
    mine = Moments(moments.n[members], moments.mean[members], moments.scatter[members])
    seats = class_rules.seat(class_rules.Rule("evidence"), mine, prior, taken, 2)
    uniform = generator.random(len(others))
    log_q = kernels.part_seats(others, chosen, uniform, seats.given, seats.guests, seats.tables)
    side = seats.guests.class_of
    return members[side == 1], _log_gain(mine, side, prior) - log_q


def _log_gain(moments: Moments, side: Integers, prior: Prior) -> float:
    """Log ratio of the joints: two classes against one."""
    component = niw.component_sums(moments, prior)
    apart = niw.class_sums(component, side, 2)
    whole = niw.class_sums(component, np.zeros_like(side), 1)
    size: Floats = np.bincount(side).astype(np.float64)
    log_prior = np.log(prior.gamma) + gammaln(size).sum() - gammaln(size.sum())
    log_evidence = niw.log_evidence(apart, prior).sum() - niw.log_evidence(whole, prior)[0]
    return float(log_prior + log_evidence)
