"""What happens where the pixels are: a tile and a pass go in, sums come out."""

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels, statistics
from gibbsite.components import Components
from gibbsite.errors import GibbsiteError
from gibbsite.statistics import Integers, Statistics

NOBODY = np.uint64(2**64 - 1)
"""Order of the anchor of a component that has none."""

NO_KEY = np.uint64(0)
"""Of an order that nobody asks for."""

Range = tuple[int, int]

Meanwhile = Callable[[], object]
"""Work of the client that needs no answer of the tiles."""


def nothing() -> None:
    """What a client does that only waits."""


@dataclass(frozen=True)
class Tile:
    """Pixels of consecutive rank."""

    first: int
    """Rank of the first pixel, counted over all scenes."""
    feature: NDArray[np.int16]
    """(n_pixels, n_features) fixed point."""
    known: NDArray[np.int16]
    """(n_pixels,) known class of a labelled pixel that pins, -1 otherwise."""
    plane: tuple[NDArray[np.int16], int] | None = None
    """The features laid out for the kernels, of this tile or of one it is part of, and where its pixels begin there."""

    @property
    def stop(self) -> int:
        """Rank after the last pixel."""
        return self.first + len(self.feature)

    def part(self, start: int, stop: int) -> "Tile":
        """The pixels of rank start .. stop − 1."""
        low, high = start - self.first, stop - self.first
        plane = None if self.plane is None else (self.plane[0], self.plane[1] + low)
        return Tile(start, self.feature[low:high], self.known[low:high], plane)

    def laid_out(self) -> "Tile":
        """The tile with its plane, for those who pass over it many times."""
        return self if self.plane is not None else replace(self, plane=(kernels.lay_out(self.feature), 0))


@dataclass(frozen=True)
class Anchors:
    """The first pixel of each component in this sweep's random order of the pixels.

    Without anchors a parallel sweep is not exact: a lonely pixel would leave its component for good, while no pixel
    outside the block can open one, so small components would die more often than they are born. With them, anchors stay
    where they are and every other pixel chooses among the components whose anchor comes before it. The choice open to
    a pixel is then the same before and after the sweep, which makes the sweep reversible. The order is drawn anew each
    sweep; the anchor of a component of n pixels stands at about 1/n of it, so it bars hardly any pixel from a large
    component.
    """

    order: NDArray[np.uint64]
    """(n_components,) place of the anchor in the order; NOBODY when all pixels are in the block."""
    rank: Integers
    """(n_components,) rank of the anchor, -1 for nobody."""

    def __add__(self, other: "Anchors") -> "Anchors":
        is_first = (self.order < other.order) | ((self.order == other.order) & (self.rank <= other.rank))
        return Anchors(np.where(is_first, self.order, other.order), np.where(is_first, self.rank, other.rank))

    def __getitem__(self, chosen: NDArray[np.integer] | NDArray[np.bool_]) -> "Anchors":
        return Anchors(self.order[chosen], self.rank[chosen])


def no_anchors(n_components: int) -> Anchors:
    """Components without anchors."""
    return Anchors(np.full(n_components, NOBODY), np.full(n_components, -1))


@dataclass(frozen=True)
class Pass:
    """One pass over all pixels but those of the block: what every tile is told."""

    components: Components
    """The drawn components."""
    key: np.uint64
    """Under which pixels draw their random number."""
    step: float
    """Fixed-point step of the features."""
    skip: Range = (0, 0)
    """Ranks [start, stop) of this sweep's block, which take no part."""
    order_key: np.uint64 = NO_KEY
    """Of this sweep's order of the pixels."""
    anchors: Anchors | None = None
    """Of the components; without them every pixel may choose every component."""
    next_block: Range = (0, 0)
    """Ranks of the next sweep's block, whose labels are wanted."""
    next_order_key: np.uint64 = NO_KEY
    """Of the next sweep's order, whose anchors are wanted."""
    n_known: int = 0
    """Known classes."""
    trust: float = np.inf
    """Log odds that the label of a pixel that pins is right; infinite: it keeps to the components of its class."""
    is_voting: bool = False
    """Whether it is wanted which component fits each labelled pixel best, whatever its class."""

    def answer(self, tile: Tile) -> "Answer":
        """The tile's answer: a pure function of its pixels and the pass."""
        n_components = len(self.components.class_of)
        # A tile inside the block answers with the sums of no pixels.
        parts = outside(tile, self.skip) or [tile.part(tile.first, tile.first)]
        found = functools.reduce(
            operator.add, (answer(part, draw_labels(part, self), n_components, self) for part in parts)
        )
        if self.is_voting:
            # Those of the block vote too, though it is scanned elsewhere.
            found.statistics.n_votes[:] = count_votes(tile, self)
        return found


@dataclass(frozen=True)
class Answer:
    """What a tile answers. `+` is the whole reduction, in any order."""

    statistics: Statistics
    """Sums over the pixels of each component."""
    anchors: Anchors
    """For the next sweep."""
    label: Integers
    """(n_next_block,) 1 + component of the next block's pixels, 0 for pixels of other tiles."""

    def __add__(self, other: "Answer") -> "Answer":
        return Answer(self.statistics + other.statistics, self.anchors + other.anchors, self.label + other.label)


class Task(Protocol):
    """What a tile can answer: a pass, or a replay of one."""

    def answer(self, tile: Tile) -> Any:
        """The tile's answer: a pure function of its pixels and the task. Answers of tiles are added up."""


def tally(tile: Tile, task: Task) -> Any:
    """The tile's answer."""
    return task.answer(tile)


def draw_labels(tile: Tile, task: Pass) -> Integers:
    """(n_pixels,) component drawn by each pixel; anchors stay."""
    label = np.empty(len(tile.feature), np.int64)
    n_components = len(task.components.class_of)
    order = np.zeros(n_components, np.uint64) if task.anchors is None else task.anchors.order
    keys = (task.key, task.order_key)
    step = np.float32(task.step)
    labels = (tile.known, np.float32(task.trust / np.log(2.0)))
    lanes = task.components.lanes()
    plane, start = tile.plane or (kernels.lay_out(tile.feature), 0)
    if kernels.indicate(plane, start, labels, tile.first, keys, step, lanes, order, label):
        raise GibbsiteError(
            f"pixel {tile.first + int(np.argmin(label))} fits no component: the odds are not numbers; "
            "bring the settings of fit nearer to their defaults"
        )
    if task.anchors is not None:
        is_here = (task.anchors.rank >= tile.first) & (task.anchors.rank < tile.stop)
        label[task.anchors.rank[is_here] - tile.first] = np.flatnonzero(is_here)
    return label


def answer(tile: Tile, label: Integers, n_components: int, task: Pass) -> Answer:
    """The answer of pixels that have these labels."""
    anchors = no_anchors(n_components)
    kernels.find_anchors(label, tile.first, task.next_order_key, task.next_block, anchors.order, anchors.rank)
    wanted = np.zeros(task.next_block[1] - task.next_block[0], np.int64)
    low, high = max(tile.first, task.next_block[0]), min(tile.stop, task.next_block[1])
    if low < high:
        wanted[low - task.next_block[0] : high - task.next_block[0]] = 1 + label[low - tile.first : high - tile.first]
    return Answer(sum_by_label(tile, label, n_components, task.n_known), anchors, wanted)


def sum_by_label(tile: Tile, label: Integers, n_components: int, n_known: int) -> Statistics:
    """The statistics of a tile's pixels under these labels."""
    sums = statistics.zeros(n_components, tile.feature.shape[1], n_known)
    kernels.add_up(tile.feature, label, sums.n, sums.total, sums.outer)
    pins = np.flatnonzero(tile.known >= 0)
    np.add.at(sums.n_pinning, (label[pins], tile.known[pins]), 1)
    return sums


def count_votes(tile: Tile, task: Pass) -> Integers:
    """(n_components, n_known) pinning pixels of each known class that fit a component best, wherever they sit."""
    votes = np.zeros((len(task.components.class_of), task.n_known), np.int64)
    voter = np.flatnonzero(tile.known >= 0)
    # With all pixels in the block there may be no component to vote for.
    if votes.size and voter.size:
        best = np.empty(len(voter), np.int64)
        kernels.fit_best(kernels.lay_out(tile.feature[voter]), np.float32(task.step), task.components.lanes(), best)
        np.add.at(votes, (best, tile.known[voter]), 1)
    return votes


def outside(tile: Tile, skip: Range) -> list[Tile]:
    """The tile less the ranks to skip, as at most two tiles."""
    if skip[0] >= skip[1]:
        return [tile]
    ranges = [(tile.first, min(tile.stop, skip[0])), (max(tile.first, skip[1]), tile.stop)]
    return [tile.part(start, stop) for start, stop in ranges if start < stop]
