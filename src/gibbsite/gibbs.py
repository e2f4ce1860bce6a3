"""The sampler: a sweep that reads like the paper.

Given this sweep's drawn components every pixel draws its component independently, and a tile answers with sums. So a
sweep is: draw on the client, add up the tiles' answers (`reduce_tiles`: in this process, or on a cluster), and do the
rest, which does not grow with the scene, on the sums.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from gibbsite import class_splits, hyper, moves, niw, splits, statistics, streams
from gibbsite.components import draw_components
from gibbsite.splits import NO_TRIES, Tries
from gibbsite.state import Rules, State, tidy
from gibbsite.streams import Purpose
from gibbsite.tiles import Meanwhile, Pass, Task, Tile


@dataclass(frozen=True)
class Info:
    """What people want to know of a sweep; the next sweep does not need it."""

    log_joint: float
    n_classes: int
    n_components: int
    n_born: int
    """Components opened in the block."""
    kappa0: float
    kappa1: float
    split_proposed: int = 0
    """Components that were to split in two."""
    split_accepted: int = 0
    merge_proposed: int = 0
    """Pairs of components that were to become one."""
    merge_accepted: int = 0
    class_split_proposed: int = 0
    """Classes that were to split in two."""
    class_split_accepted: int = 0
    class_merge_proposed: int = 0
    """Pairs of classes that were to become one."""
    class_merge_accepted: int = 0


class ReduceTiles(Protocol):
    """The answers of all tiles to a task, added up."""

    def __call__(self, task: Task, meanwhile: Meanwhile = ..., /) -> Any:
        """The sum. Whoever waits for others does meanwhile what is given; nothing depends on it."""


ReadPixels = Callable[[int, int], Tile]


def sweep(state: State, rules: Rules, reduce_tiles: ReduceTiles, read_pixels: ReadPixels) -> tuple[State, Info]:
    """The next state, and what there is to tell of it."""
    state = replace(state, sweep=state.sweep + 1)
    if rules.constants is not None:
        moments = statistics.moments(state.statistics, rules.step)
        state = replace(state, prior=hyper.estimate(moments, state.class_of, state.prior, rules.constants))
    task = plan_pass(state, rules)
    block = read_pixels(*task.skip)
    scan = functools.cache(functools.partial(moves.scan_block, state, rules, task, block))
    answer = reduce_tiles(task, scan)
    state, n_born = moves.take_over(state, task, answer, block, scan())
    tries = class_tries = NO_TRIES
    if splits.is_due(state, rules):
        state, tries = splits.split_and_merge(state, rules, task, reduce_tiles, (block, scan().label))
    state = tidy(state, rules.n_known)
    if not rules.is_single:
        state = moves.reassign_classes(state, rules)
    if class_splits.is_due(state, rules):
        state, class_tries = class_splits.split_and_merge(state, rules)
    return state, describe(state, rules, n_born, tries, class_tries)


def plan_pass(state: State, rules: Rules) -> Pass:
    """This sweep's draw of the explicit components, and what the tiles must know and answer."""
    number = state.sweep
    generator = streams.generator(rules.seed, number, Purpose.COMPONENTS)
    components = draw_components(state, rules, generator, state.is_explicit)
    # Made once and here, not by every thread that comes upon them first.
    components.lanes()
    return Pass(
        components=components,
        key=streams.pixel_key(rules.seed, number, Purpose.INDICATORS),
        step=rules.step,
        skip=moves.choose_block(number, rules),
        order_key=streams.pixel_key(rules.seed, number, Purpose.ORDER),
        anchors=state.anchors[state.is_explicit],
        next_block=moves.choose_block(number + 1, rules),
        next_order_key=streams.pixel_key(rules.seed, number + 1, Purpose.ORDER),
        n_known=rules.n_known,
        trust=rules.trust,
        is_voting=rules.trust < np.inf,
    )


def describe(
    state: State, rules: Rules, n_born: int = 0, tries: Tries = NO_TRIES, class_tries: Tries = NO_TRIES
) -> Info:
    """The collapsed joint and the size of a state."""
    moments = statistics.moments(state.statistics, rules.step)
    log_joint = niw.log_joint(moments, state.class_of, state.prior)
    kappa1 = np.inf if rules.is_single else 1.0 / state.prior.spread
    sizes = (len(state.class_id), len(state.class_of), n_born)
    counts: dict[str, Any] = vars(tries) | {f"class_{name}": count for name, count in vars(class_tries).items()}
    return replace(Info(log_joint, *sizes, state.prior.kappa0, kappa1), **counts)
