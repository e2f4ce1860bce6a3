"""Moves that change the structure: births of components, and components changing class."""

from dataclasses import dataclass, replace

import numpy as np

from gibbsite import class_rules, kernels, statistics, streams
from gibbsite.state import Rules, State, name_classes, tidy
from gibbsite.statistics import Floats, Integers, Statistics
from gibbsite.streams import Purpose
from gibbsite.tiles import Anchors, Answer, Pass, Range, Tile, answer, no_anchors

ENOUGH_PINS = 0.5
"""Share of the labelled pixels to be expected in a component that are enough to name its class."""

MAX_BIRTHS = 128
"""Components one block scan may open on top of those it frees; never felt in practice."""


def block_size(most: int, n_pixels: int) -> int:
    """Pixels of a block: an eighth of all if there are few, and no more than `most`.

    A block is scanned pixel by pixel, a dozen times slower than the pass over the others: with a 64th of the pixels the
    scan takes a fifth of the time of the pass.
    """
    return min(most, max(64, min(n_pixels // 8, 512), n_pixels // 64))


def choose_block(sweep: int, rules: Rules) -> Range:
    """Ranks [start, stop) of the pixels that may open and close components in a sweep."""
    n_blocks = -(-rules.n_pixels // rules.birth_block)
    block = int(streams.generator(rules.seed, sweep, Purpose.BLOCKS).integers(n_blocks))
    return block * rules.birth_block, min((block + 1) * rules.birth_block, rules.n_pixels)


@dataclass(frozen=True)
class Scan:
    """What became of the block's pixels."""

    label: Integers
    """(n_block,) component of each, numbered as in the pass; after those of the pass come loose ones and new ones."""
    loose_class: Integers
    """Class of each component that is not of the pass, -1 where there is none."""
    n_loose: int
    """Components that were not of the pass before the scan."""


def scan_block(state: State, rules: Rules, task: Pass, block: Tile) -> Scan:
    """The block's own Gibbs scan, given this sweep's draw: it needs no answer of the tiles."""
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
        (block.known, task.trust),
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
    return Scan(label, loose_class, n_loose)


def take_over(state: State, task: Pass, reply: Answer, block: Tile, scan: Scan) -> tuple[State, int]:
    """The state after the tiles' answers and the scan, and the number of births.

    Components are still numbered as in the pass, empty ones among them.
    """
    n_explicit, n_more = len(task.components.class_of), len(scan.loose_class)
    whole = _widen(reply, n_more) + answer(block, scan.label, n_explicit + n_more, task)
    class_of = np.append(task.components.class_of, np.maximum(scan.loose_class, 0))
    state = name_classes(state, class_of, int(scan.loose_class.max(initial=-1)) + 1)
    state = replace(state, statistics=whole.statistics, anchors=whole.anchors, block_label=whole.label - 1)
    return state, int((whole.statistics.n[n_explicit + scan.n_loose :] > 0).sum())


def _widen(reply: Answer, n_more: int) -> Answer:
    """The answer with further, empty components."""
    width = reply.statistics.total.shape[1], reply.statistics.n_pinning.shape[1]
    empty = statistics.zeros(n_more, *width)
    nobody = no_anchors(n_more)
    anchors = Anchors(np.append(reply.anchors.order, nobody.order), np.append(reply.anchors.rank, nobody.rank))
    return Answer(statistics.concatenate([reply.statistics, empty]), anchors, reply.label)


def reassign_classes(state: State, rules: Rules) -> State:
    """The state after every component that no labelled pixel pins has drawn its class anew, one by one."""
    generator = streams.generator(rules.seed, state.sweep, Purpose.CLASSES)
    pinned = pinned_class(state.statistics, rules)
    order = generator.permutation(np.flatnonzero(pinned < 0))
    state = replace(state, class_of=np.where(pinned < 0, state.class_of, pinned))
    return choose_classes(state, rules, order, generator.random(len(order)))


def choose_classes(state: State, rules: Rules, order: Integers, uniform: Floats) -> State:
    """The state after these components, one by one, have left their class (-1: they had none) and drawn another."""
    moments, n_classes = statistics.moments(state.statistics, rules.step), len(state.class_id)
    rule = class_rules.Rule(rules.class_rule, rules.reach_weight, is_estimated=rules.constants is not None)
    seats = class_rules.seat(rule, moments, state.prior, state.class_of, n_classes)
    seats.choose(order, uniform)
    return tidy(name_classes(state, seats.guests.class_of, seats.n_classes), rules.n_known)


def pinned_class(sums: Statistics, rules: Rules) -> Integers:
    """(n_components,) known class to which labelled pixels pin a component, -1 where they do not.

    Where labels are trusted without limit those that sit in it do. Otherwise most of those that it fits best, wherever
    they sit: those that sit in it would confirm its class for ever, because the others leave it. Failing these, most of
    those that sit in it; and these before all if their class is about to be lost, which is when less than half of its
    votes are for components of its own.
    """
    if rules.n_known == 0:
        return np.full(len(sums), -1)
    if rules.trust == np.inf:
        return np.where(sums.n_pinning.any(1), sums.n_pinning.argmax(1), -1)
    seated, voted = named_class(sums.n_pinning, sums.n), named_class(sums.n_votes, sums.n)
    named = np.where(voted >= 0, voted, seated)
    own = (sums.n_votes * (named[:, None] == np.arange(rules.n_known))).sum(0)
    is_endangered = 2 * own < sums.n_votes.sum(0)
    return np.where((seated >= 0) & is_endangered[seated], seated, named)


def named_class(count: Integers, n: Integers | Floats) -> Integers:
    """(n_components,) the known class most counted in a component, -1 where that is few or none.

    A few strays must not name a component of something unknown, so it needs half of the share of labelled pixels that
    the components named after the class have together.
    """
    named, most = count.argmax(1), count.max(1)
    return np.where((most > 0) & (most >= ENOUGH_PINS * expected_pins(named, most, n)), named, -1)


def expected_pins(named: Integers, most: Integers, n: Integers | Floats) -> Floats:
    """(n_components,) labelled pixels to be expected, had all components named after a class the same share of them."""
    is_named = most > 0
    n_pixels = np.bincount(named[is_named], n[is_named], named.max(initial=0) + 1)
    n_pins = np.bincount(named[is_named], most[is_named], len(n_pixels))
    return np.asarray((n_pins / np.maximum(n_pixels, 1.0))[named] * n)
