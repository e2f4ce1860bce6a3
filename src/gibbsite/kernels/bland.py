"""Bland pixels: how straight a spectrum is, which of a detector column are straightest, and spectra divided by them."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def crookedness(lines, wavelength):
    """(line, sample) Mean square distance of a spectrum from its straight line over wavelength (band), against its
    mean²."""
    n_lines, n_bands, n_samples = lines.shape
    course = wavelength - wavelength.mean()
    course = course / np.sqrt((course * course).sum())
    found = np.empty((n_lines, n_samples), np.float32)
    for y in range(n_lines):
        total, slope, square = np.zeros(n_samples), np.zeros(n_samples), np.zeros(n_samples)
        for b in range(n_bands):
            for i in range(n_samples):
                value = np.float64(lines[y, b, i])
                total[i] += value
                slope[i] += course[b] * value
                square[i] += value * value
        for i in range(n_samples):
            apart = square[i] - total[i] * total[i] / n_bands - slope[i] * slope[i]
            found[y, i] = apart * n_bands / (total[i] * total[i])
    return found


@njit(nogil=True, cache=True)
def best_of_columns(score, column, n_columns):
    """The lowest score (line, n_columns) of each detector column in each line, and its sample; inf and -1 for none."""
    n_lines, n_samples = score.shape
    best = np.full((n_lines, n_columns), np.inf, np.float32)
    sample = np.full((n_lines, n_columns), -1, np.int32)
    for y in range(n_lines):
        for i in range(n_samples):
            c = column[y, i]
            if c >= 0 and score[y, i] < best[y, c]:
                best[y, c] = score[y, i]
                sample[y, c] = i
    return best, sample


@njit(nogil=True, cache=True)
def divide_by_bland(lines, first, last, around, column, choice):
    """The lines first ≤ y < last, each pixel divided by the mean of the blandest pixels of its detector column.

    `around` is (best, sample) of `best_of_columns` for all lines; `choice` is the number of rows looked at either
    way, and how many of their pixels are averaged. The pixel's own line and the next ones are left out, since they
    see the same ground. A pixel without any bland one, or of unknown column, becomes NaN.
    """
    best, sample = around
    reach, n_bland = choice
    n_lines, n_bands, n_samples = lines.shape
    ratio = np.empty((last - first, n_bands, n_samples), np.float32)
    line, score = np.empty((n_bland, n_samples), np.int64), np.empty((n_bland, n_samples), np.float32)
    for y in range(first, last):
        line[:] = -1
        score[:] = np.inf
        for other in range(max(0, y - reach), min(n_lines, y + reach + 1)):
            if abs(other - y) <= 1:
                continue
            for i in range(n_samples):
                c = column[y, i]
                if c >= 0 and best[other, c] < score[n_bland - 1, i]:
                    _insert(line[:, i], score[:, i], other, best[other, c])
        for b in range(n_bands):
            for i in range(n_samples):
                c, total, n = column[y, i], np.float32(0.0), 0
                for k in range(n_bland):
                    if line[k, i] >= 0:
                        total += lines[line[k, i], b, sample[line[k, i], c]]
                        n += 1
                ratio[y - first, b, i] = lines[y, b, i] * np.float32(n) / total if n else np.float32(np.nan)
    return ratio


@njit(inline="always")
def _insert(line, score, new_line, new_score):
    """Put a line into the list of the best, lowest score first; of equal scores the earlier line stays ahead."""
    k = len(line) - 1
    while k > 0 and new_score < score[k - 1]:
        line[k], score[k] = line[k - 1], score[k - 1]
        k -= 1
    line[k], score[k] = new_line, new_score
