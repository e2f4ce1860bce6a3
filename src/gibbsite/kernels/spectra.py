"""Spectra taken out of lines, as rows or with bands as rows; their extremes, and the cells they fall into."""

import numpy as np
from numba import njit

from gibbsite.kernels.squares import SIDE, turn_square

_SAMPLE, _MOST_BINS = 1024, 4096


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
def take_bands(lines, usable):
    """The same with bands as rows: (band, spectrum)."""
    n_lines, n_bands, _ = lines.shape
    bands = np.empty((n_bands, np.count_nonzero(usable)), lines.dtype)
    first = 0
    for y in range(n_lines):
        sample = np.flatnonzero(usable[y])
        n = len(sample)
        for b in range(n_bands):
            source, target = lines[y, b], bands[b, first : first + n]
            for t in range(n):
                target[t] = source[sample[t]]
        first += n
    return bands


@njit(nogil=True, cache=True)
def values_of_rank(bands, chosen, rank):
    """The values (band, rank) that have these ranks, from 0, among the chosen spectra of bands (band, spectrum), all
    finite. Ranks rise in the lower half, and in the upper.

    A sample tells about how far from the ends they lie; only what lies as far out is looked at twice.
    """
    n, n_low = len(chosen), np.searchsorted(rank, len(chosen) // 2)
    n_high = len(rank) - n_low
    # So many values from either end hold all that are wanted.
    low_end, high_end = rank[n_low - 1] + 1 if n_low > 0 else 0, n - rank[n_low] if n_high > 0 else 0
    sample = chosen[:: max(1, n // _SAMPLE)]
    last = len(sample) - 1
    edge_rank = np.array([_reach(low_end, n, last), last - _reach(high_end, n, last)])
    found, edge = np.empty((len(bands), len(rank)), bands.dtype), np.empty(2, bands.dtype)
    low, high = np.empty(n + 1, bands.dtype), np.empty(n + 1, bands.dtype)
    for b in range(len(bands)):
        for t in range(len(sample)):
            low[t] = bands[b, sample[t]]
        _pick(low[: len(sample)], edge_rank, edge)
        under, over = _part(bands[b], chosen, edge[0], edge[1], low, high)
        if under < low_end or over < high_end:
            under, over = _part(bands[b], chosen, np.inf, -np.inf, low, high)
        _pick(low[:under], rank[:n_low], found[b, :n_low])
        _pick(high[:over], rank[n_low:] - (n - over), found[b, n_low:])
    return found


@njit(nogil=True, cache=True)
def _reach(n_wanted, n, last):
    """The rank in a sample, from 0 to `last`, beyond which hardly ever less than so many of all n values lie."""
    expected = n_wanted * (last + 1) / n
    return min(last, int(expected + 4 * np.sqrt(expected) + 4))


@njit(nogil=True, cache=True)
def _part(source, chosen, under, over, low, high):
    """Put the chosen values that are not above `under` into `low` and those not below `over` into `high`; how many they
    are. Both have room for one value more than all."""
    n_low = n_high = 0
    for t in range(len(chosen)):
        value = source[chosen[t]]
        low[n_low] = high[n_high] = value
        n_low += value <= under
        n_high += value >= over
    return n_low, n_high


@njit(nogil=True, cache=True)
def _pick(value, rank, found):
    """Set found (rank) to the values of these ranks.

    Values are counted in bins from the lowest to the highest; only those of a bin with a wanted rank are sorted.
    """
    # Not value.min() and value.max(), which go number by number.
    lowest = highest = value[0]
    for i in range(len(value)):
        lowest = value[i] if value[i] < lowest else lowest
        highest = value[i] if value[i] > highest else highest
    width, n_bins = np.float64(highest) - np.float64(lowest), min(len(value) // 4 + 1, _MOST_BINS)
    scale = (n_bins - 1) / width if width > 0.0 else 0.0
    bin_of, count = np.empty(len(value), np.int16), np.zeros(n_bins + 1, np.int64)
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
def number_cells(bands, table, cell):
    """Set cell (band, spectrum) int16 to the numbers of the cells that values fall into; `table` (4, band): low, high,
    middle, width."""
    for b in range(len(bands)):
        source, target = bands[b], cell[b]
        low, high, middle, width = table[0, b], table[1, b], table[2, b], table[3, b]
        for i in range(len(source)):
            value = min(max(np.float64(source[i]), low), high)
            target[i] = np.int16(np.rint((value - middle) / width))
