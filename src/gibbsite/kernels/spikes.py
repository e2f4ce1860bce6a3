"""Spikes: values far from the median of their neighbours, along the spectrum or down the image.

Lines are (line, band, sample) float32: neighbouring samples lie side by side, so a loop over samples fills the
registers, and every sample's arithmetic is its own. Medians come from networks of comparisons that forget the lowest
and the highest value as soon as neither can be the median.
"""

import numpy as np
from numba import njit

_TO_SIGMA, _TO_SIGMA_OF_3 = np.float32(1.2533141), np.float32(1.7724539)
"""Mean absolute residual of normal noise -> its standard deviation: √(π/2) from a wide median, √π from that of three
values, which often is the value itself. A spike hardly moves the mean."""
_TO_SIGMA_OF_STEPS = np.float32(0.7236012)
"""Mean absolute difference of two values, each less the mean of two others -> standard deviation: √(π/6)."""


@njit(nogil=True, cache=True)
def despike_spectra(lines, windows, n_sigma, first, last, replaced):
    """The lines first ≤ y < last without spikes along the spectrum; `replaced` (last - first, sample) counts them.

    For each of the windows (3, 5, 7, 9 or 11 bands) in turn: the residual to the running median, and what `_replace`
    finds in it that no window before did. What the lines above and below show as well is no spike. The first window
    tells the noise.
    """
    despiked = lines[first:last].copy()
    n_bands, n_samples = lines.shape[1:]
    residual = np.zeros((3, n_bands, n_samples), np.float32)
    sigma = np.zeros((last - first, n_samples), np.float32)
    for number in range(len(windows)):
        window = windows[number]
        if window > n_bands:
            continue
        for y in range(max(first - 1, 0), last):
            if y == max(first - 1, 0):
                _band_residuals(lines[y], window, residual[y % 3])
                residual[(y - 1) % 3] = np.float32(0.0)
            if y + 1 < len(lines):
                _band_residuals(lines[y + 1], window, residual[(y + 1) % 3])
            else:
                residual[(y + 1) % 3] = np.float32(0.0)
            if y < first:
                continue
            here = residual[y % 3]
            if number == 0:
                _measure(here, _TO_SIGMA_OF_3 if window == 3 else _TO_SIGMA, sigma[y - first])
            # The first and the last line of a scene have one neighbour.
            above = residual[(y - 1) % 3] if y > 0 else residual[(y + 1) % 3]
            below = residual[(y + 1) % 3] if y + 1 < len(lines) else residual[(y - 1) % 3]
            _replace(
                lines[y], here, (above, below), (sigma[y - first], n_sigma), despiked[y - first], replaced[y - first]
            )
    return despiked


@njit(nogil=True, cache=True)
def despike_columns(lines, n_sigma, first, last, replaced):
    """The lines first ≤ y < last without spikes against the lines above and below; `replaced` counts them.

    Lines at the end of the block, and samples without a neighbour above or below, are left as they are.
    """
    despiked = lines[first:last].copy()
    n_bands, n_samples = lines.shape[1:]
    residual, nothing = np.empty((n_bands, n_samples), np.float32), np.zeros((n_bands, n_samples), np.float32)
    sigma = np.empty(n_samples, np.float32)
    for y in range(max(first, 1), min(last, len(lines) - 1)):
        for b in range(n_bands):
            for i in range(n_samples):
                above, here, below = lines[y - 1, b, i], lines[y, b, i], lines[y + 1, b, i]
                # NaN - NaN is not 0.
                is_whole = (above - above) + (below - below) == np.float32(0.0)
                residual[b, i] = here - _median3(above, here, below) if is_whole else np.float32(0.0)
        _measure_between(lines[y - 1 : y + 2], sigma)
        _replace(lines[y], residual, (nothing, nothing), (sigma, n_sigma), despiked[y - first], replaced[y - first])
    return despiked


@njit(nogil=True, cache=True)
def _measure(residual, to_sigma, sigma):
    """Put the standard deviation of each sample's residuals (band, sample) into sigma (sample)."""
    n_bands, n_samples = residual.shape
    sigma[:] = np.float32(0.0)
    for b in range(n_bands):
        for i in range(n_samples):
            sigma[i] += abs(residual[b, i])
    for i in range(n_samples):
        sigma[i] *= to_sigma / np.float32(n_bands)


@njit(nogil=True, cache=True)
def _measure_between(three, sigma):
    """Put the standard deviation of the noise in the middle one of three lines into sigma (sample).

    From band to band, the distance of a value from the mean of the two changes by noise alone, whatever the ground
    does. (The residual to a median of three would not do: it is 0 throughout on a slope.)
    """
    n_bands, n_samples = three.shape[1:]
    half = np.float32(0.5)
    sigma[:] = np.float32(0.0)
    for b in range(1, n_bands):
        for i in range(n_samples):
            here = three[1, b, i] - half * (three[0, b, i] + three[2, b, i])
            before = three[1, b - 1, i] - half * (three[0, b - 1, i] + three[2, b - 1, i])
            sigma[i] += abs(here - before)
    for i in range(n_samples):
        sigma[i] *= _TO_SIGMA_OF_STEPS / np.float32(max(1, n_bands - 1))


@njit(nogil=True, cache=True)
def _replace(values, residual, beside, limit, despiked, replaced):
    """Put the values (band, sample) less their residual into `despiked` where it is a spike's and nothing was put
    before.

    `limit` is the standard deviation (sample) of the noise and how many of it make a spike. A spike also exceeds as
    many times what is seen in the two bands on either side of it (or of it and one companion), and what both lines
    `beside` have in its band: an absorption bends the residuals of several bands and of several pixels, a spike those
    of one or two bands of its own.
    """
    n_bands, n_samples = values.shape
    sigma, n_sigma = limit
    for b in range(n_bands):
        left, left_2, left_3 = _within(b - 1, n_bands), _within(b - 2, n_bands), _within(b - 3, n_bands)
        right, right_2, right_3 = _within(b + 1, n_bands), _within(b + 2, n_bands), _within(b + 3, n_bands)
        for i in range(n_samples):
            size = abs(residual[b, i])
            farther = _upper(abs(residual[left_2, i]), abs(residual[right_2, i]))
            alone = _upper(abs(residual[left, i]), abs(residual[right, i]))
            with_right = _upper(abs(residual[left, i]), abs(residual[right_3, i]))
            with_left = _upper(abs(residual[right, i]), abs(residual[left_3, i]))
            around = _upper(farther, _lower(alone, _lower(with_right, with_left)))
            above, below = abs(beside[0][b, i]), abs(beside[1][b, i])
            # A missing neighbour (NaN) leaves it to the other; without both, the bands decide.
            above = below if np.isnan(above) else above
            below = above if np.isnan(below) else below
            along = np.float32(0.0) if np.isnan(above) else _lower(above, below)
            usual = _upper(_upper(sigma[i], around), along)
            is_spike = (size > n_sigma * usual) & (despiked[b, i] == values[b, i])
            despiked[b, i] = values[b, i] - residual[b, i] if is_spike else despiked[b, i]
            replaced[i] += np.int32(is_spike)


@njit(nogil=True, cache=True)
def _within(band, n_bands):
    """The band, mirrored at the ends."""
    return min(max(abs(band), 0), n_bands - 1) if band < n_bands else max(2 * n_bands - 2 - band, 0)


@njit(nogil=True, cache=True)
def _band_residuals(values, window, residual):
    """Values (band, sample) less the median of `window` bands around each; at the ends, of the nearest so many."""
    n_bands = len(values)
    for b in range(n_bands):
        first = min(max(b - window // 2, 0), n_bands - window)
        v, r = values[first : first + window], residual[b]
        if window == 3:
            _less_median3(v, values[b], r)
        elif window == 5:
            _less_median5(v, values[b], r)
        elif window == 7:
            _less_median7(v, values[b], r)
        elif window == 9:
            _less_median9(v, values[b], r)
        else:
            _less_median11(v, values[b], r)


@njit(nogil=True, cache=True)
def _lower(a, b):
    return a if a < b else b


@njit(nogil=True, cache=True)
def _upper(a, b):
    return b if a < b else a


@njit(nogil=True, cache=True)
def _sorted(a, b):
    return _lower(a, b), _upper(a, b)


@njit(nogil=True, cache=True)
def _less_median3(v, here, r):
    for i in range(len(r)):
        r[i] = here[i] - _median3(v[0, i], v[1, i], v[2, i])


@njit(nogil=True, cache=True)
def _less_median5(v, here, r):
    for i in range(len(r)):
        r[i] = here[i] - _median5(v[0, i], v[1, i], v[2, i], v[3, i], v[4, i])


@njit(nogil=True, cache=True)
def _less_median7(v, here, r):
    for i in range(len(r)):
        r[i] = here[i] - _median7(v[0, i], v[1, i], v[2, i], v[3, i], v[4, i], v[5, i], v[6, i])


@njit(nogil=True, cache=True)
def _less_median9(v, here, r):
    for i in range(len(r)):
        r[i] = here[i] - _median9(v[0, i], v[1, i], v[2, i], v[3, i], v[4, i], v[5, i], v[6, i], v[7, i], v[8, i])


@njit(nogil=True, cache=True)
def _less_median11(v, here, r):
    for i in range(len(r)):
        r[i] = here[i] - _median11(
            v[0, i], v[1, i], v[2, i], v[3, i], v[4, i], v[5, i], v[6, i], v[7, i], v[8, i], v[9, i], v[10, i]
        )


@njit(nogil=True, cache=True)
def _median3(a, b, c):
    a, c = _sorted(a, c)
    b = _upper(a, b)
    b = _lower(b, c)
    return b


@njit(nogil=True, cache=True)
def _median5(a, b, c, d, e):
    a, d = _sorted(a, d)
    b, c = _sorted(b, c)
    b = _upper(a, b)
    c = _lower(c, d)
    b, e = _sorted(b, e)
    c = _upper(b, c)
    c = _lower(c, e)
    return c


@njit(nogil=True, cache=True)
def _median7(a, b, c, d, e, f, g):
    a, e = _sorted(a, e)
    b, d = _sorted(b, d)
    a, b = _sorted(a, b)
    c = _upper(a, c)
    d, e = _sorted(d, e)
    c = _lower(c, e)
    b, f = _sorted(b, f)
    c, d = _sorted(c, d)
    c = _upper(b, c)
    d = _lower(d, f)
    c, g = _sorted(c, g)
    d = _upper(c, d)
    d = _lower(d, g)
    return d


@njit(nogil=True, cache=True)
def _median9(a, b, c, d, e, f, g, h, i):
    a, f = _sorted(a, f)
    b, e = _sorted(b, e)
    c, d = _sorted(c, d)
    a, b = _sorted(a, b)
    c = _upper(a, c)
    d, f = _sorted(d, f)
    e = _lower(e, f)
    b, g = _sorted(b, g)
    c, e = _sorted(c, e)
    b, c = _sorted(b, c)
    d = _upper(b, d)
    e, g = _sorted(e, g)
    d = _lower(d, g)
    c, h = _sorted(c, h)
    d, e = _sorted(d, e)
    d = _upper(c, d)
    e = _lower(e, h)
    d, i = _sorted(d, i)
    e = _upper(d, e)
    e = _lower(e, i)
    return e


@njit(nogil=True, cache=True)
def _median11(a, b, c, d, e, f, g, h, i, j, k):
    a, g = _sorted(a, g)
    b, f = _sorted(b, f)
    c, e = _sorted(c, e)
    a, b = _sorted(a, b)
    a, c = _sorted(a, c)
    d = _upper(a, d)
    e, g = _sorted(e, g)
    f, g = _sorted(f, g)
    d = _lower(d, g)
    b, h = _sorted(b, h)
    c, f = _sorted(c, f)
    d, e = _sorted(d, e)
    b, c = _sorted(b, c)
    d = _upper(b, d)
    e, h = _sorted(e, h)
    f = _lower(f, h)
    c, i = _sorted(c, i)
    d, f = _sorted(d, f)
    c, d = _sorted(c, d)
    e = _upper(c, e)
    f, i = _sorted(f, i)
    e = _lower(e, i)
    d, j = _sorted(d, j)
    e, f = _sorted(e, f)
    e = _upper(d, e)
    f = _lower(f, j)
    e, k = _sorted(e, k)
    f = _upper(e, f)
    f = _lower(f, k)
    return f
