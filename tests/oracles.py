"""Slow, obvious twins of the fast code, under the same names."""

from collections.abc import Sequence

import numpy as np


def class_scores(counts: np.ndarray, observed_column: Sequence[int], is_known: Sequence[bool]) -> list[float]:
    """F1 of each truth class, cell by cell as eq. mean_f1 of the paper is written."""
    n_truth, n_predicted = counts.shape
    scores = []
    for k in range(n_truth):
        if observed_column[k] >= 0:
            column = observed_column[k]
        else:
            column, most = -1, 0
            for j in range(n_predicted):
                if not is_known[j] and counts[k][j] > most:
                    column, most = j, counts[k][j]
        row_sum = sum(int(counts[k][j]) for j in range(n_predicted))
        if row_sum == 0:
            scores.append(float("nan"))
        elif column < 0:
            scores.append(0.0)
        else:
            column_sum = sum(int(counts[i][column]) for i in range(n_truth))
            scores.append(2 * int(counts[k][column]) / (column_sum + row_sum))
    return scores


def confusion(truth: Sequence[int], predicted: Sequence[int], shape: tuple[int, int]) -> np.ndarray:
    """Counts, one pixel at a time."""
    counts = np.zeros(shape, int)
    for row, column in zip(truth, predicted, strict=True):
        counts[row, column] += 1
    return counts
