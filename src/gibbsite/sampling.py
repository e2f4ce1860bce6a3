"""A chain from its first sweep to its last, and the polish of the best structure."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gibbsite import gibbs, streams
from gibbsite.components import Components, draw_components
from gibbsite.state import Rules, State
from gibbsite.streams import Purpose
from gibbsite.tiles import Pass


@dataclass(frozen=True)
class Chain:
    """What is kept of a chain."""

    best: State
    """Of the sweep with the highest collapsed joint after burn-in."""
    last: State
    """After the last sweep."""
    trace: tuple[gibbs.Info, ...]
    """One entry per sweep."""

    @property
    def log_joint(self) -> float:
        """The collapsed joint of the best state."""
        return self.trace[self.best.sweep - 1].log_joint


OnSweep = Callable[[Chain], None]


def begin(state: State) -> Chain:
    """A chain before its first sweep."""
    return Chain(state, state, ())


def sample(
    begun: Chain,
    rules: Rules,
    n_sweeps: tuple[int, int],
    reads: tuple[gibbs.ReduceTiles, gibbs.ReadPixels],
    on_sweep: OnSweep,
) -> Chain:
    """The chain of (burn-in, all) sweeps that goes on from what was begun."""
    burn_in, sweeps = n_sweeps
    chain = begun
    while chain.last.sweep < sweeps:
        state, info = gibbs.sweep(chain.last, rules, *reads)
        is_first = state.sweep == burn_in + 1
        is_best = is_first or (state.sweep > burn_in and info.log_joint > chain.log_joint)
        chain = Chain(state if is_best else chain.best, state, (*chain.trace, info))
        on_sweep(chain)
    return chain


def polish(state: State, rules: Rules, sweeps: int, reduce_tiles: gibbs.ReduceTiles) -> tuple[State, list[Components]]:
    """Draws of the components while the structure stands still, and the state they end in.

    No births, deaths or class moves: component l is the same in every draw, so draws can be averaged. Weights are
    those of a finite mixture, Dirichlet(n_l + α/L), under which a component may be empty for a while.
    """
    draws = []
    for number in range(1, sweeps + 1):
        generator = streams.generator(rules.seed, number, Purpose.POLISH)
        components = draw_components(state, rules, generator)
        share = state.statistics.n + state.prior.alpha / len(state.class_of)
        components = replace(components, log_weight=np.log(np.maximum(generator.dirichlet(share), 1e-300)))
        draws.append(components)
        key = streams.pixel_key(rules.seed, number, Purpose.POLISH)
        task = Pass(components, key, rules.step, n_known=rules.n_known, trust=rules.trust)
        state = replace(state, statistics=reduce_tiles(task).statistics)
    return state, draws
