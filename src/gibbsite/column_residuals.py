"""Columns that others nearly tell: what they say beyond these takes their place.

Ψ0 = I expects a standard deviation of 1 in every direction. Where columns are nearly combinations of others (bands of
spectra, sums, copies), rows hardly vary in some directions; there the prior outweighs the rows, the more so the fewer
they are, so that classes seem better the larger they are, and all fall together.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NEARLY = 0.03
"""Share of a column's variance beyond which it says enough of its own to be taken as it is."""
NOTHING = 1e-4
"""Share below which what it says is rounding, and it is left out."""
ROWS_PER_COLUMN = 2
"""In fewer rows, columns are combinations of others by chance."""


def find_axes(standard: Floats) -> Floats | None:
    """Axes (n_columns, n_axes) by which rows (n_rows, n_columns) are to be multiplied; None: they are good as they are.

    The first axes are columns, chosen one by one, each the one the chosen ones tell least of; the others are the
    residuals of further columns to all before, of variance 1.
    """
    n_rows, n_columns = standard.shape
    if n_rows < ROWS_PER_COLUMN * n_columns:
        return None
    away = standard - standard.mean(0)
    deviation = away.std(0)
    varies = deviation > 0.0
    away[:, varies] /= deviation[varies]
    correlation = away.T @ away / n_rows
    share, factor = correlation.diagonal().copy(), np.zeros((0, n_columns))
    order: list[tuple[int, float]] = []
    while len(order) < n_columns and share.max() >= NOTHING:
        chosen = int(share.argmax())
        row = (correlation[chosen] - factor[:, chosen] @ factor) / np.sqrt(share[chosen])
        order.append((chosen, float(share[chosen])))
        factor = np.vstack([factor, row])
        share = share - np.square(row)
        share[[one for one, _ in order]] = -1.0
    kept = sorted(one for one, left in order if left >= NEARLY)
    if len(kept) in (0, n_columns):
        return None
    axes = [np.eye(n_columns)[one] for one in kept]
    before = list(kept)
    for one, left in order[len(kept) :]:
        told = np.linalg.solve(correlation[np.ix_(before, before)], correlation[before, one])
        axis = np.zeros(n_columns)
        axis[one], axis[before] = 1.0 / deviation[one], -told / deviation[before]
        axes.append(axis / np.sqrt(left))
        before.append(one)
    return np.array(axes).T


def project(standard: Floats, axes: Floats | None) -> Floats:
    """The rows on these axes, if any, each the same whatever rows stand beside it (BLAS does not grant that)."""
    if axes is None:
        return standard
    out = np.zeros((len(standard), axes.shape[1]))
    for number, column in zip(*np.nonzero(axes.T), strict=True):
        out[:, number] += axes[column, number] * standard[:, column]
    return out
