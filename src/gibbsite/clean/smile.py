"""Smile: the wavelength of a band drifts over the detector's columns; here all columns get the same ones."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels

Floats = NDArray[np.float64]

_POINTS = 4
"""Neighbouring bands that a cubic goes through. A straight line through two blurs bands, and takes noise away in the
columns whose bands lie halfway between the wanted ones but not in the others, which looks like stripes."""


@dataclass(frozen=True, eq=False)
class ColumnWeights:
    """Bands as sums of neighbouring bands, by detector column."""

    start: NDArray[np.int64]
    """(n_out) First of the bands that are combined, the same for all columns."""
    weight: NDArray[np.float32]
    """(n_out, width, column); NaN in columns of unknown wavelengths."""


def resampling(by_column: Floats, wanted: Floats) -> ColumnWeights:
    """Weights that give every column, of bands at `by_column` (column, band) µm, the bands `wanted` (n_out) µm.

    A cubic through the nearest four bands; outside a column's bands its nearest value.
    """
    n_columns, n_bands = by_column.shape
    is_known = np.isfinite(by_column).all(axis=1)
    known = np.flatnonzero(is_known)
    points = min(_POINTS, n_bands)
    row = by_column[known]
    first = kernels.nearest_bands(row, wanted, points)
    start = first.min(axis=0, initial=n_bands - points)
    width = int((first - start).max(initial=0)) + points
    start = np.minimum(start, n_bands - width)
    weight = np.zeros((len(wanted), width, n_columns), np.float32)
    weight[:, :, ~is_known] = np.nan
    kernels.polynomial_weights(row, wanted, points, first, start, known, weight)
    return ColumnWeights(start, weight)
