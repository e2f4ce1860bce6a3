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


@dataclass(frozen=True)
class Fences:
    """The range in which values of each band are taken as they are; beyond it they count as the fence."""

    low: Floats
    """(n_bands,) reflectance."""
    high: Floats
    """(n_bands,) reflectance."""


def fences(sample: Spectra) -> Fences:
    """Fences (n_bands,) of a sample (n_spectra, n_bands): the 1-99 % range, widened by its length either way.

    For a normal band that is ±7 standard deviations. Up to 1 % of spikes on either side do not move them, and
    a unit that covers more than 1 % of the ground lies within them, however far it is from the rest.
    """
    bands = np.array_split(sample, min(8, sample.shape[1]), axis=1)
    first, last = np.concatenate(list(in_order(_outer_percentiles, bands)), axis=1)
    reach = last - first
    return Fences(first - reach, last + reach)


def _outer_percentiles(sample: Spectra) -> Floats:
    """The 1st and the 99th percentile (2, n_bands) of a sample (n_spectra, n_bands), between its values linearly."""
    place = np.array([0.01, 0.99]) * (len(sample) - 1)
    below = place.astype(np.intp)
    above = np.minimum(below + 1, len(sample) - 1)
    ordered = np.partition(np.ascontiguousarray(sample.T), np.unique([below, above]), axis=1).T
    low, high = ordered[below].astype(np.float64), ordered[above].astype(np.float64)
    return np.asarray(low + (high - low) * (place - below)[:, None])


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
