"""Components that are better one than two become one: the start of igmm, where each component is a class, and of the
classes of grouped chains.

Pixels that move one by one hardly ever undo a component, so a chain that starts from too many cells keeps them.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gibbsite import niw, splits, statistics
from gibbsite.niw import Prior, Sums
from gibbsite.splits import Proposal
from gibbsite.start_cells import APART, PIXELS_PER_FEATURE
from gibbsite.state import Rules, State, tidy
from gibbsite.statistics import Floats, Integers, Moments


def fuse(state: State, rules: Rules) -> State:
    """The state after pairs of components became one, the best pair first, as long as that raises the collapsed joint.

    Components of two known classes stay two; with a known class the pair has its name.
    """
    moments = statistics.moments(state.statistics, rules.step)
    # Known classes come first, so the first of a group has its name.
    return tidy(take_in(state, group(moments, state.prior, state.class_of < rules.n_known)), rules.n_known)


def group(
    moments: Moments, prior: Prior, is_known: NDArray[np.bool_], touching: NDArray[np.bool_] | None = None
) -> Integers:
    """(n_components,) the first of those each component is better one Gaussian with; no two known ones are together.

    Nor are two without a way from one to the other over `touching` (n_components, n_components) ones; where it is not
    given, all touch but clusters that lie clearly apart. (Where clusters are far narrower than a vague prior expects,
    as on a grid of many, the joint gains by joining any two.)
    """
    prior = niw.without_spread(prior)
    # Copies: without spread the weights are the counts themselves, and both are added up below.
    sums = Sums(*map(np.array, vars(niw.component_sums(moments, prior)).values()))
    first_of = np.arange(len(is_known))
    gain = np.stack([_gain(sums, one, prior) for one in range(len(first_of))])
    gain[np.ix_(is_known, is_known)] = -np.inf
    touches = ~_are_apart(moments) if touching is None else touching.copy()
    gain[~touches] = -np.inf
    while gain.max() > 0.0:
        first, second = sorted(map(int, np.unravel_index(gain.argmax(), gain.shape)))
        first_of[first_of == second] = first
        for summed in vars(sums).values():
            summed[first] += summed[second]
            summed[second] = 0.0
        touches[first] |= touches[second]
        touches[:, first] = touches[first]
        gain[first] = np.where(touches[first], _gain(sums, first, prior), -np.inf)
        if is_known[first]:
            gain[first, is_known] = -np.inf
        gain[:, first] = gain[first]
        gain[second] = gain[:, second] = -np.inf
    return first_of


def _are_apart(moments: Moments) -> NDArray[np.bool_]:
    """(n_components, n_components) whether two are clusters that lie clearly apart, as `start_cells` tells them."""
    n, d = moments.n, moments.mean.shape[1]
    longest = np.linalg.eigvalsh(moments.scatter)[:, -1]
    both = np.add.outer(longest, longest) / np.maximum(np.add.outer(n, n), 1.0)
    distance = np.square(moments.mean[:, None] - moments.mean[None]).sum(2)
    is_large = n >= PIXELS_PER_FEATURE * d
    return np.asarray((distance > APART**2 * both) & np.logical_and.outer(is_large, is_large))


def take_in(state: State, into: Integers) -> State:
    """The state in which each component is one with the component given for it; -1 leaves it as it is."""
    for one in np.flatnonzero((into >= 0) & (into != np.arange(len(into)))):
        state = splits.merge(state, Proposal(int(into[one]), int(one), np.zeros(0), 0.0))
    return state


def _gain(sums: Sums, one: int, prior: Prior) -> Floats:
    """(n_components,) what the log joint gains when a component takes in each of the others; −∞ for empty ones."""
    alone = _log_share(sums, prior)
    gain = _log_share(sums + sums[one], prior) - alone - alone[one]
    return np.where((sums.n > 0.0) & (np.arange(len(gain)) != one), gain, -np.inf)


def _log_share(sums: Sums, prior: Prior) -> Floats:
    """What a component of these sums adds to the log joint of igmm: log α Γ(n) M."""
    return np.asarray(np.log(prior.alpha) + gammaln(np.maximum(sums.n, 1.0)) + niw.log_evidence(sums, prior))
