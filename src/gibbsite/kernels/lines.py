"""Lines of an image as cleaning works on them: (line, band, sample) float32, samples side by side.

A pixel that is not used is NaN in all its bands, and stays so: no loop asks for it. No pixel's arithmetic depends on
its neighbours in the loop, so a line is the same however an image is cut into blocks.
"""

import numpy as np
from numba import njit

_TILE = 16
"""Samples turned at a time: a line of the cache of float32."""
_PART = 128
"""Samples projected at a time: their features stay in the first-level cache."""


@njit(nogil=True, cache=True)
def take_lines(cube, band, wanted):
    """Lines of a cube (y, x, band) with only these bands; pixels that are not wanted (y, x) are NaN."""
    n_lines, n_samples, _ = cube.shape
    lines = np.empty((n_lines, len(band), n_samples), np.float32)
    for y in range(n_lines):
        for first in range(0, n_samples, _TILE):
            last = min(first + _TILE, n_samples)
            for b in range(len(band)):
                for i in range(first, last):
                    lines[y, b, i] = cube[y, i, band[b]] if wanted[y, i] else np.float32(np.nan)
    return lines


@njit(nogil=True, cache=True)
def take_stored(stored, band, limits, fill, wanted):
    """Lines of stored values (line, band, sample) with only these bands, NaN beyond the limits (low, high) and where
    fill."""
    n_lines, _, n_samples = stored.shape
    lines = np.empty((n_lines, len(band), n_samples), np.float32)
    for y in range(n_lines):
        for b in range(len(band)):
            source, taken = stored[y, band[b]], lines[y, b]
            for i in range(n_samples):
                is_value = (source[i] >= limits[0]) & (source[i] <= limits[1]) & (source[i] != fill) & wanted[y, i]
                taken[i] = source[i] if is_value else np.float32(np.nan)
    return lines


@njit(nogil=True, cache=True)
def survey_stored(stored, limits, fill, listed):
    """Of stored values (line, band, sample): how many were measured (band), how many of them lie within the limits
    (band), and how many of the listed bands each pixel (line, sample) lacks."""
    n_lines, n_bands, n_samples = stored.shape
    measured, usable = np.zeros(n_bands, np.int64), np.zeros(n_bands, np.int64)
    lacking = np.zeros((n_lines, n_samples), np.int32)
    for y in range(n_lines):
        for b in range(n_bands):
            n_measured, n_usable, source, counted = np.int32(0), np.int32(0), stored[y, b], np.int32(listed[b])
            for i in range(n_samples):
                is_measured = (source[i] - source[i] == np.float32(0.0)) & (source[i] != fill)
                is_usable = is_measured & (source[i] >= limits[0]) & (source[i] <= limits[1])
                n_measured += np.int32(is_measured)
                n_usable += np.int32(is_usable)
                lacking[y, i] += counted & np.int32(not is_usable)
            measured[b] += n_measured
            usable[b] += n_usable
    return measured, usable, lacking


@njit(nogil=True, cache=True)
def bridge_gaps(lines, wavelength):
    """Replace NaN between values of a spectrum by linear interpolation in wavelength (band), in place.

    At the ends the nearest value is taken; spectra without any value stay NaN.
    """
    n_lines, n_bands, n_samples = lines.shape
    missing = np.empty(n_samples, np.int32)
    for y in range(n_lines):
        missing[:] = 0
        for b in range(n_bands):
            for i in range(n_samples):
                missing[i] += np.int32(lines[y, b, i] != lines[y, b, i])
        for i in range(n_samples):
            if 0 < missing[i] < n_bands:
                _bridge(lines[y, :, i], wavelength)


@njit(nogil=True, cache=True)
def _bridge(spectrum, wavelength):
    last = -1
    for b in range(len(spectrum)):
        if np.isnan(spectrum[b]):
            continue
        for gap in range(last + 1, b):
            if last < 0:
                spectrum[gap] = spectrum[b]
            else:
                share = (wavelength[gap] - wavelength[last]) / (wavelength[b] - wavelength[last])
                step = np.float64(spectrum[b]) - np.float64(spectrum[last])
                spectrum[gap] = np.float32(spectrum[last] + share * step)
        last = b
    for gap in range(last + 1, len(spectrum)):
        spectrum[gap] = spectrum[last]


@njit(nogil=True, cache=True)
def divide_pixels(lines, divisor):
    """Divide all bands of a pixel by its divisor (line, sample), in place."""
    for y in range(len(lines)):
        for b in range(lines.shape[1]):
            for i in range(lines.shape[2]):
                lines[y, b, i] /= divisor[y, i]


@njit(nogil=True, cache=True)
def divide_columns(lines, gain, column):
    """Divide by the gain (band, column) of each pixel's detector column (line, sample), in place; -1: by nothing."""
    for y in range(len(lines)):
        is_straight = _is_straight(column[y])
        for b in range(lines.shape[1]):
            if is_straight:
                for i in range(lines.shape[2]):
                    lines[y, b, i] /= gain[b, i]
                continue
            for i in range(lines.shape[2]):
                c = column[y, i]
                lines[y, b, i] /= gain[b, c] if c >= 0 else np.float32(1.0)


@njit(nogil=True, cache=True)
def _is_straight(column):
    """Whether sample i was seen by detector column i throughout: loops then need no table of columns."""
    return bool((column == np.arange(len(column))).all())


@njit(nogil=True, cache=True)
def divide_air(lines, log_air, column, inside, outside):
    """Divide by the air's transmission to the power β of each pixel, in place.

    `log_air` (band, column) is the logarithm of the transmission, 0 where it has no say. β is what makes the pixel's
    bands `inside` and `outside` (line or column: band of each detector column) differ as the air's do. A pixel of
    unknown column, or whose two bands are not positive, becomes NaN.
    """
    for y in range(len(lines)):
        beta = np.empty(lines.shape[2], np.float64)
        for i in range(lines.shape[2]):
            c = column[y, i]
            beta[i] = np.nan
            if c >= 0:
                low, high = lines[y, inside[c], i], lines[y, outside[c], i]
                if low > 0 and high > 0:
                    beta[i] = np.log(low / high) / (log_air[inside[c], c] - log_air[outside[c], c])
        for b in range(lines.shape[1]):
            for i in range(lines.shape[2]):
                depth = log_air[b, column[y, i]]
                if np.isnan(beta[i]):
                    lines[y, b, i] = np.float32(np.nan)
                elif depth != 0.0:
                    lines[y, b, i] = np.float32(lines[y, b, i] * np.exp(-beta[i] * depth))


@njit(nogil=True, cache=True)
def combine_bands(lines, start, weight):
    """Lines (line, n_out, sample) whose band b is the sum of weight (n_out, width) times the bands from start (n_out)
    on."""
    combined = np.zeros((len(lines), len(start), lines.shape[2]), np.float32)
    for y in range(len(lines)):
        for b in range(len(start)):
            for t in range(weight.shape[1]):
                share, source = weight[b, t], lines[y, start[b] + t]
                for i in range(lines.shape[2]):
                    combined[y, b, i] += share * source[i]
    return combined


@njit(nogil=True, cache=True)
def combine_bands_by_column(lines, start, weight, column):
    """As `combine_bands`, with weight (n_out, width, column) by detector column (line, sample); NaN where that is
    -1."""
    n_lines, _, n_samples = lines.shape
    combined = np.zeros((n_lines, len(start), n_samples), np.float32)
    is_straight = np.empty(n_lines, np.bool_)
    for y in range(n_lines):
        is_straight[y] = _is_straight(column[y])
    for b in range(len(start)):
        # All lines with one set of weights: the whole table is larger than the cache.
        for y in range(n_lines):
            for t in range(weight.shape[1]):
                share, source, total = weight[b, t], lines[y, start[b] + t], combined[y, b]
                if is_straight[y]:
                    for i in range(n_samples):
                        total[i] += share[i] * source[i]
                    continue
                for i in range(n_samples):
                    c = column[y, i]
                    total[i] += (share[c] if c >= 0 else np.float32(np.nan)) * source[i]
    return combined


@njit(nogil=True, cache=True)
def project_lines(lines, table, axes, within, step):
    """Features (line, feature, sample) of standardised values z, and what z has beyond them (line, sample).

    `table` (4, band) is low, high, mean and scale. z is a whole number of steps and axes (feature, band) are
    multiples of a power of two, so sums are exact in any order. The rest is the mean square over bands of z less its
    projection on the axes; `within` (feature, feature) is the inverse of axes · axesᵀ.
    """
    n_lines, n_bands, n_samples = lines.shape
    n_features = len(axes)
    feature = np.zeros((n_lines, n_features, n_samples), np.float64)
    rest = np.zeros((n_lines, n_samples), np.float64)
    z = np.empty(_PART, np.float64)
    for y in range(n_lines):
        for first in range(0, n_samples, _PART):
            here = slice(first, min(first + _PART, n_samples))
            n, total, square = here.stop - first, feature[y, :, here], rest[y, here]
            for b in range(n_bands):
                low, high, mean, scale = table[0, b], table[1, b], table[2, b], table[3, b]
                line = lines[y, b, here]
                for i in range(n):
                    value = np.float64(line[i])
                    value = low if value < low else value
                    value = high if value > high else value
                    z[i] = np.rint((value - mean) / scale / step)
                for i in range(n):
                    square[i] += z[i] * z[i]
                for f in range(n_features):
                    loading = axes[f, b]
                    for i in range(n):
                        total[f, i] += loading * z[i]
            for i in range(n):
                square[i] *= step * step
            for f in range(n_features):
                for i in range(n):
                    total[f, i] *= step
            for f in range(n_features):
                for g in range(n_features):
                    for i in range(n):
                        square[i] -= within[f, g] * total[f, i] * total[g, i]
            for i in range(n):
                square[i] /= n_bands
    return feature, rest
