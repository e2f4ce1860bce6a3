"""Spectra as rows (spectrum, band): taken out of lines, their extremes, and the cells they fall into."""

import numpy as np
from numba import njit

_SIDE = 16
"""Bands that are turned at once: a line of the cache."""
_BINS = 4096


@njit(nogil=True, cache=True)
def take_spectra(lines, usable):
    """The spectra (spectrum, band) of the usable (line, sample) pixels of lines (line, band, sample), in order."""
    n_lines, n_bands, n_samples = lines.shape
    spectra = np.empty((np.count_nonzero(usable), n_bands), lines.dtype)
    sample = np.empty(n_samples, np.int64)
    first = 0
    for y in range(n_lines):
        n = 0
        for i in range(n_samples):
            sample[n] = i
            n += usable[y, i]
        for start in range(0, n_bands, _SIDE):
            stop = min(start + _SIDE, n_bands)
            for s in range(n):
                i = sample[s]
                for b in range(start, stop):
                    spectra[first + s, b] = lines[y, b, i]
        first += n
    return spectra


@njit(nogil=True, cache=True)
def values_of_rank(spectra, row, rank, first, last):
    """The values (band, rank) that have these ranks, from 0, in each band first ≤ b < last of some rows of
    the spectra, all finite.

    Values are counted in bins from the lowest to the highest; only those of a bin with a wanted rank are sorted.
    """
    n = len(row)
    found = np.empty((last - first, len(rank)), spectra.dtype)
    value = np.empty((_SIDE, n), spectra.dtype)
    for start in range(first, last, _SIDE):
        n_bands = min(_SIDE, last - start)
        for corner in range(0, n, _SIDE):
            for b in range(n_bands):
                for r in range(corner, min(corner + _SIDE, n)):
                    value[b, r] = spectra[row[r], start + b]
        for b in range(n_bands):
            _pick(value[b], rank, found[start + b - first])
    return found


@njit(nogil=True, cache=True)
def _pick(value, rank, found):
    """Set found (rank) to the values of these ranks."""
    # Not value.min() and value.max(), which go number by number.
    lowest = highest = value[0]
    for i in range(len(value)):
        lowest = value[i] if value[i] < lowest else lowest
        highest = value[i] if value[i] > highest else highest
    width = np.float64(highest) - np.float64(lowest)
    scale = (_BINS - 1) / width if width > 0.0 else 0.0
    bin_of, count = np.empty(len(value), np.int16), np.zeros(_BINS + 1, np.int64)
    for i in range(len(value)):
        bin_of[i] = np.int16((np.float64(value[i]) - lowest) * scale)
    for i in range(len(value)):
        count[bin_of[i] + 1] += 1
    before = np.cumsum(count)
    wanted, some = -1, value[:0]
    for r in range(len(rank)):
        here = np.searchsorted(before, rank[r], "right") - 1
        if here != wanted:
            wanted, some = here, np.sort(value[bin_of == here])
        found[r] = some[rank[r] - before[here]]


@njit(nogil=True, cache=True)
def number_cells(spectra, table):
    """Numbers (n_spectra, band) of the cells that spectra fall into; `table` (4, band): low, high, middle, width."""
    n_spectra, n_bands = spectra.shape
    cell = np.empty((n_spectra, n_bands), np.float64)
    for y in range(n_spectra):
        for b in range(n_bands):
            value = min(max(np.float64(spectra[y, b]), table[0, b]), table[1, b])
            cell[y, b] = np.rint((value - table[2, b]) / table[3, b])
    return cell
