"""A table of rows whose true classes are known, and how columns become features."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows with known truth."""

    x: Floats
    """(n_rows, n_features)"""
    truth: Integers
    """(n_rows) index into `names`"""
    names: tuple[str, ...]
    """Of the classes."""
    is_given: NDArray[np.bool_] | None = None
    """(n_rows) rows whose class is given and that are not scored; None: the protocol draws a share of them."""

    @classmethod
    def of(cls, x: NDArray[np.floating], label: NDArray[np.integer]) -> "Table":
        """The table of rows and class numbers of any range."""
        number, truth = np.unique(label, return_inverse=True)
        return cls(np.asarray(x, np.float64), truth.astype(np.int64), tuple(str(n) for n in number))

    @property
    def by_size(self) -> Integers:
        """(n_classes) the classes, the most abundant first."""
        return np.argsort(-np.bincount(self.truth, minlength=len(self.names)), kind="stable")


def whitened(x: NDArray[np.floating], n_features: int) -> Floats:
    """Whitened principal components of the standardised columns that vary."""
    x = x[:, x.std(0) > 0].astype(np.float64)
    left, _, axes = np.linalg.svd((x - x.mean(0)) / x.std(0), full_matrices=False)
    # The sign of a component is the solver's choice: the largest weight is made positive.
    sign = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(1)])
    return np.asarray((left * sign)[:, :n_features] * np.sqrt(len(x)))
