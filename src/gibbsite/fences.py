"""The range in which values of each band are taken as they are, and the cells it is divided into."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels
from gibbsite.threads import in_order

Floats = NDArray[np.float64]
Bands = NDArray[np.floating]
"""(n_bands, n_spectra)"""
Cells = NDArray[np.int16]

CELLS = 2**13 - 1
"""Cells from the middle of a band's fences to either. A cell is then a thousandth of a normal band's standard
deviation, and the sums of `kernels.cell_products` have room for 512 products."""
_SOME_BANDS = 16
"""Bands that a thread puts into cells at once."""


@dataclass(frozen=True)
class Fences:
    """The range in which values of each band are taken as they are; beyond it they count as the fence."""

    low: Floats
    """(n_bands,) reflectance."""
    high: Floats
    """(n_bands,) reflectance."""


def fences(bands: Bands, chosen: NDArray[np.integer] | None = None) -> Fences:
    """Fences (n_bands,) of bands (n_bands, n_spectra), or of the chosen spectra: the 1-99 % range, widened by
    its length either way.

    For a normal band that is ±7 standard deviations. Up to 1 % of spikes on either side do not move them, and
    a unit that covers more than 1 % of the ground lies within them, however far it is from the rest.
    """
    chosen = np.arange(bands.shape[1]) if chosen is None else chosen
    place = np.array([0.01, 0.99]) * (len(chosen) - 1)
    below = place.astype(np.intp)
    rank = np.stack([below, np.minimum(below + 1, len(chosen) - 1)], axis=1).ravel()
    low, above_low, high, above_high = kernels.values_of_rank(bands, chosen, rank).T.astype(np.float64)
    share = place - below
    first, last = low + (above_low - low) * share[0], high + (above_high - high) * share[1]
    return Fences(first - (last - first), last + (last - first))


def in_cells(bands: Bands, within: Fences, out: Cells | None = None) -> Cells:
    """Cell numbers (n_bands, n_spectra), from the middle of the fences, of values held within them."""
    cell = np.empty(bands.shape, np.int16) if out is None else out
    kernels.number_cells(bands, np.stack([within.low, within.high, *cells(within)]), cell)
    return cell


def fence_in(parts: Sequence[Bands], chosen: NDArray[np.integer]) -> tuple[Fences, Cells]:
    """Fences of bands whose spectra come in parts (n_bands, …), taken from the chosen ones of all, and all in cells."""
    n_bands = len(parts[0])
    cell = np.empty((n_bands, sum(part.shape[1] for part in parts)), np.int16)

    def of_bands(start: int) -> Fences:
        some = slice(start, start + _SOME_BANDS)
        bands = np.concatenate([part[some] for part in parts], axis=1)
        within = fences(bands, chosen)
        in_cells(bands, within, cell[some])
        return within

    found = list(in_order(of_bands, range(0, n_bands, _SOME_BANDS)))
    return Fences(*(np.concatenate([getattr(some, end) for some in found]) for end in ("low", "high"))), cell


def cells(within: Fences) -> tuple[Floats, Floats]:
    """Middle of the fences and width of a cell (n_bands,); width 1 where the fences meet."""
    width = (within.high - within.low) / (2 * CELLS)
    return (within.low + within.high) / 2, np.where(width > 0.0, width, 1.0)
