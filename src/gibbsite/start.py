"""Where a chain begins: what the labelled pixels teach, and many components by k-means++.

Many components from the start, few classes: the components enter the class step one by one, largest first, or in groups
that are better one Gaussian. (Started from one component and grown by splits, chains ended thousands of nats lower;
every component its own class stayed splintered for long.)
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gibbsite import gibbs, kernels, moves, statistics, streams
from gibbsite.components import Components, draw_components
from gibbsite.fusion import fuse, group, take_in
from gibbsite.niw import Prior
from gibbsite.state import Rules, State, tidy
from gibbsite.statistics import Floats, Integers
from gibbsite.streams import Purpose
from gibbsite.tiles import Answer, Pass, Tile, answer, draw_labels, tally

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

SAMPLE_PIXELS = 32768
"""Pixels that k-means++ sees."""
SAMPLE_BLOCKS = 64
"""Runs of neighbours the sample is made of."""


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
    if rules.is_single or outlier_fraction == 0.0:
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
        is_bound=True,
    )
    task = first_pass(None, rules)
    reply = answer(labelled, labelled.known.astype(np.int64), rules.n_known, task)
    state = state_of(reply, np.arange(rules.n_known), rules.n_known, prior)
    for _ in range(0 if rules.is_single else sweeps):
        state, _ = gibbs.sweep(state, rules, lambda task, *_: tally(labelled, task), labelled.part)
    return state


def find_pins(labelled: Tile, state: State, rules: Rules, outlier_fraction: float) -> Pins:
    """Thresholds that leave out the least likely pixels of each known class."""
    generator = streams.generator(rules.seed, state.sweep, Purpose.PINS)
    components = draw_components(state, rules, generator)
    density = _class_density(labelled, components, rules.step)
    threshold = np.full(rules.n_known, -np.inf)
    for known in range(rules.n_known):
        ordered = np.sort(density[labelled.known == known])
        threshold[known] = ordered[int(outlier_fraction * len(ordered))]
    return Pins(components, threshold, rules.step)


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
    sample = _sample(rules, read_pixels, generator) * np.float64(rules.step)
    pins = np.empty((0, sample.shape[1]))
    if learnt is not None and not rules.is_single:
        pins = learnt.labelled.feature[learnt.labelled.known >= 0] * np.float64(rules.step)
    cells = components = _cells(sample, n_cells, pins, generator)
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
        is_bound=rules.is_bound,
    )


def unbound(task: Pass) -> Pass:
    """The same pass with every component open to labelled pixels."""
    return replace(task, is_bound=False)


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


def _class_by_pins(cells: Components, labelled: Tile, rules: Rules) -> Integers:
    """(n_cells,) the known class that most labelled pixels in a cell have; -1 for cells with few or none.

    A cell among labelled pixels belongs to their class whatever its shape: it need not be guessed. But a few strays
    must not name a cell of something unknown, so a cell needs half the share of labelled pixels that all cells of the
    class together have.
    """
    pinning = labelled.known >= 0
    pins = Tile(0, labelled.feature[pinning], labelled.known[pinning])
    task = unbound(first_pass(cells, rules))
    count = np.zeros((len(cells.class_of), rules.n_known), np.int64)
    np.add.at(count, (draw_labels(pins, task), pins.known), 1)
    named, most = count.argmax(1), count.max(1)
    enough = moves.ENOUGH_PINS * moves.expected_pins(named, most, np.exp(cells.log_weight) * rules.n_pixels)
    return np.where((most > 0) & (most >= enough), named, -1)


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


def _sample(rules: Rules, read_pixels: gibbs.ReadPixels, generator: np.random.Generator) -> NDArray[np.int16]:
    """Features of all pixels, or of evenly spread runs of neighbours when there are many."""
    if rules.n_pixels <= SAMPLE_PIXELS:
        return read_pixels(0, rules.n_pixels).feature
    length = SAMPLE_PIXELS // SAMPLE_BLOCKS
    stride = rules.n_pixels / SAMPLE_BLOCKS
    firsts = [int((j + u) * (stride - 1)) for j, u in enumerate(generator.random(SAMPLE_BLOCKS))]
    firsts = [min(first, rules.n_pixels - length) for first in firsts]
    return np.concatenate([read_pixels(first, first + length).feature for first in firsts])


def _cells(sample: Floats, n_cells: tuple[int, int], pins: Floats, generator: np.random.Generator) -> Components:
    """k-means cells as components, each a class of its own, all with the pooled covariance within cells.

    Where labelled pixels lie they are divided further (`n_cells`: of all, and at most so many more). Each component is
    one more to find a class for, and without labels chains from many cells end in too many classes. Labels name the
    components about them, and there small components follow the border of a class better.
    """
    # Fewer pixels than features say nothing of a shape: 32 cells of 60 pixels with 90 features ended in 30 classes.
    most = max(1, len(sample) // sample.shape[1])
    coarse = _k_means(sample, min(n_cells[0], most), generator)
    cell = coarse.labels_.astype(np.int64)
    if n_cells[1] > 0 and len(pins) > 0:
        n_pins = np.bincount(coarse.predict(pins), minlength=len(coarse.cluster_centers_))
        cell = _divide(sample, cell, n_pins / max(1.0, len(pins) / n_cells[1]), generator)
    return _components(sample, cell)


def _divide(sample: Floats, cell: Integers, n_more: Floats, generator: np.random.Generator) -> Integers:
    """(n_sample,) cell of each pixel, after cells were divided into so many more; none has less than 2 on average."""
    size = np.bincount(cell, minlength=len(n_more))
    n_parts = np.minimum(1 + n_more.astype(np.int64), np.maximum(size // 2, 1))
    first = np.cumsum(n_parts) - n_parts
    out = first[cell]
    for chosen in np.flatnonzero(n_parts > 1):
        mine = np.flatnonzero(cell == chosen)
        out[mine] += _k_means(sample[mine], int(n_parts[chosen]), generator).labels_
    return np.asarray(np.unique(out, return_inverse=True)[1])


def _k_means(sample: Floats, n_cells: int, generator: np.random.Generator) -> "KMeans":
    """k-means with at most so many cells, none of them empty."""
    from sklearn.cluster import KMeans

    n_cells = min(n_cells, len(np.unique(sample, axis=0)))
    return KMeans(n_cells, n_init=1, max_iter=20, random_state=int(generator.integers(2**31))).fit(sample)


def _components(sample: Floats, cell: Integers) -> Components:
    """Cells as components of equal covariance."""
    n = np.bincount(cell)
    total = np.zeros((len(n), sample.shape[1]))
    np.add.at(total, cell, sample)
    mean = total / n[:, None]
    away = sample - mean[cell]
    covariance = away.T @ away / len(sample) + 1e-3 * np.eye(sample.shape[1])
    whiten = np.linalg.cholesky(np.linalg.inv(covariance)).T
    return Components(
        class_of=np.arange(len(n)),
        log_weight=np.log(n / len(sample)),
        mean=mean,
        centre=mean,
        whiten=np.repeat(whiten[None], len(n), 0),
        log_tail=-np.inf,
    )


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


def _class_density(tile: Tile, components: Components, step: float) -> Floats:
    density = np.empty(len(tile.feature))
    class_index = np.maximum(tile.known, 0).astype(np.int64)
    kernels.log_density(kernels.lay_out(tile.feature), class_index, np.float32(step), components.lanes(), density)
    return density
