"""Moves that change the structure: births of components, and components changing class."""

from dataclasses import replace

import numpy as np

from gibbsite import kernels, niw, statistics, streams
from gibbsite.niw import Posterior, Prior, Sums
from gibbsite.state import Rules, State, tidy
from gibbsite.statistics import Floats, Integers, Moments
from gibbsite.streams import Purpose
from gibbsite.tiles import Anchors, Answer, Pass, Range, Tile, answer, no_anchors

MAX_BIRTHS = 128
"""Components one block scan may open on top of those it frees; never felt in practice."""


def block_size(most: int, n_pixels: int) -> int:
    """Pixels of a block: an eighth of all, and no more than `most`, since a block is scanned pixel by pixel."""
    return min(most, max(64, n_pixels // 8))


def choose_block(sweep: int, rules: Rules) -> Range:
    """Ranks [start, stop) of the pixels that may open and close components in a sweep."""
    n_blocks = -(-rules.n_pixels // rules.birth_block)
    block = int(streams.generator(rules.seed, sweep, Purpose.BLOCKS).integers(n_blocks))
    return block * rules.birth_block, min((block + 1) * rules.birth_block, rules.n_pixels)


def scan_block(state: State, rules: Rules, task: Pass, reply: Answer, block: Tile) -> tuple[State, int]:
    """The state after the tiles' answers and the block's own Gibbs scan, and the number of components born."""
    shown, prior, drawn = state.is_explicit, state.prior, task.components
    n_explicit, n_loose = int(shown.sum()), int((~shown).sum())
    # The scan numbers explicit components first, then loose ones, then room for those it opens.
    place = np.empty(len(shown), np.int64)
    place[shown], place[~shown] = np.arange(n_explicit), n_explicit + np.arange(n_loose)
    room = np.append(state.class_of[~shown], np.full(min(len(block.feature), MAX_BIRTHS), -1))
    uniform = np.empty(len(block.feature))
    kernels.uniforms(streams.pixel_key(rules.seed, state.sweep, Purpose.BIRTHS), block.first, uniform)
    label, loose_class = kernels.scan_block(
        block.feature * rules.step,
        block.known,
        uniform,
        place[state.block_label],
        (
            drawn.class_of,
            drawn.log_weight,
            drawn.whitened_mean,
            drawn.centre,
            drawn.whiten,
            drawn.log_det_whiten,
        ),
        room,
        (drawn.log_tail, prior.alpha, prior.gamma, rules.is_single),
        (prior.mean, prior.scale, prior.kappa0, prior.spread, prior.degrees),
    )
    n_new = max(0, int(loose_class.max(initial=-1)) + 1 - len(state.class_id))
    whole = _widen(reply, len(room)) + answer(block, label, n_explicit + len(room), task)
    state = replace(
        state,
        statistics=whole.statistics,
        class_of=np.append(drawn.class_of, np.maximum(loose_class, 0)),
        class_id=np.append(state.class_id, state.next_class_id + np.arange(n_new)),
        next_class_id=state.next_class_id + n_new,
        anchors=whole.anchors,
        block_label=whole.label - 1,
    )
    return state, int((whole.statistics.n[n_explicit + n_loose :] > 0).sum())


def _widen(reply: Answer, n_more: int) -> Answer:
    """The answer with further, empty components."""
    empty = statistics.zeros(n_more, reply.statistics.total.shape[1])
    nobody = no_anchors(n_more)
    anchors = Anchors(np.append(reply.anchors.order, nobody.order), np.append(reply.anchors.rank, nobody.rank))
    return Answer(statistics.concatenate([reply.statistics, empty]), anchors, reply.label)


def reassign_classes(state: State, rules: Rules) -> State:
    """The state after every component that no labelled pixel pins has drawn its class anew, one by one."""
    generator = streams.generator(rules.seed, state.sweep, Purpose.CLASSES)
    free = np.flatnonzero(state.statistics.n_pinning == 0)
    order = generator.permutation(free)
    table = ClassTable(state, rules)
    for component in order:
        table.take_out(component)
        table.put_in(component, table.draw(component, generator.random()))
    return table.state()


class ClassTable:
    """The classes while components change hands; a component of class -1 stands alone."""

    def __init__(self, state: State, rules: Rules) -> None:
        n_components, n_classes = len(state.class_of), len(state.class_id)
        self._state, self._rules = state, rules
        self._prior: Prior = state.prior
        self._moments = statistics.moments(state.statistics, rules.step)
        if rules.class_rule == "extent":
            # A class is seen as one Gaussian over all its pixels, as wide as it has become in each direction.
            self._prior = replace(state.prior, spread=0.0)
        self._component = niw.component_sums(self._moments, self._prior)
        # One spare class after the last is always empty: the new class a component may open.
        room = n_classes + n_components + 1
        self._class_of: Integers = state.class_of.copy()
        seated = state.class_of >= 0
        self._sums: Sums = niw.class_sums(self._component[seated], state.class_of[seated], room)
        self._members: Floats = np.bincount(state.class_of[seated], minlength=room).astype(np.float64)
        self._n_classes = n_classes
        self._log_evidence: Floats = niw.log_evidence(self._sums, self._prior)

    def take_out(self, component: int) -> None:
        """Let the component stand alone."""
        if self._class_of[component] >= 0:
            self._change(component, int(self._class_of[component]), -1.0)
            self._class_of[component] = -1

    def put_in(self, component: int, class_index: int) -> None:
        """Let the component join a class (the last scored one is new)."""
        self._change(component, class_index, +1.0)
        self._class_of[component] = class_index
        self._n_classes = max(self._n_classes, class_index + 1)

    def draw(self, component: int, uniform: float) -> int:
        """The class a uniform picks for a component that stands alone."""
        score = self.scores(component)
        odds = np.cumsum(np.exp(score - score.max()))
        return int(np.searchsorted(odds, uniform * odds[-1], side="right"))

    def scores(self, component: int) -> Floats:
        """Log odds of each class, the last one new, for a component that stands alone."""
        chosen = slice(0, self._n_classes + 1)
        members = self._members[chosen].copy()
        members[-1] = self._prior.gamma
        sums = self._sums[chosen]
        is_open = members > 0
        if self._rules.class_rule == "evidence":
            joined = niw.log_evidence(sums + self._component[component], self._prior)
            score = joined - self._log_evidence[chosen]
        else:
            one = Moments(
                self._moments.n[[component]],
                self._moments.mean[[component]],
                self._moments.scatter[[component]],
            )
            given: Posterior = niw.posterior(sums, self._prior)
            score = niw.log_predictive_of_component(one, given, self._prior.spread)
        return np.where(is_open, score + np.log(np.where(is_open, members, 1.0)), -np.inf)

    def state(self) -> State:
        """The state with the new classes."""
        n_new = self._n_classes - len(self._state.class_id)
        first = self._state.next_class_id
        state = replace(
            self._state,
            class_of=self._class_of,
            class_id=np.append(self._state.class_id, first + np.arange(n_new)),
            next_class_id=first + n_new,
        )
        return tidy(state, self._rules.n_known)

    def _change(self, component: int, class_index: int, sign: float) -> None:
        sums, one = self._sums, self._component
        sums.n[class_index] += sign * one.n[component]
        sums.weight[class_index] += sign * one.weight[component]
        sums.total[class_index] += sign * one.total[component]
        sums.outer[class_index] += sign * one.outer[component]
        sums.shrink[class_index] += sign * one.shrink[component]
        self._members[class_index] += sign
        if self._members[class_index] == 0:
            # What rounding left behind in an emptied class must not reach the next one that opens there.
            for values in (sums.n, sums.weight, sums.total, sums.outer, sums.shrink):
                values[class_index] = 0.0
        self._log_evidence[class_index] = niw.log_evidence(sums[class_index], self._prior)
