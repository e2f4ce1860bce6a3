"""Spikes: values far from the median of their neighbours, along the spectrum or down the image.

Lines are strips (line, band, LANES) float32: neighbouring samples lie side by side, so a loop over samples fills the
registers, and every sample's arithmetic is its own. Few bands of a line hold anything beyond the noise: one comparison
finds them, and only there the dear questions are asked.
"""

import numpy as np
from numba import njit

from gibbsite.kernels.medians import AT_ONCE, ENDS, band_residuals
from gibbsite.kernels.strips import less_median_of_3
from gibbsite.kernels.vectors import add_product, aligned_lines, any_beyond, larger_size, load, size, spread, store

_TO_SIGMA, _TO_SIGMA_OF_3 = np.float32(1.2533141), np.float32(1.7724539)
"""Mean absolute residual of normal noise -> its standard deviation: √(π/2) from a wide median, √π from that of three
values, which often is the value itself. A spike hardly moves the mean."""
_TO_SIGMA_OF_STEPS = np.float32(0.7236012)
"""Mean absolute difference of two values, each less the mean of two others -> standard deviation: √(π/6)."""


@njit(nogil=True, cache=True)
def despike(lines, windows, n_sigma, along, down, replaced):
    """`despike_spectra` in the lines from along[0] to along[1], which `replaced` counts, and then `despike_columns` in
    those from down[0] to down[1] among them, of which there may be none.

    One call for both: between two a thread has to wait for the interpreter.
    """
    despike_spectra(lines, windows, n_sigma, along[0], along[1], replaced)
    if down[0] < down[1]:
        despike_columns(lines, n_sigma, down[0], down[1], replaced[down[0] - along[0] : down[1] - along[0]])


@njit(nogil=True, cache=True)
def despike_spectra(lines, windows, n_sigma, first, last, replaced):
    """Replace spikes along the spectrum in the lines first ≤ y < last, in place; `replaced` (last - first, sample)
    counts them.

    For each of the windows (3, 5, 7, 9 or 11 bands, as far as there are so many) in turn: the residual to the running
    median, and what `_replace` finds in it that no window before did. What the lines above and below show as well is no
    spike. The first window tells the noise.
    """
    n_bands, n_samples = lines.shape[1:]
    windows = windows[windows <= n_bands]
    if len(windows) == 0:
        return
    to_sigma = _TO_SIGMA_OF_3 if windows[0] == 3 else _TO_SIGMA
    residual = aligned_lines(3 * len(windows), n_bands).reshape(3, len(windows), n_bands, n_samples)
    largest = aligned_lines(3, -(-n_bands // AT_ONCE))
    suspected = np.empty((len(windows), n_bands), np.bool_)
    sigma = np.empty(n_samples, np.float32)
    if len(lines) == 1:
        # The only line has no neighbour.
        residual[:] = np.float32(np.nan)
    start = max(first - 1, 0)
    for y in range(start, last + 1):
        # Residuals are one line ahead of the line that is mended, which then needs its own values no more.
        if y < len(lines):
            band_residuals(lines[y], windows, residual[y % 3], largest[y % 3])
        here = y - 1
        if here < first:
            continue
        _measure(residual[here % 3, 0], to_sigma, sigma.reshape(1, n_samples))
        # The first and the last line of a scene have one neighbour.
        above = residual[(here - 1) % 3] if here > 0 else residual[y % 3]
        below = residual[y % 3] if y < len(lines) else above
        if _suspect_any(residual[here % 3], largest[here % 3], sigma, n_sigma, suspected):
            _mend(lines[here], residual[here % 3], (above, below), (sigma, n_sigma), replaced[here - first], suspected)


@njit(nogil=True, cache=True)
def despike_columns(lines, n_sigma, first, last, replaced):
    """Replace spikes against the lines above and below in the lines first ≤ y < last, in place; `replaced` counts them.

    Lines at the end of the block, and samples without a neighbour above or below, are left as they are.
    """
    n_bands, n_samples = lines.shape[1:]
    residual, nothing = aligned_lines(1, n_bands), np.zeros((1, n_bands, n_samples), np.float32)
    sigma, kept = np.empty(n_samples, np.float32), aligned_lines(1, n_bands)[0]
    suspected = np.zeros((1, n_bands), np.bool_)
    above = lines[max(first, 1) - 1]
    for y in range(max(first, 1), min(last, len(lines) - 1)):
        stands_out = _compare_lines(above, lines[y], lines[y + 1], residual[0], sigma.reshape(1, n_samples), n_sigma)
        above = lines[y]
        if not stands_out:
            continue
        suspected[:] = False
        if _suspect(residual, sigma.reshape(1, n_samples), n_sigma, 0, n_bands, suspected):
            # The line below is compared with what was measured here, not with what is put in its place.
            kept[:] = lines[y]
            above = kept
            _mend(lines[y], residual, (nothing, nothing), (sigma, n_sigma), replaced[y - first], suspected)


@njit(nogil=True, cache=True)
def _compare_lines(above, here, below, residual, sigma, n_sigma):
    """Set residual to the middle one of three lines (band, sample) less their median, 0 where one beside is missing,
    and sigma (1, sample) to the standard deviation of its noise. Whether any residual stands out of it.

    From band to band, the distance of a value from the mean of the two changes by noise alone, whatever the ground
    does. (The residual to a median of three would not do: it is 0 throughout on a slope.)
    """
    n_bands = len(here)
    minus_half, total = spread(np.float32(-0.5)), spread(np.float32(0.0))
    largest = total
    one, two, three = load(above, 0), load(here, 0), load(below, 0)
    before = add_product(two, minus_half, one + three)
    # NaN - NaN is not 0. What is missing is so in all bands.
    gap = (one - one) + (three - three)
    for b in range(n_bands):
        one, two, three = load(above, b), load(here, b), load(below, b)
        off = less_median_of_3(one, two, three, gap)
        store(residual, b, off)
        largest = larger_size(off, largest)
        apart = add_product(two, minus_half, one + three)
        # In the first band they are the same, so nothing is added.
        total = total + size(apart - before)
        before = apart
    noise = total * spread(_TO_SIGMA_OF_STEPS / np.float32(max(1, n_bands - 1)))
    store(sigma, 0, noise)
    return any_beyond(largest, noise * spread(n_sigma))


@njit(nogil=True, cache=True)
def _measure(residual, to_sigma, sigma):
    """Put the standard deviation of each sample's residuals (band, sample) into sigma (1, sample)."""
    n_bands = len(residual)
    total = spread(np.float32(0.0))
    for b in range(n_bands):
        total = total + size(load(residual, b))
    store(sigma, 0, total * spread(to_sigma / np.float32(n_bands)))


@njit(nogil=True, cache=True)
def _suspect_any(residual, largest, sigma, n_sigma, suspected):
    """Tell which (window, band) any residual (window, band, sample) makes a suspect, and whether there are any.
    `largest` is that of `band_residuals`."""
    n_bands, n_samples = residual.shape[1:]
    noise = sigma.reshape(1, n_samples)
    limit = load(noise, 0) * spread(n_sigma)
    suspected[:] = False
    is_any = _suspect(residual, noise, n_sigma, 0, min(ENDS, n_bands), suspected)
    for group in range(len(largest)):
        first = ENDS + group * AT_ONCE
        if first < n_bands - ENDS and any_beyond(load(largest, group), limit):
            is_any |= _suspect(residual, noise, n_sigma, first, min(first + AT_ONCE, n_bands), suspected)
    return is_any | _suspect(residual, noise, n_sigma, max(n_bands - ENDS, 0), n_bands, suspected)


@njit(nogil=True, cache=True)
def _mend(values, residual, beside, limit, replaced, suspected):
    """Replace the spikes in values (band, sample), by residuals (window, band, sample) of it and the lines beside it.

    `limit` is the standard deviation (sample) of the noise and how many of it make a spike; `suspected` is what
    `_suspect` says.
    """
    n_windows, n_bands, n_samples = residual.shape
    is_done, done_in = np.empty(n_samples, np.int32), -1
    for b in range(n_bands):
        for number in range(n_windows):
            if suspected[number, b]:
                if done_in != b:
                    is_done[:], done_in = 0, b
                both = beside[0][number, b], beside[1][number, b]
                _replace(values[b], b, residual[number], both, limit, (is_done, replaced))


@njit(nogil=True, cache=True)
def _suspect(residual, sigma, n_sigma, first, stop, suspected):
    """Tell in which windows and bands first ≤ b < stop any residual (window, band, sample) stands out of the noise (1,
    sample) and of the second bands on either side: without that nothing is a spike, and `_replace` need not look.
    Whether any does."""
    n_windows, n_bands = residual.shape[:2]
    noise, factor = load(sigma, 0), spread(n_sigma)
    limit, is_any = noise * factor, False
    for number in range(n_windows):
        mine = residual[number]
        for b in range(first, stop):
            if any_beyond(load(mine, b), limit):
                farther = larger_size(load(mine, _within(b - 2, n_bands)), load(mine, _within(b + 2, n_bands)))
                suspected[number, b] = any_beyond(load(mine, b), larger_size(noise, farther) * factor)
                is_any |= suspected[number, b]
    return is_any


@njit(nogil=True, cache=True)
def _replace(values, b, residual, beside, limit, found):
    """Put the values (sample) of band b less their residual in their place where it is a spike's and no window before
    found one.

    A spike also exceeds as many times what is seen in the two bands on either side of it (or of it and one companion),
    and what both lines `beside` have in its band: an absorption bends the residuals of several bands and of several
    pixels, a spike those of one or two bands of its own.
    """
    sigma, n_sigma = limit
    is_done, replaced = found
    n_bands, n_samples = residual.shape
    left, left_2, left_3 = _within(b - 1, n_bands), _within(b - 2, n_bands), _within(b - 3, n_bands)
    right, right_2, right_3 = _within(b + 1, n_bands), _within(b + 2, n_bands), _within(b + 3, n_bands)
    for i in range(n_samples):
        size = abs(residual[b, i])
        farther = _upper(abs(residual[left_2, i]), abs(residual[right_2, i]))
        alone = _upper(abs(residual[left, i]), abs(residual[right, i]))
        with_right = _upper(abs(residual[left, i]), abs(residual[right_3, i]))
        with_left = _upper(abs(residual[right, i]), abs(residual[left_3, i]))
        around = _upper(farther, _lower(alone, _lower(with_right, with_left)))
        above, below = abs(beside[0][i]), abs(beside[1][i])
        # A missing neighbour (NaN) leaves it to the other; without both, the bands decide.
        above = below if np.isnan(above) else above
        below = above if np.isnan(below) else below
        along = np.float32(0.0) if np.isnan(above) else _lower(above, below)
        usual = _upper(_upper(sigma[i], around), along)
        is_spike = (size > n_sigma * usual) & (is_done[i] == 0)
        values[i] = values[i] - residual[b, i] if is_spike else values[i]
        is_done[i] |= np.int32(is_spike)
        replaced[i] += np.int32(is_spike)


@njit(nogil=True, cache=True)
def _within(band, n_bands):
    """The band, mirrored at the ends."""
    return min(max(abs(band), 0), n_bands - 1) if band < n_bands else max(2 * n_bands - 2 - band, 0)


@njit(nogil=True, cache=True)
def _lower(a, b):
    return a if a < b else b


@njit(nogil=True, cache=True)
def _upper(a, b):
    return b if a < b else a
