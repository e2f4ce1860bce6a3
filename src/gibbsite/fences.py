"""The range in which values of each band are taken as they are, and the cells it is divided into."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels
from gibbsite.threads import in_order

Floats = NDArray[np.float64]
Spectra = NDArray[np.floating]

CELLS = 2**17
"""Cells from the middle of a band's fences to either; int64 then has room for 2²⁹ pixels on the fences."""
_BANDS = 32
"""Bands whose fences a thread finds at once."""


@dataclass(frozen=True)
class Fences:
    """The range in which values of each band are taken as they are; beyond it they count as the fence."""

    low: Floats
    """(n_bands,) reflectance."""
    high: Floats
    """(n_bands,) reflectance."""


def fences(spectra: Spectra, row: NDArray[np.integer] | None = None) -> Fences:
    """Fences (n_bands,) of spectra (n_spectra, n_bands), or of some rows of them: the 1-99 % range, widened by its
    length either way.

    For a normal band that is ±7 standard deviations. Up to 1 % of spikes on either side do not move them, and
    a unit that covers more than 1 % of the ground lies within them, however far it is from the rest.
    """
    row = np.arange(len(spectra)) if row is None else row
    place = np.array([0.01, 0.99]) * (len(row) - 1)
    below = place.astype(np.intp)
    rank = np.stack([below, np.minimum(below + 1, len(row) - 1)], axis=1).ravel()
    starts = range(0, spectra.shape[1], _BANDS)

    def of_bands(start: int) -> NDArray[np.floating]:
        return kernels.values_of_rank(spectra, row, rank, start, min(start + _BANDS, spectra.shape[1]))

    low, above_low, high, above_high = np.concatenate(list(in_order(of_bands, starts))).T.astype(np.float64)
    share = place - below
    first, last = low + (above_low - low) * share[0], high + (above_high - high) * share[1]
    return Fences(first - (last - first), last + (last - first))


def in_cells(spectra: Spectra, within: Fences) -> Floats:
    """Cell numbers (n_spectra, n_bands), from the middle of the fences, of spectra held within them."""
    middle, unit = cells(within)
    return kernels.number_cells(
        np.ascontiguousarray(spectra, np.float32), np.stack([within.low, within.high, middle, unit])
    )


def cells(within: Fences) -> tuple[Floats, Floats]:
    """Middle of the fences and width of a cell (n_bands,); width 1 where the fences meet."""
    width = (within.high - within.low) / (2 * CELLS)
    return (within.low + within.high) / 2, np.where(width > 0.0, width, 1.0)
