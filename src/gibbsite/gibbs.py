"""The sampler: a sweep that reads like the paper.

Given this sweep's drawn components every pixel draws its component independently, and a tile answers with sums. So a
sweep is: draw on the client, add up the tiles' answers (`reduce_tiles`: in this process, or on a cluster), and do the
rest, which does not grow with the scene, on the sums.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gibbsite import hyper, moves, niw, statistics, streams
from gibbsite.components import draw_components
from gibbsite.state import Rules, State, drop_empty
from gibbsite.statistics import Statistics
from gibbsite.streams import Purpose
from gibbsite.tiles import Pass, Tile


@dataclass(frozen=True)
class Info:
    """What people want to know of a sweep; the next sweep does not need it."""

    log_joint: float
    n_classes: int
    n_components: int
    n_born: int
    """Components opened in the tail."""
    kappa0: float
    kappa1: float


ReduceTiles = Callable[[Pass], Statistics]
ReadPixels = Callable[[int, int], Tile]


def sweep(
    state: State, rules: Rules, reduce_tiles: ReduceTiles, read_pixels: ReadPixels
) -> tuple[State, Info]:
    """The next state, and what there is to tell of it."""
    state = replace(state, sweep=state.sweep + 1)
    if rules.constants is not None:
        moments = statistics.moments(state.statistics, rules.step)
        state = replace(state, prior=hyper.estimate(moments, state.class_of, state.prior, rules.constants))
    components = draw_components(state, rules, streams.generator(rules.seed, state.sweep, Purpose.COMPONENTS))
    block = moves.choose_block(state, rules)
    key = streams.pixel_key(rules.seed, state.sweep, Purpose.INDICATORS)
    sums = reduce_tiles(Pass(components, key, rules.step, block))
    state, n_born = moves.give_birth(state, rules, components, sums, read_pixels(*block))
    state = drop_empty(state, rules.n_known)
    if not rules.is_single:
        state = moves.reassign_classes(state, rules)
    return state, describe(state, rules, n_born)


def describe(state: State, rules: Rules, n_born: int = 0) -> Info:
    """The collapsed joint and the size of a state."""
    moments = statistics.moments(state.statistics, rules.step)
    log_joint = niw.log_joint(moments, state.class_of, state.prior)
    kappa1 = np.inf if rules.is_single else 1.0 / state.prior.spread
    return Info(log_joint, len(state.class_id), len(state.class_of), n_born, state.prior.kappa0, kappa1)
