"""Lines of an image as cleaning works on them: strips (line, band, LANES) float32, samples side by side.

A strip is as wide as a vector of samples and stays in the second-level cache from its reading to its features; beyond
the image it is NaN. A pixel that is not used is NaN in all its bands, and stays so: no loop asks for it. No pixel's
arithmetic depends on its neighbours in the loop, so a line is the same however an image is cut.
"""

import numpy as np
from numba import njit

from gibbsite.kernels.squares import SIDE, turn_square
from gibbsite.kernels.strips import any_lost, fetch_ahead, load_from, mask_beyond
from gibbsite.kernels.vectors import LANES, aligned_lines, load, spread, store

_NAN = np.float32(np.nan)
_BANDS_AHEAD = 8
"""Bands that are asked for before they are wanted: 4 to 48 do as well, the next strip instead, which has to wait in the
cache behind all that is made of this one, does not (100 and 130 ms for a scene, 80 now; none: 95)."""


@njit(nogil=True, cache=True)
def take_lines(cube, band, light, start):
    """A strip, from sample `start` on, of a cube (y, x, band) with only these bands, rising; and the lines in which a
    wanted pixel may lack a value.

    Values are multiplied by `light` (y, x), NaN for pixels that are not wanted.
    """
    n_lines, n_samples, _ = cube.shape
    n_bands, n = len(band), min(LANES, n_samples - start)
    lines, has_gaps = aligned_lines(n_lines, n_bands), np.zeros(n_lines, np.bool_)
    source, target = np.ascontiguousarray(cube).reshape(cube.size), lines.reshape(n_lines * n_bands, LANES)
    factor = np.full((1, LANES), _NAN)
    for y in range(n_lines):
        _turn_line(source, cube.shape, band, (y, start, n), lines)
        factor[0, :n] = light[y, start : start + n]
        # A sum is a number only if all values are.
        total = spread(np.float32(0.0))
        for b in range(n_bands):
            value = load(target, y * n_bands + b) * load(factor, 0)
            store(target, y * n_bands + b, value)
            total = total + value
        has_gaps[y] = any_lost(total, load(factor, 0))
    return lines, has_gaps


@njit(nogil=True, cache=True)
def _turn_line(source, shape, band, where, lines):
    """Put the bands of n samples, from `start` on, of line y of a flat cube of this shape (y, x, band) into
    lines[y] (band, LANES), NaN beyond them; `where` is y, start and n."""
    y, start, n = where
    n_bands, flat = len(band), lines.reshape(lines.size)
    lines[y, :, n:] = _NAN
    place = np.empty(SIDE, np.int64)
    for b in range(0, n_bands, SIDE):
        is_run = b + SIDE <= n_bands and band[min(b + SIDE, n_bands) - 1] - band[b] == SIDE - 1
        for i in range(0, n, SIDE):
            if is_run and i + SIDE <= n:
                for k in range(SIDE):
                    place[k] = (y * shape[1] + start + i + k) * shape[2] + band[b]
                turn_square(source, place, 0, flat, (y * n_bands + b) * LANES + i, LANES)
                continue
            for k in range(i, min(i + SIDE, n)):
                first = (y * shape[1] + start + k) * shape[2]
                for j in range(b, min(b + SIDE, n_bands)):
                    lines[y, j, k] = source[first + band[j]]


@njit(nogil=True, cache=True)
def take_stored(stored, band, bounds, light, start):
    """As `take_lines`, of stored values (line, band, sample); none is what is beyond bounds[0] to bounds[1] or
    bounds[2], the fill value."""
    n_lines, n_stored, n_samples = stored.shape
    n_bands, n = len(band), min(LANES, n_samples - start)
    lines, has_gaps = aligned_lines(n_lines, n_bands), np.zeros(n_lines, np.bool_)
    if n < LANES:
        lines[:] = _NAN
    target = lines.reshape(n_lines * n_bands, LANES)
    low, high, fill = spread(bounds[0]), spread(bounds[1]), spread(bounds[2])
    for y in range(n_lines):
        if n < LANES:
            has_gaps[y] = _take_some(stored[y], band, bounds, light[y, start:], lines[y])
            continue
        total = spread(np.float32(0.0))
        for b in range(n_bands):
            # Bands lie too far apart for the processor to guess the next ones.
            fetch_ahead(stored, (y * n_stored + band[min(b + _BANDS_AHEAD, n_bands - 1)]) * n_samples + start)
            here = (y * n_stored + band[b]) * n_samples + start
            # Light stays in memory: with it in registers too the loop takes a third longer.
            value = mask_beyond(load_from(stored, here), low, high, fill) * load_from(light, y * n_samples + start)
            store(target, y * n_bands + b, value)
            total = total + value
        has_gaps[y] = any_lost(total, load_from(light, y * n_samples + start))
    return lines, has_gaps


@njit(nogil=True, cache=True)
def _take_some(stored, band, bounds, light, lines):
    """Put the last samples of a line, fewer than a strip has, into lines (band, LANES). Whether a wanted pixel lacks a
    value."""
    first, has_gaps = stored.shape[1] - len(light), False
    for b in range(len(band)):
        for i in range(len(light)):
            value = stored[band[b], first + i]
            is_value = (value >= bounds[0]) & (value <= bounds[1]) & (value != bounds[2])
            lines[b, i] = value * light[i] if is_value else _NAN
            has_gaps |= not is_value and not np.isnan(light[i])
    return has_gaps


@njit(nogil=True, cache=True)
def survey_stored(stored, limits, fill, listed):
    """Of stored values (line, band, sample): how many were measured (band), how many of them lie within the limits
    (band), and how many of the listed bands each pixel (line, sample) lacks."""
    n_lines, n_bands, n_samples = stored.shape
    measured, usable = np.zeros(n_bands, np.int64), np.zeros(n_bands, np.int64)
    lacking = np.zeros((n_lines, n_samples), np.int32)
    for y in range(n_lines):
        for b in range(n_bands):
            # The processor guesses too late what follows a band this short; past the end asking does nothing.
            for i in range(0, n_samples, LANES):
                fetch_ahead(stored, (y * n_bands + b + 1) * n_samples + i)
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
def bridge_gaps(lines, has_gaps, wavelength):
    """Replace NaN between values of a spectrum by linear interpolation in wavelength (band), in place.

    Only lines that have gaps (line) are looked at. At the ends the nearest value is taken; spectra without any value
    stay NaN.
    """
    n_lines, n_bands, n_samples = lines.shape
    n_values = np.empty(n_samples, np.int32)
    for y in range(n_lines):
        if not has_gaps[y]:
            continue
        n_values[:] = 0
        for b in range(n_bands):
            for i in range(n_samples):
                n_values[i] += np.int32(lines[y, b, i] == lines[y, b, i])
        for i in range(n_samples):
            if 0 < n_values[i] < n_bands:
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
def divide_columns(lines, gain, column):
    """Divide by the gain (band, column) of each pixel's detector column (line, sample), in place; -1: by nothing."""
    for y in range(len(lines)):
        for b in range(lines.shape[1]):
            for i in range(lines.shape[2]):
                c = column[y, i]
                lines[y, b, i] /= gain[b, c] if c >= 0 else np.float32(1.0)


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
def add_artefact(lines, artefact, tooth, column):
    """Add the artefact (band, column) of its detector column times Σ tooth (band, column) · spectrum to each, in place.

    The multiple is held within ±3: no ground is so bright, but a spike would write the artefact into its pixel.
    """
    n_lines, n_bands, n_samples = lines.shape
    for y in range(n_lines):
        multiple = np.zeros(n_samples, np.float64)
        for b in range(n_bands):
            for i in range(n_samples):
                multiple[i] += tooth[b, column[y, i]] * lines[y, b, i]
        for i in range(n_samples):
            multiple[i] = min(max(multiple[i], -3.0), 3.0)
        for b in range(n_bands):
            for i in range(n_samples):
                lines[y, b, i] += np.float32(multiple[i] * artefact[b, column[y, i]])
