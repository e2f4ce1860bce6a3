"""Moves that change the structure: births of components, and components changing class."""

from dataclasses import replace

import numpy as np

from gibbsite import kernels, niw, statistics, streams
from gibbsite.components import Components
from gibbsite.niw import Posterior, Prior, Sums
from gibbsite.state import Rules, State, drop_empty
from gibbsite.statistics import Floats, Integers, Moments, Statistics
from gibbsite.streams import Purpose
from gibbsite.tiles import Tile, sum_by_label


def choose_block(state: State, rules: Rules) -> tuple[int, int]:
    """Ranks [start, stop) of the pixels that may open components in this sweep."""
    n_blocks = -(-rules.n_pixels // rules.birth_block)
    block = int(streams.generator(rules.seed, state.sweep, Purpose.BIRTHS).integers(n_blocks))
    return block * rules.birth_block, min((block + 1) * rules.birth_block, rules.n_pixels)


def give_birth(
    state: State, rules: Rules, components: Components, sums: Statistics, block: Tile
) -> tuple[State, int]:
    """The state after the block's pixels had their choice of the tail too, and the number of components born."""
    prior = state.prior
    uniform = np.empty(len(block.feature))
    kernels.uniforms(streams.pixel_key(rules.seed, state.sweep, Purpose.BIRTHS), block.first, uniform)
    label, tail_class = kernels.scan_tail(
        block.feature * rules.step,
        block.known,
        uniform,
        (
            components.class_of,
            components.log_weight,
            components.whitened_mean,
            components.centre,
            components.whiten,
            components.log_det_whiten,
        ),
        (components.log_tail, prior.alpha, prior.gamma, rules.is_single),
        (prior.mean, prior.scale, prior.kappa0, prior.spread, prior.degrees),
    )
    n_components, n_born = len(components.class_of), len(tail_class)
    n_new = max(0, int(tail_class.max(initial=-1)) + 1 - len(state.class_id))
    born = statistics.zeros(n_born, block.feature.shape[1])
    whole = statistics.concatenate([sums, born]) + sum_by_label(block, label, n_components + n_born)
    state = replace(
        state,
        statistics=whole,
        class_of=np.concatenate([components.class_of, tail_class]),
        class_id=np.append(state.class_id, state.next_class_id + np.arange(n_new)),
        next_class_id=state.next_class_id + n_new,
    )
    return state, n_born


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
        self._component = niw.component_sums(self._moments, state.prior)
        # One spare class after the last is always empty: the new class a component may open.
        room = n_classes + n_components + 1
        self._class_of: Integers = state.class_of.copy()
        seated = state.class_of >= 0
        self._sums: Sums = niw.class_sums(self._component[seated], state.class_of[seated], room)
        self._members: Floats = np.bincount(state.class_of[seated], minlength=room).astype(np.float64)
        self._n_classes = n_classes
        self._log_evidence: Floats = niw.log_evidence(self._sums, state.prior)

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
        return drop_empty(state, self._rules.n_known)

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
