"""A pass drawn once more, in which the pixels of some components take sides: what a tile does for splits and merges.

Labels are a pure function of the pass, so tiles draw them again instead of remembering them.
"""

from dataclasses import dataclass

import numpy as np

from gibbsite import kernels, statistics
from gibbsite.statistics import Floats, Integers, Statistics
from gibbsite.tiles import Anchors, Pass, Tile, draw_labels, no_anchors, outside, sum_by_label

LOG_Q_STEP = 2.0**-20
"""Log probabilities of sides are added as whole numbers of this, so that sums do not depend on order."""


@dataclass(frozen=True)
class Parts:
    """What a tile answers: the two sides of each proposal. `+` is the whole reduction."""

    statistics: Statistics
    """(n_proposals) sums over the pixels of side 1."""
    log_q: Integers
    """(n_proposals, 2) log probability of these sides, and of the opposite ones, in steps."""
    anchors: Anchors
    """(2 n_proposals) of sides 0 and 1 of each proposal, for the next sweep."""
    side: Integers
    """(n_next_block,) 1 + side of the next block's pixels; 0 for pixels of other tiles and without a proposal."""

    def __add__(self, other: "Parts") -> "Parts":
        return Parts(
            self.statistics + other.statistics,
            self.log_q + other.log_q,
            self.anchors + other.anchors,
            self.side + other.side,
        )


@dataclass(frozen=True)
class Replay:
    """A pass whose labels are drawn again, and whose pixels then take sides."""

    task: Pass
    """The pass of this sweep."""
    proposal_of: Integers
    """(n_components,) proposal a component belongs to, or -1; numbered as in the pass."""
    fixed_side: Integers
    """(n_components,) side of a component that is to merge; -1: its pixels draw."""
    direction: Floats
    """(n_proposals, n_features)."""
    threshold: Floats
    """(n_proposals,)."""
    key: np.uint64
    """Under which pixels draw their side."""

    def answer(self, tile: Tile) -> Parts:
        """The tile's parts: a pure function of its pixels and the replay."""
        found = [self.part(part, draw_labels(part, self.task)) for part in outside(tile, self.task.skip)]
        return sum(found, self._nothing())

    def part(self, tile: Tile, label: Integers) -> Parts:
        """The parts of pixels that have these components."""
        proposal = self.proposal_of[label]
        mine = np.flatnonzero(proposal >= 0)
        side = np.zeros(len(label), np.int64)
        log_q = np.zeros((len(self.direction), 2), np.int64)
        launch = (self.direction * self.task.step, self.threshold, 1.0 / LOG_Q_STEP)
        kernels.take_sides(tile.feature, tile.first, (proposal, self.fixed_side[label]), launch, self.key, side, log_q)
        ones = mine[side[mine] == 1]
        chosen = Tile(0, tile.feature[ones], tile.known[ones])
        sums = sum_by_label(chosen, proposal[ones], len(self.direction), self.task.n_known)
        nothing, block = self._nothing(), self.task.next_block
        low, high = max(tile.first, block[0]), min(tile.stop, block[1])
        if low < high:
            here = slice(low - tile.first, high - tile.first)
            nothing.side[low - block[0] : high - block[0]] = np.where(proposal[here] >= 0, 1 + side[here], 0)
        return Parts(sums, log_q, self._find_anchors(tile, proposal, side), nothing.side)

    def _find_anchors(self, tile: Tile, proposal: Integers, side: Integers) -> Anchors:
        n_sides = 2 * len(self.direction)
        # Pixels without a proposal share a place of their own, which is dropped.
        anchors = no_anchors(n_sides + 1)
        place = np.where(proposal >= 0, 2 * proposal + side, n_sides)
        task = self.task
        kernels.find_anchors(place, tile.first, task.next_order_key, task.next_block, anchors.order, anchors.rank)
        return anchors[np.arange(n_sides)]

    def _nothing(self) -> Parts:
        n_proposals, n_features = self.direction.shape
        n_block = self.task.next_block[1] - self.task.next_block[0]
        return Parts(
            statistics.zeros(n_proposals, n_features, self.task.n_known),
            np.zeros((n_proposals, 2), np.int64),
            no_anchors(2 * n_proposals),
            np.zeros(n_block, np.int64),
        )
