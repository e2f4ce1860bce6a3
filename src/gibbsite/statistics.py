"""What a tile answers: integer sums per component. `+` is the whole reduction.

Features are fixed point, so sums of them and of their products are integers: exact, and the same in any order, for any
tile size and any number of workers. They become float64 once, in `moments`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Statistics:
    """Sums over the pixels of each component, in units of the fixed-point step."""

    n: Integers
    """(n_components,) pixels."""
    total: Integers
    """(n_components, n_features) Σx."""
    outer: Integers
    """(n_components, n_features, n_features) Σxxᵀ."""
    n_pinning: Integers
    """(n_components, n_known) labelled pixels of each known class that pin the component to it."""
    n_votes: Integers
    """(n_components, n_known) labelled pixels of each known class that fit the component best of all, wherever they
    sit."""

    def __add__(self, other: "Statistics") -> "Statistics":
        return Statistics(
            self.n + other.n,
            self.total + other.total,
            self.outer + other.outer,
            self.n_pinning + other.n_pinning,
            self.n_votes + other.n_votes,
        )

    def __getitem__(self, chosen: NDArray[np.integer] | NDArray[np.bool_] | slice) -> "Statistics":
        """The sums of some components, in the given order."""
        return Statistics(*(array[chosen] for array in self._arrays()))

    def __len__(self) -> int:
        return len(self.n)

    def _arrays(self) -> tuple[Integers, ...]:
        return self.n, self.total, self.outer, self.n_pinning, self.n_votes

    def __reduce__(self) -> tuple[Callable[..., "Statistics"], tuple[Integers, ...]]:
        """As it travels: Σxxᵀ is symmetric, so its upper triangle is enough."""
        n_components, n_features = self.total.shape
        upper, _ = _triangle(n_features)
        triangle = np.take(self.outer.reshape(n_components, n_features**2), upper, axis=1)
        return _arrived, (self.n, self.total, triangle, self.n_pinning, self.n_votes)

    @cached_property
    def moments_in_steps(self) -> tuple[Floats, Floats]:
        """Mean and scatter in steps and steps²; kept, because several parts of a sweep ask for them."""
        n = self.n.astype(np.float64)
        mean = self.total / np.maximum(n, 1.0)[:, None]
        scatter = self.outer - n[:, None, None] * mean[:, :, None] * mean[:, None, :]
        # One pixel has no scatter; rounding of the difference above must not give it one.
        scatter[self.n < 2] = 0.0
        return mean, scatter


def _arrived(n: Integers, total: Integers, triangle: Integers, *by_known: Integers) -> Statistics:
    n_components, n_features = total.shape
    _, place = _triangle(n_features)
    outer = np.take(triangle, place, axis=1).reshape(n_components, n_features, n_features)
    return Statistics(n, total, outer, *by_known)


@cache
def _triangle(n_features: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where the upper triangle stands in a flat square matrix, and where each value of that stands in the triangle."""
    row, column = np.triu_indices(n_features)
    place = np.empty((n_features, n_features), np.intp)
    place[row, column] = place[column, row] = np.arange(len(row))
    return row * n_features + column, place.ravel()


@dataclass(frozen=True)
class Moments:
    """The same in feature units, float64."""

    n: Floats
    """(n_components,) pixels."""
    mean: Floats
    """(n_components, n_features); zero for an empty component."""
    scatter: Floats
    """(n_components, n_features, n_features) Σ(x − mean)(x − mean)ᵀ."""


def zeros(n_components: int, n_features: int, n_known: int) -> Statistics:
    """Statistics of no pixels."""
    return Statistics(
        np.zeros(n_components, np.int64),
        np.zeros((n_components, n_features), np.int64),
        np.zeros((n_components, n_features, n_features), np.int64),
        np.zeros((n_components, n_known), np.int64),
        np.zeros((n_components, n_known), np.int64),
    )


def concatenate(parts: list[Statistics]) -> Statistics:
    """The components of all parts, one after the other."""
    return Statistics(*map(np.concatenate, zip(*(part._arrays() for part in parts), strict=True)))


def moments(statistics: Statistics, step: float) -> Moments:
    """Counts, means and scatters: the one place where integers become floats."""
    mean, scatter = statistics.moments_in_steps
    return Moments(statistics.n.astype(np.float64), mean * step, scatter * step**2)
