"""Components that are better one than two become one: the start of igmm, where each component is a class.

Pixels that move one by one hardly ever undo a component, so a chain that starts from too many cells keeps them.
"""

import numpy as np
from scipy.special import gammaln

from gibbsite import niw, splits, statistics
from gibbsite.niw import Prior, Sums
from gibbsite.splits import Proposal
from gibbsite.state import Rules, State, tidy
from gibbsite.statistics import Floats, Integers


def fuse(state: State, rules: Rules) -> State:
    """The state after pairs of components became one, the best pair first, as long as that raises the collapsed joint.

    Components of two known classes stay two; with a known class the pair has its name.
    """
    is_known = state.class_of < rules.n_known
    sums = _sums(state, rules)
    gain = np.stack([_gain(sums, one, state.prior) for one in range(len(is_known))])
    gain[np.ix_(is_known, is_known)] = -np.inf
    while gain.max() > 0.0:
        # The first of the two has the lower class, so a known one.
        first, second = sorted(map(int, np.unravel_index(gain.argmax(), gain.shape)))
        state = splits.merge(state, Proposal(first, second, np.zeros(0), 0.0))
        gain[first] = _gain(_sums(state, rules), first, state.prior)
        if is_known[first]:
            gain[first, is_known] = -np.inf
        gain[:, first] = gain[first]
        gain[second] = gain[:, second] = -np.inf
    return tidy(state, rules.n_known)


def take_in(state: State, into: Integers) -> State:
    """The state in which each component is one with the component given for it; -1 leaves it as it is."""
    for one in np.flatnonzero((into >= 0) & (into != np.arange(len(into)))):
        state = splits.merge(state, Proposal(int(into[one]), int(one), np.zeros(0), 0.0))
    return state


def _sums(state: State, rules: Rules) -> Sums:
    return niw.component_sums(statistics.moments(state.statistics, rules.step), state.prior)


def _gain(sums: Sums, one: int, prior: Prior) -> Floats:
    """(n_components,) what the log joint gains when a component takes in each of the others; −∞ for empty ones."""
    alone = _log_share(sums, prior)
    gain = _log_share(sums + sums[one], prior) - alone - alone[one]
    return np.where((sums.n > 0.0) & (np.arange(len(gain)) != one), gain, -np.inf)


def _log_share(sums: Sums, prior: Prior) -> Floats:
    """What a component of these sums adds to the log joint of igmm: log α Γ(n) M."""
    return np.asarray(np.log(prior.alpha) + gammaln(np.maximum(sums.n, 1.0)) + niw.log_evidence(sums, prior))
