"""How well maps agree with known truth: the paper's mean F1, and two scores that need no names.

Everything is computed from one confusion matrix C (truth × predicted); those of several scenes add up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

UNMATCHED = -1
"""Column of a truth class that no predicted class stands for."""


@dataclass(frozen=True)
class ClassScores:
    """F1 of each truth class."""

    f1: NDArray[np.float64]
    """(n_truth,) from 0 to 1; 0 where nothing was predicted for the class, NaN where it has no pixel."""
    matched: Integers
    """(n_truth,) the predicted class that was compared, -1 none."""

    @property
    def mean(self) -> float:
        """The mean over classes that have pixels."""
        return float(np.nanmean(self.f1)) if np.isfinite(self.f1).any() else 0.0


def confusion(truth: NDArray[np.integer], predicted: NDArray[np.integer], shape: tuple[int, int]) -> Integers:
    """Counts (n_truth, n_predicted) = shape of pixels by truth and predicted index, both from 0."""
    n_truth, n_predicted = shape
    cell = truth.astype(np.int64).ravel() * n_predicted + predicted.ravel()
    return np.bincount(cell, minlength=n_truth * n_predicted).reshape(shape).astype(np.int64)


def column_of_truth(truth_names: Sequence[str], predicted_names: Sequence[str], is_known: Sequence[bool]) -> Integers:
    """For each truth class, the known predicted class of its name, -1 if the model was never shown it.

    Case and blanks do not count, as in the labels.
    """
    column = {
        _spelling(name): index
        for index, (name, known) in enumerate(zip(predicted_names, is_known, strict=True))
        if known
    }
    return np.array([column.get(_spelling(name), UNMATCHED) for name in truth_names], dtype=np.int64)


def class_scores(counts: Integers, observed_column: Integers, is_known: NDArray[np.bool_]) -> ClassScores:
    """F1 of each truth class (the paper, eq. mean_f1).

    counts: (n_truth, n_predicted); observed_column: (n_truth,) from `column_of_truth`; is_known:
    (n_predicted,). An observed class is compared with the known class of its name; an unobserved one with
    that discovered class, never a known one, which holds most of its pixels (the first of equals).
    """
    row, column = counts.sum(axis=1), counts.sum(axis=0)
    matched = observed_column.copy()
    discovered = np.flatnonzero(~is_known)
    for truth in np.flatnonzero(observed_column == UNMATCHED):
        found = counts[truth, discovered]
        if found.size and found.max() > 0:
            matched[truth] = discovered[found.argmax()]
    f1 = np.zeros(len(counts))
    for truth in np.flatnonzero(matched != UNMATCHED):
        together = column[matched[truth]] + row[truth]
        f1[truth] = 2.0 * counts[truth, matched[truth]] / together if together else 0.0
    f1[row == 0] = np.nan
    return ClassScores(f1, matched)


def adjusted_rand_index(counts: Integers) -> float:
    """Agreement of two partitions over pairs of pixels, 0 by chance, 1 when equal (Hubert & Arabie 1985)."""
    pairs = _pairs(counts).sum()
    truth_pairs, predicted_pairs = _pairs(counts.sum(axis=1)).sum(), _pairs(counts.sum(axis=0)).sum()
    all_pairs = _pairs(counts.sum())
    by_chance = truth_pairs * predicted_pairs / all_pairs if all_pairs else 0.0
    most = (truth_pairs + predicted_pairs) / 2.0
    # Both partitions are one block, or both are single pixels: they are equal.
    return float((pairs - by_chance) / (most - by_chance)) if most != by_chance else 1.0


def normalised_mutual_information(counts: Integers) -> float:
    """Mutual information over the mean of the two entropies: 0 for independent partitions, 1 for equal."""
    share = counts / max(1, counts.sum())
    truth, predicted = _entropy(share.sum(axis=1)), _entropy(share.sum(axis=0))
    if truth + predicted == 0.0:
        return 1.0
    return float(max(0.0, 2.0 * (truth + predicted - _entropy(share.ravel())) / (truth + predicted)))


def _pairs(count: Integers) -> NDArray[np.float64]:
    count = np.asarray(count, np.float64)
    return count * (count - 1.0) / 2.0


def _entropy(share: NDArray[np.float64]) -> float:
    share = share[share > 0.0]
    return float(-(share * np.log(share)).sum())


def _spelling(name: str) -> str:
    return " ".join(name.split()).casefold()
