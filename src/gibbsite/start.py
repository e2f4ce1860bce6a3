"""Where a chain begins: what the labelled pixels teach, and many components by k-means++.

Many components from the start, few classes: the components enter the class step one by one, largest first, or in groups
that are better one Gaussian. (Started from one component and grown by splits, chains ended thousands of nats lower;
every component its own class stayed splintered for long.)
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri

from gibbsite import gibbs, kernels, moves, statistics, streams
from gibbsite.components import Components, draw_components
from gibbsite.fusion import fuse, group, take_in
from gibbsite.niw import Prior
from gibbsite.start_cells import find_cells, sample_pixels
from gibbsite.state import Rules, State, tidy
from gibbsite.statistics import Floats, Integers
from gibbsite.streams import Purpose
from gibbsite.tiles import Answer, Pass, Tile, answer, draw_labels, tally

NEVER = 1e-8
"""Share of its pixels that a Gaussian has so far off: of a scene's, none."""


@dataclass(frozen=True)
class Pins:
    """Tells outliers among labelled pixels: those of low density in their own class do not pin."""

    components: Components
    """Drawn after the pre-inference."""
    threshold: Floats
    """(n_known,) log density below which a labelled pixel of the class is an outlier."""
    step: float
    """Fixed-point step of the features."""

    def apply(self, tile: Tile) -> Tile:
        """The tile with outliers unlabelled."""
        density = _class_density(tile, self.components, self.step)
        is_outlier = (tile.known >= 0) & (density < self.threshold[np.maximum(tile.known, 0)])
        return replace(tile, known=np.where(is_outlier, np.int16(-1), tile.known))


@dataclass(frozen=True)
class Learnt:
    """What the labelled pixels teach."""

    state: State
    """Components of the known classes."""
    pins: Pins | None
    """What tells outliers; without it every labelled pixel pins."""
    labelled: Tile
    """The labelled pixels, outliers unlabelled."""


def learn(labelled: Tile, rules: Rules, prior: Prior, sweeps: int, outlier_fraction: float) -> Learnt:
    """What the labelled pixels teach: components of the known classes, and which of the pixels pin."""
    state = learn_labelled(labelled, rules, prior, sweeps)
    if rules.is_single:
        pins = find_strays(labelled, state, rules)
        kept = pins.apply(labelled)
        return Learnt(learn_labelled(_pinning(kept), rules, prior, sweeps), pins, kept)
    if outlier_fraction == 0.0:
        return Learnt(state, None, labelled)
    pins = find_pins(labelled, state, rules, outlier_fraction)
    return Learnt(state, pins, pins.apply(labelled))


def learn_labelled(labelled: Tile, rules: Rules, prior: Prior, sweeps: int) -> State:
    """The components of the known classes, from sweeps on the labelled pixels alone (the paper's pre-inference)."""
    n_pixels = len(labelled.feature)
    # Hyper-parameters stay at their vague values: estimated from a handful of labelled pixels they collapse. The seed
    # is this stage's own, so that it shares no random number with the chain.
    rules = replace(
        rules,
        seed=rules.seed + 1,
        n_pixels=n_pixels,
        birth_block=moves.block_size(rules.birth_block, n_pixels),
        constants=None,
        trust=np.inf,
    )
    task = first_pass(None, rules)
    reply = answer(labelled, labelled.known.astype(np.int64), rules.n_known, task)
    state = state_of(reply, np.arange(rules.n_known), rules.n_known, prior)
    for _ in range(0 if rules.is_single else sweeps):
        state, _ = gibbs.sweep(state, rules, lambda task, *_: tally(labelled, task), labelled.part)
    return state


def find_pins(labelled: Tile, state: State, rules: Rules, outlier_fraction: float) -> Pins:
    """Thresholds that leave out the least likely pixels of each known class."""
    components, density = _draw_density(labelled, state, rules)
    threshold = np.full(rules.n_known, -np.inf)
    for known in range(rules.n_known):
        ordered = np.sort(density[labelled.known == known])
        threshold[known] = ordered[int(outlier_fraction * len(ordered))]
    return Pins(components, threshold, rules.step)


def find_strays(labelled: Tile, state: State, rules: Rules) -> Pins:
    """Thresholds that leave out pixels so far off their class that its one Gaussian would never have them (igmm).

    Bound to it they widen it, until most of its other pixels are likelier in a new, narrower class.
    """
    components, density = _draw_density(labelled, state, rules)
    highest = np.full(rules.n_known, -np.inf)
    np.maximum.at(highest, labelled.known, density)
    peak = components.log_weight + components.log_det_whiten
    # Whatever was drawn, a class keeps its likeliest pixel.
    return Pins(components, np.minimum(peak - 0.5 * chdtri(len(state.prior.mean), NEVER), highest), rules.step)


def first_state(
    learnt: Learnt | None,
    rules: Rules,
    prior: Prior,
    n_cells: tuple[int, int],
    reads: tuple[gibbs.ReduceTiles, gibbs.ReadPixels],
) -> State:
    """Known components and k-means++ cells, after one pass over all pixels and the cells' entry into classes.

    `n_cells`: of all pixels, and at most so many more where labelled pixels are (none in igmm, where each is a class).
    """
    reduce_tiles, read_pixels = reads
    generator = streams.generator(rules.seed, 0, Purpose.START)
    sample = sample_pixels(rules, read_pixels, generator) * np.float64(rules.step)
    pins = np.empty((0, sample.shape[1]))
    if learnt is not None and not rules.is_single:
        pins = _pinning(learnt.labelled).feature * np.float64(rules.step)
    cells = components = find_cells(sample, n_cells, pins, generator)
    cell_class = np.full(len(cells.class_of), -1)
    if learnt is not None:
        components = _join(learnt.state, rules, cells, generator)
        cell_class = _class_by_pins(cells, learnt.labelled, rules)
    reply = reduce_tiles(first_pass(components, rules))
    state = state_of(reply, components.class_of, len(components.centre), prior)
    n_learnt = len(components.class_of) - len(cells.class_of)
    if rules.is_single:
        return fuse(tidy(take_in(state, np.append(np.arange(n_learnt), cell_class)), rules.n_known), rules)
    state = replace(state, class_of=np.append(state.class_of[:n_learnt], cell_class))
    return _group_classes(state, rules) if rules.is_grouped else _enter_classes(state, rules, generator)


def first_pass(components: Components | None, rules: Rules) -> Pass:
    """The pass before the first sweep: every pixel takes part; the first sweep's block and anchors are wanted."""
    return Pass(
        components=components,  # type: ignore[arg-type]
        key=streams.pixel_key(rules.seed, 0, Purpose.START),
        step=rules.step,
        next_block=moves.choose_block(1, rules),
        next_order_key=streams.pixel_key(rules.seed, 1, Purpose.ORDER),
        n_known=rules.n_known,
        trust=rules.trust,
    )


def unbound(task: Pass) -> Pass:
    """The same pass with every component open to labelled pixels."""
    return replace(task, trust=0.0)


def state_of(reply: Answer, class_of: Integers, n_classes: int, prior: Prior) -> State:
    return State(
        sweep=0,
        statistics=reply.statistics,
        class_of=class_of,
        class_id=np.arange(n_classes),
        next_class_id=n_classes,
        prior=prior,
        anchors=reply.anchors,
        block_label=reply.label - 1,
    )


def _pinning(labelled: Tile) -> Tile:
    """The labelled pixels that pin."""
    is_pinning = labelled.known >= 0
    return Tile(0, labelled.feature[is_pinning], labelled.known[is_pinning])


def _class_by_pins(cells: Components, labelled: Tile, rules: Rules) -> Integers:
    """(n_cells,) the known class that most labelled pixels in a cell have; -1 for cells with few or none.

    A cell among labelled pixels belongs to their class whatever its shape: it need not be guessed.
    """
    pins = _pinning(labelled)
    task = unbound(first_pass(cells, rules))
    count = np.zeros((len(cells.class_of), rules.n_known), np.int64)
    np.add.at(count, (draw_labels(pins, task), pins.known), 1)
    return moves.named_class(count, np.exp(cells.log_weight) * rules.n_pixels)


def _enter_classes(state: State, rules: Rules, generator: np.random.Generator) -> State:
    """The state in which components of class -1 have chosen a class one by one, largest first."""
    used = np.flatnonzero(state.statistics.n > 0)
    alone = used[state.class_of[used] < 0]
    order = alone[np.argsort(-state.statistics.n[alone], kind="stable")]
    n_known = rules.n_known
    state = replace(state, class_id=np.arange(n_known), next_class_id=n_known)
    return moves.choose_classes(state, rules, order, generator.random(len(order)))


def _group_classes(state: State, rules: Rules) -> State:
    """The state in which components of class -1 share a known class, or a new one, where the joint of igmm wants it."""
    is_named = state.class_of >= 0
    into = np.full(len(is_named), -1)
    for known in np.unique(state.class_of[is_named]):
        members = np.flatnonzero(state.class_of == known)
        into[members] = members[0]
    # A known class, seen as one Gaussian, is its first component here.
    whole = take_in(state, into).statistics
    used, first = np.flatnonzero(whole.n > 0), np.arange(len(is_named))
    first[used] = used[group(statistics.moments(whole[used], rules.step), state.prior, is_named[used])]
    class_of = np.where(is_named, state.class_of, state.class_of[first])
    is_new = (class_of < 0) & (state.statistics.n > 0)
    class_of[is_new] = rules.n_known + np.unique(first[is_new], return_inverse=True)[1]
    n_classes = max(rules.n_known, int(class_of.max()) + 1)
    state = replace(state, class_of=class_of, class_id=np.arange(n_classes), next_class_id=n_classes)
    return tidy(state, rules.n_known)


def _join(learnt: State, rules: Rules, cells: Components, generator: np.random.Generator) -> Components:
    """The known classes' components, with the weight of their labelled pixels, before the cells."""
    known = draw_components(learnt, rules, generator)
    share = learnt.statistics.n / rules.n_pixels
    return Components(
        class_of=np.append(known.class_of, cells.class_of + rules.n_known),
        log_weight=np.append(np.log(share), cells.log_weight),
        mean=np.concatenate([known.mean, cells.mean]),
        centre=np.concatenate([known.centre, cells.centre]),
        whiten=np.concatenate([known.whiten, cells.whiten]),
        log_tail=-np.inf,
    )


def _draw_density(labelled: Tile, state: State, rules: Rules) -> tuple[Components, Floats]:
    """A draw of the known classes' components, and the log density of each labelled pixel in its own class under it."""
    components = draw_components(state, rules, streams.generator(rules.seed, state.sweep, Purpose.PINS))
    return components, _class_density(labelled, components, rules.step)


def _class_density(tile: Tile, components: Components, step: float) -> Floats:
    density = np.empty(len(tile.feature))
    class_index = np.maximum(tile.known, 0).astype(np.int64)
    kernels.log_density(kernels.lay_out(tile.feature), class_index, np.float32(step), components.lanes(), density)
    return density
