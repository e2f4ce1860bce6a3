"""Spectra as rows (spectrum, band): taken out of lines, their extremes, and the cells they fall into."""

import numpy as np
from numba import njit

from gibbsite.kernels.squares import SIDE, turn_square

_BINS = 4096


@njit(nogil=True, cache=True)
def take_spectra(lines, usable):
    """The spectra (spectrum, band) of the usable (line, sample) pixels of lines (line, band, sample), in order."""
    n_lines, n_bands, n_samples = lines.shape
    spectra = np.empty((np.count_nonzero(usable), n_bands), lines.dtype)
    source, target = np.ascontiguousarray(lines).reshape(lines.size), spectra.reshape(spectra.size)
    sample, place = np.empty(n_samples, np.int64), np.empty(SIDE, np.int64)
    first = 0
    for y in range(n_lines):
        n = 0
        for i in range(n_samples):
            sample[n] = i
            n += usable[y, i]
        for start in range(0, n_bands, SIDE):
            for s in range(0, n, SIDE):
                is_square = start + SIDE <= n_bands and s + SIDE <= n and sample[s + SIDE - 1] - sample[s] == SIDE - 1
                if is_square:
                    for b in range(SIDE):
                        place[b] = (y * n_bands + start + b) * n_samples + sample[s]
                    turn_square(source, place, 0, target, (first + s) * n_bands + start, n_bands)
                    continue
                for t in range(s, min(s + SIDE, n)):
                    for b in range(start, min(start + SIDE, n_bands)):
                        spectra[first + t, b] = lines[y, b, sample[t]]
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
    value, place = np.empty((SIDE, n), spectra.dtype), np.empty(n, np.int64)
    source, target = np.ascontiguousarray(spectra).reshape(spectra.size), value.reshape(value.size)
    for start in range(first, last, SIDE):
        n_bands = min(SIDE, last - start)
        for r in range(n):
            place[r] = row[r] * spectra.shape[1] + start
        n_turned = n - n % SIDE if n_bands == SIDE else 0
        for r in range(0, n_turned, SIDE):
            turn_square(source, place, r, target, r, n)
        for r in range(n_turned, n):
            for b in range(n_bands):
                value[b, r] = source[place[r] + b]
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
