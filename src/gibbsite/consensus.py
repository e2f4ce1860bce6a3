"""What the chains of a table say together: their draws, and the classes that these have in common.

One sweep is a matter of chance where classes overlap, and so is where one chain has settled: the mean over many is
right more often.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gibbsite import features, maps, statistics
from gibbsite.components import Components
from gibbsite.fusion import group
from gibbsite.niw import Prior
from gibbsite.statistics import Floats, Integers
from gibbsite.tiles import Tile, sum_by_label

MATCHED_ROWS = 20_000
"""About so many rows, spread over the table, tell which classes of two sweeps are the same."""
ROWS_OF_CLASS = 50
"""And so many of every class: a rare one may have none among them."""

TOUCHING = 0.01
"""Two classes may be one where the rows of either are the other's with such a probability, on average: clusters that
lie apart are no parts of one cloud, though a Gaussian about all of them may fit them better than two would."""

Features = NDArray[np.int16]


@dataclass(frozen=True)
class Consensus:
    """Draws of all chains, and for which common class each of their classes stands."""

    draws: list[Components]
    stands_for: list[Integers]
    """(n_classes of the draw,) of each draw; -1 for what stands for none."""
    n_classes: int
    """In common; the known ones come first."""

    def probability(self, feature: Features) -> Floats:
        """(n_rows, n_classes) mean of the draws' probabilities."""
        # Not 0: a row far from all others may be of classes that were left out.
        total = np.full((len(feature), self.n_classes), np.finfo(np.float64).tiny)
        for drawn, stands_for in zip(self.draws, self.stands_for, strict=True):
            probability = maps.class_probabilities(feature, [drawn], features.FIXED_STEP)
            left = np.flatnonzero(stands_for >= 0)
            # One of each common class at a time: two of a draw may stand for the same.
            while left.size:
                common, one = np.unique(stands_for[left], return_index=True)
                total[:, common] += probability[:, left[one]]
                left = np.delete(left, one)
        return np.asarray(total / total.sum(1, keepdims=True))

    def n_components(self) -> Integers:
        """(n_classes,) components of each class, the mean over the draws that have it."""
        n_components, n_draws = np.zeros(self.n_classes), np.zeros(self.n_classes)
        for drawn, stands_for in zip(self.draws, self.stands_for, strict=True):
            is_common = stands_for >= 0
            count = np.bincount(drawn.class_of, minlength=len(stands_for))
            np.add.at(n_components, stands_for[is_common], count[is_common])
            n_draws[np.unique(stands_for[is_common])] += 1.0
        return np.rint(n_components / n_draws).astype(np.int64)

    def moved(self, place: Integers) -> "Consensus":
        """The same with each common class in this place; several may share one, and -1 leaves a class out."""
        # The last one is for classes that stand for none: -1.
        place = np.append(place, -1)
        return Consensus(self.draws, [place[one] for one in self.stands_for], int(place.max()) + 1)

    def joined(self, rows: Features, probability: Floats, n_known: int, prior: Prior) -> "Consensus":
        """The same after discovered classes that touch became one where they are better one Gaussian than two.

        By the joint of igmm under this prior, from the rows that each of them wins by these probabilities. Chains cut a
        broad cloud where its cells happened to lie, and nothing in a sweep would ever join what is in two classes.
        """
        if self.n_classes < n_known + 2:
            return self
        winner = probability.argmax(1)
        nobody = np.full(len(rows), -1, np.int16)
        sums = sum_by_label(Tile(0, rows, nobody), winner, self.n_classes, 0)[n_known:]
        shared = np.stack([probability[winner == n_known + k, n_known:].sum(0) for k in range(len(sums))])
        shared /= np.maximum(sums.n, 1)[:, None]
        touching = np.maximum(shared, shared.T) >= TOUCHING
        moments = statistics.moments(sums, features.FIXED_STEP)
        first = group(moments, prior, np.zeros(len(sums), np.bool_), touching)
        return self.moved(np.append(np.arange(n_known), n_known + np.unique(first, return_inverse=True)[1]))


def match(by_chain: list[list[Components]], feature: Features, n_known: int) -> Consensus:
    """The consensus of chains with as many draws each, the best first.

    They take turns, so that none of them says alone which classes there are.
    """
    draws = [drawn for turn in zip(*by_chain, strict=True) for drawn in turn]
    some = feature[_matched_rows(feature, [drawn for one in by_chain for drawn in (one[0], one[-1])])]
    answers = (maps.class_probabilities(some, [drawn], features.FIXED_STEP) for drawn in draws)
    stands_for, mean = maps.common_classes(answers, n_known)
    # What is seen in few draws and never likeliest is left out.
    n_seen = np.bincount(np.concatenate(stands_for), minlength=mean.shape[1])
    is_kept = np.isin(np.arange(mean.shape[1]), mean.argmax(1)) | (2 * n_seen >= len(draws))
    return Consensus(draws, stands_for, mean.shape[1]).moved(np.where(is_kept, np.cumsum(is_kept) - 1, -1))


def _matched_rows(feature: Features, draws: list[Components]) -> Integers:
    """Numbers of rows spread over the table, and of some of each class of these draws; all rows of a small table."""
    n_rows = len(feature)
    if n_rows <= MATCHED_ROWS:
        return np.arange(n_rows)
    chosen = [np.arange(0, n_rows, -(-n_rows // MATCHED_ROWS))]
    for drawn in draws:
        parts = (feature[start : start + MATCHED_ROWS] for start in range(0, n_rows, MATCHED_ROWS))
        winner = [maps.class_probabilities(part, [drawn], features.FIXED_STEP).argmax(1) for part in parts]
        by_class = np.argsort(np.concatenate(winner), kind="stable")
        ends = np.cumsum(np.bincount(np.concatenate(winner)))
        chosen += [rows[:: -(-len(rows) // ROWS_OF_CLASS) or 1] for rows in np.split(by_class, ends)]
    return np.unique(np.concatenate(chosen))
