"""Slow, obvious twins of the fast code, under the same names."""

from collections.abc import Iterator, Sequence
from typing import Any

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


# --- the sampler: slow, obvious twins and exhaustive enumeration ---


def set_partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """All partitions of the items."""
    if not items:
        yield []
        return
    first, *rest = items
    for partition in set_partitions(rest):
        yield [[first], *partition]
        for i in range(len(partition)):
            yield [*partition[:i], [first, *partition[i]], *partition[i + 1 :]]


def two_level_partitions(n: int) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
    """All (components of points, classes of components): 1, 3, 12, 60, 358, 2471 for 1 .. 6 points."""
    for components in set_partitions(list(range(n))):
        for classes in set_partitions(list(range(len(components)))):
            yield components, classes


def log_gaussian(x: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    """log N(x; mean, covariance)."""
    away = x - mean
    _, log_det = np.linalg.slogdet(2 * np.pi * covariance)
    return float(-0.5 * log_det - 0.5 * away @ np.linalg.solve(covariance, away))


def sum_by_label(feature: np.ndarray, label: np.ndarray, n_components: int) -> tuple[np.ndarray, ...]:
    """n, Σx and Σxxᵀ of each component, in whole numbers."""
    n = np.zeros(n_components, int)
    total = np.zeros((n_components, feature.shape[1]), int)
    outer = np.zeros((n_components, feature.shape[1], feature.shape[1]), int)
    for x, c in zip(feature.astype(int), label, strict=True):
        n[c] += 1
        total[c] += x
        outer[c] += np.outer(x, x)
    return n, total, outer


def class_probabilities(x: np.ndarray, components: Any) -> np.ndarray:
    """(n_pixels, n_classes) probabilities of the classes given drawn components."""
    out = np.zeros((len(x), len(components.centre)))
    for i, pixel in enumerate(x):
        for c, k in enumerate(components.class_of):
            covariance = np.linalg.inv(components.whiten[k].T @ components.whiten[k])
            out[i, k] += np.exp(components.log_weight[c] + log_gaussian(pixel, components.mean[c], covariance))
    return out / out.sum(1, keepdims=True)
