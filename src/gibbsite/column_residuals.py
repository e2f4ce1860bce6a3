"""Columns that others nearly tell: what they say beyond these takes their place.

Ψ0 = I expects a standard deviation of 1 in every direction. Where columns are nearly combinations of others (bands of
spectra, sums, copies), rows hardly vary in some directions; there the prior outweighs the rows, the more so the fewer
they are, so that classes seem better the larger they are, and all fall together.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NEARLY = 0.03
"""Share of a column's variance beyond which it says enough of its own to be taken as it is."""
NOTHING = 1e-4
"""Share below which what it says is rounding, and it is left out."""
ROWS_PER_COLUMN = 2
"""In fewer rows, columns are combinations of others by chance."""
LEAST_DEVIATION = 0.5
"""Of a column in standard deviations: less is what rounding leaves of a constant."""
LEAST_RANGE = 1.0
"""Standard deviations from the 1 % to the 99 % quantile of a residual; less, and a few rows make it up. In a normal one
they are 4.7 apart, in one of two values 2."""
ALIKE = 1e-9
"""Shares that differ by less do so by rounding, which must not choose columns; values that do are one."""


def find_axes(standard: Floats) -> Floats | None:
    """Axes (n_columns, n_axes) by which rows (n_rows, n_columns) are to be multiplied; None: they are good as they are.

    The first axes are columns, chosen one by one, each the one the chosen ones tell least of; the others are the
    residuals of further columns to all before, of variance 1.
    """
    n_rows, n_columns = standard.shape
    if n_rows < ROWS_PER_COLUMN * n_columns:
        return None
    deviation = standard.std(0)
    deviation = np.where(deviation > LEAST_DEVIATION, deviation, np.inf)
    away = (standard - standard.mean(0)) / deviation
    correlation = away.T @ away / n_rows
    np.fill_diagonal(correlation, np.isfinite(deviation))
    order, factor, share = _pivots(correlation)
    n_kept = int((share >= NEARLY).sum())
    if n_kept in (0, n_columns):
        return None
    kept, others = np.zeros((n_columns, n_kept)), np.zeros((n_columns, len(order) - n_kept))
    kept[np.sort(order[:n_kept]), np.arange(n_kept)] = 1.0
    # A row of the inverse takes from a column what those before it tell of it, and scales what is left.
    others[order] = solve_triangular(factor[order], np.eye(len(order)), lower=True)[n_kept:].T / deviation[order, None]
    step = np.array([_step(column) for column in standard.T]) if others.size else np.zeros(n_columns)
    return np.hstack([kept, others[:, [_says_something(standard, step, axis) for axis in others.T]]])


def project(standard: Floats, axes: Floats | None) -> Floats:
    """The rows on these axes, if any, each the same whatever rows stand beside it (BLAS does not grant that)."""
    if axes is None:
        return standard
    columns, out = np.ascontiguousarray(standard.T), np.zeros((axes.shape[1], len(standard)))
    for number, column in zip(*np.nonzero(axes.T), strict=True):
        out[number] += axes[column, number] * columns[column]
    return np.ascontiguousarray(out.T)


def _pivots(correlation: Floats) -> tuple[Integers, Floats, Floats]:
    """Columns in turn, each the one that those before tell least of; the Cholesky factor (n_columns, n_chosen) of their
    correlation, and the share of its variance (n_chosen,) that each has left."""
    share, factor = correlation.diagonal().copy(), np.zeros_like(correlation)
    order: list[int] = []
    left: list[float] = []
    while len(order) < len(share) and share.max() >= NOTHING:
        n, chosen = len(order), int(np.argmax(share >= share.max() - ALIKE))
        factor[:, n] = (correlation[:, chosen] - factor[:, :n] @ factor[chosen, :n]) / np.sqrt(share[chosen])
        order.append(chosen)
        left.append(float(share[chosen]))
        share = share - np.square(factor[:, n])
        share[order] = -1.0
    return np.array(order, np.int64), factor[:, : len(order)], np.array(left)


def _says_something(standard: Floats, step: Floats, axis: Floats) -> bool:
    """Whether a residual of variance 1 is more than the rounding of its columns, and more than a few rows."""
    if np.square(axis * step).sum() >= 1.0:
        return False
    low, high = np.quantile(standard @ axis, [0.01, 0.99])
    return bool(high - low > LEAST_RANGE)


def _step(column: Floats) -> float:
    """The smallest distance of two values where most of them repeat, as rounded ones do; else 0."""
    found = np.unique(column)
    if 2 * len(found) > len(column):
        return 0.0
    steps = np.diff(found)
    steps = steps[steps > ALIKE]
    return float(steps.min()) if steps.size else 0.0
