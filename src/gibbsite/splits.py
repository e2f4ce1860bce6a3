"""Splits and merges of components: exact moves from sums alone.

In each class one component is proposed to split in two, or two are proposed to become one (Jain & Neal 2004). The
pixels of the component take sides along a line, the *launch*, which is a function of the pooled pixels' sums only; so
the same launch tells how likely a merged pair would have split just so. That probability is one more sum over the
pixels: the move needs one further pass, in which tiles draw the labels of this sweep again. Which pixels are in a class
never changes here, so the classes' proposals do not disturb each other.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln

from gibbsite import niw, statistics, streams
from gibbsite.niw import Prior, Sums
from gibbsite.replay import LOG_Q_STEP, Parts, Replay
from gibbsite.state import Rules, State
from gibbsite.statistics import Floats, Integers, Moments
from gibbsite.streams import Purpose
from gibbsite.tiles import Anchors, Pass, Tile, no_anchors


@dataclass(frozen=True)
class Tries:
    """How often a move was proposed and accepted."""

    split_proposed: int = 0
    split_accepted: int = 0
    merge_proposed: int = 0
    merge_accepted: int = 0


NO_TRIES = Tries()


@dataclass(frozen=True)
class Proposal:
    """One component to split, or two to merge."""

    first: int
    """Component to split, or to keep."""
    second: int
    """Component that the first takes in; -1 for a split."""
    direction: Floats
    """(n_features,) of the launch: a pixel takes side 1 with log odds direction·x − threshold."""
    threshold: float
    """Of the launch."""


@dataclass(frozen=True)
class View:
    """A state as these moves see it: moments and sums of its components, empty ones included."""

    moments: Moments
    component: Sums
    prior: Prior

    def class_sums(self, members: Integers) -> Sums:
        """The sums of one class of these components."""
        return niw.class_sums(self.component[members], np.zeros(len(members), np.int64), 1)


def is_due(state: State, rules: Rules) -> bool:
    """Whether this sweep proposes splits and merges; never in igmm, where a class is one component."""
    return rules.split_every > 0 and state.sweep % rules.split_every == 0 and not rules.is_single


def split_and_merge(
    state: State,
    rules: Rules,
    task: Pass,
    reduce_tiles: Callable[[Replay], Parts],
    block: tuple[Tile, Integers],
) -> tuple[State, Tries]:
    """The state after one proposal in each class; components are numbered as in the pass; block and its labels."""
    proposals = propose(state, rules)
    if not proposals:
        return state, NO_TRIES
    again = replay(state, rules, task, proposals)
    parts = reduce_tiles(again) + again.part(*block)
    return decide(state, rules, proposals, parts)


def view(state: State, rules: Rules, members: Integers | None = None) -> View:
    """What the moves need of a state, or of some of its components."""
    sums = state.statistics if members is None else state.statistics[members]
    moments = statistics.moments(sums, rules.step)
    return View(moments, niw.component_sums(moments, state.prior), state.prior)


def propose(state: State, rules: Rules) -> list[Proposal]:
    """One proposal for each class: a split or, with two components or more, a merge; either with probability 1/2."""
    generator = streams.generator(rules.seed, state.sweep, Purpose.SPLITS)
    seen = view(state, rules)
    found = []
    for class_index in range(len(state.class_id)):
        members = np.flatnonzero((state.class_of == class_index) & (state.statistics.n > 0))
        is_split, choice, other, *shape = generator.random(6)
        if len(members) == 0:
            continue
        first = members[int(choice * len(members))]
        if is_split < 0.5:
            pair = np.array([first])
        elif len(members) > 1:
            odds = np.cumsum(closeness(seen, members)[np.searchsorted(members, first)])
            pair = np.array([first, members[np.searchsorted(odds, other * odds[-1], side="right")]])
        else:
            continue
        if state.statistics.n[pair].sum() > 1:
            found.append(Proposal(first, pair[-1] if len(pair) > 1 else -1, *launch(seen, pair, shape)))
    return found


def launch(seen: View, pair: Integers, shape: list[float]) -> tuple[Floats, float]:
    """Direction and threshold along which the pooled pixels of a component, or of a pair, take sides.

    It depends on the pooled pixels and on three random numbers, so split and merge share it. The direction is an
    eigenvector of the pixels' covariance as the prior's scale sees it, the wide ones first. (The class's own covariance
    would not do: if this is its only component, it has taken in whatever lies between the parts.) How much of the
    variance λ along it lies between the parts is a guess ρ: then they lie ±√(ρλ) from the middle, and the log odds of
    their pixels rise with slope 2√(ρλ)/((1 − ρ)λ). With ρ = 0 a coin decides, which is how twins would have parted.
    """
    pooled = pool(seen.moments, pair)
    root = np.linalg.cholesky(seen.prior.scale)
    whitened = np.linalg.solve(root, np.linalg.solve(root, pooled.scatter[0] / pooled.n[0]).T)
    variance, vector = np.linalg.eigh(0.5 * (whitened + whitened.T))
    variance = np.maximum(variance, 1e-9)
    odds = np.cumsum(variance**2)
    chosen = int(np.searchsorted(odds, shape[0] * odds[-1], side="right"))
    between = max(0.0, min(0.98, 1.5 * shape[1] - 0.5))
    slope = 2.0 * np.sqrt(between / variance[chosen]) / (1.0 - between)
    # Unequal parts do not meet in the middle: the threshold wanders by a standard deviation.
    away = 2.0 * (shape[2] - 0.5) * np.sqrt(variance[chosen])
    direction = slope * np.linalg.solve(root.T, vector[:, chosen])
    return direction, float(direction @ pooled.mean[0] + slope * away)


def pool(moments: Moments, members: Integers) -> Moments:
    """The moments of some components' pixels together."""
    n = moments.n[members]
    mean = n @ moments.mean[members] / n.sum()
    away = moments.mean[members] - mean
    scatter = moments.scatter[members].sum(0) + np.einsum("c,ca,cb->ab", n, away, away)
    return Moments(n.sum(keepdims=True), mean[None], scatter[None])


def closeness(seen: View, members: Integers) -> Floats:
    """(n_members, n_members) weights with which a component chooses another one of its class to merge with."""
    given = niw.posterior(seen.class_sums(members), seen.prior)
    root = np.linalg.cholesky(given.scale[0] / given.degrees[0])
    place = np.linalg.solve(root, seen.moments.mean[members].T).T
    weight = 1.0 / (0.1 + ((place[:, None] - place[None]) ** 2).sum(-1))
    np.fill_diagonal(weight, 0.0)
    return np.asarray(weight)


def log_pair(seen: View, members: Integers, pair: Integers) -> float:
    """Log probability that these two of the members are chosen to merge."""
    weight = closeness(seen, members)
    share = weight / weight.sum(1, keepdims=True)
    a, b = np.searchsorted(members, pair)
    return float(np.log((share[a, b] + share[b, a]) / len(members)))


def replay(state: State, rules: Rules, task: Pass, proposals: list[Proposal]) -> Replay:
    """The pass that finds the proposals' sides."""
    n_components = len(state.class_of)
    proposal_of, fixed_side = np.full(n_components, -1), np.full(n_components, -1)
    for number, proposal in enumerate(proposals):
        proposal_of[proposal.first] = number
        if proposal.second >= 0:
            proposal_of[proposal.second] = number
            fixed_side[[proposal.first, proposal.second]] = 0, 1
    direction = np.array([proposal.direction for proposal in proposals])
    threshold = np.array([proposal.threshold for proposal in proposals])
    key = streams.pixel_key(rules.seed, state.sweep, Purpose.SPLITS)
    return Replay(task, proposal_of, fixed_side, direction, threshold, key)


def decide(state: State, rules: Rules, proposals: list[Proposal], parts: Parts) -> tuple[State, Tries]:
    """The state after each proposal was accepted or not, one by one, and how many were."""
    generator = streams.generator(rules.seed, state.sweep, Purpose.ACCEPTANCE)
    count = dict.fromkeys(Tries.__dataclass_fields__, 0)
    for number, proposal in enumerate(proposals):
        log_uniform = np.log(generator.random())
        name = "split" if proposal.second < 0 else "merge"
        count[f"{name}_proposed"] += 1
        log_q = float(np.logaddexp(*(parts.log_q[number] * LOG_Q_STEP)))
        if proposal.second >= 0:
            after = merge(state, proposal)
            is_accepted = log_uniform < -log_ratio(after, state, rules, (proposal.first, proposal.second), log_q)
        else:
            after = split(state, proposal, number, parts)
            new = len(state.class_of)
            is_accepted = after.statistics.n[[proposal.first, new]].all() and log_uniform < log_ratio(
                state, after, rules, (proposal.first, new), log_q
            )
        if is_accepted:
            count[f"{name}_accepted"] += 1
            state = after
    return state, Tries(**count)


def split(state: State, proposal: Proposal, number: int, parts: Parts) -> State:
    """The state in which the pixels of side 1 are a new component, the last one."""
    first, new = proposal.first, len(state.class_of)
    ones = parts.statistics[number : number + 1]
    sums = statistics.concatenate([state.statistics, ones])
    for whole, part in ((sums.n, ones.n), (sums.total, ones.total), (sums.outer, ones.outer)):
        whole[first] -= part[0]
    sums.n_pinning[first] -= ones.n_pinning[0]
    # Whom the votes were for is not asked again: the parts share them by size.
    sums.n_votes[new] = sums.n_votes[first] * ones.n[0] // state.statistics.n[first]
    sums.n_votes[first] -= sums.n_votes[new]
    order, rank = np.append(state.anchors.order, 0), np.append(state.anchors.rank, 0)
    sides = parts.anchors[np.array([2 * number, 2 * number + 1])]
    order[[first, new]], rank[[first, new]] = sides.order, sides.rank
    moves_over = (state.block_label == first) & (parts.side == 2)
    return replace(
        state,
        statistics=sums,
        class_of=np.append(state.class_of, state.class_of[first]),
        anchors=Anchors(order, rank),
        block_label=np.where(moves_over, new, state.block_label),
    )


def merge(state: State, proposal: Proposal) -> State:
    """The state in which the first component has the pixels of the second, which is empty."""
    first, second = proposal.first, proposal.second
    both = state.statistics[first : first + 1] + state.statistics[second : second + 1]
    sums = statistics.concatenate([state.statistics])
    nobody = statistics.zeros(1, sums.total.shape[1], sums.n_pinning.shape[1])
    for place, one in ((first, both), (second, nobody)):
        sums.n[place], sums.total[place], sums.outer[place] = one.n[0], one.total[0], one.outer[0]
        sums.n_pinning[place], sums.n_votes[place] = one.n_pinning[0], one.n_votes[0]
    earlier = state.anchors[np.array([first])] + state.anchors[np.array([second])]
    order, rank = state.anchors.order.copy(), state.anchors.rank.copy()
    order[[first, second]] = earlier.order[0], no_anchors(1).order[0]
    rank[[first, second]] = earlier.rank[0], -1
    return replace(
        state,
        statistics=sums,
        anchors=Anchors(order, rank),
        block_label=np.where(state.block_label == second, first, state.block_label),
    )


def log_ratio(whole: State, halves: State, rules: Rules, pair: tuple[int, int], log_q: float) -> float:
    """Log acceptance ratio of the split that leads from `whole` to `halves`; its negative is that of the merge."""
    prior, first = whole.prior, pair[0]
    mine = (halves.class_of == halves.class_of[first]) & (halves.statistics.n > 0)
    members = np.flatnonzero(mine)
    kept = members[members != pair[1]]
    before, after = view(whole, rules, kept), view(halves, rules, members)
    n_components = int((whole.statistics.n > 0).sum())
    n = halves.statistics.n[list(pair)].astype(np.float64)
    log_prior = (
        np.log(prior.alpha)
        + gammaln(n).sum()
        - gammaln(n.sum())
        + np.log(len(kept))
        - np.log(prior.gamma + n_components)
    )
    every = np.arange(len(members))
    apart, together = after.class_sums(every), before.class_sums(every[:-1])
    log_evidence = niw.log_evidence(apart, prior) - niw.log_evidence(together, prior)
    log_backward = log_pair(after, every, np.searchsorted(members, pair))
    log_forward = -np.log(len(kept)) + log_q
    return float(log_prior + log_evidence[0] + log_backward - log_forward)
