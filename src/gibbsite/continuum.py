"""The continuum of a spectrum, and the absorption bands below it.

The continuum is the upper convex hull of the spectrum over wavelength (Clark & Roush 1984, J. Geophys. Res. 89,
6329-6340). A spectrum divided by it is 1 outside of bands. Bands are the dips of that quotient; each is measured
against a straight line between its own shoulders, so that a broad band does not shift a narrow one inside it.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import find_peaks, savgol_filter

Floats = NDArray[np.float64]

GAP = 3.0
"""A step of more than so many median steps between bands is a gap that no line crosses."""
WINDOW = 7
"""Bands of the smoothing (Savitzky-Golay, order 2) before dips are looked for."""
WIDEST = 0.065
"""µm that these may span: bands of hydroxyl are 0.03 wide. CRISM's span 0.039, those of an MRDR tile 0.2 and more."""
NOISE_LIMIT = 6.0
"""A dip below so many standard deviations of the noise that smoothing leaves is none."""
LEFT_OVER = 0.707
"""Standard deviation of the noise that this smoothing leaves, over that of what it takes away: √(1/3) / √(2/3)."""
SHOULDER = 0.05
"""A band ends where its depth has fallen to this share, counted from the shallowest point on that side."""
CORE = 0.6
"""The centre is that of a parabola through the values deeper than this share of the depth."""
EDGE = 2
"""A dip within so many bands of a gap or an end is not a band: its other side is not known."""

APART = 0.015
"""Dips nearer to each other than this (µm) are one band."""


@dataclass(frozen=True)
class Band:
    """An absorption band."""

    centre: float
    """µm."""
    depth: float
    """Share of the light taken away at the centre, against the line between the shoulders."""
    width: float
    """Full width at half depth, µm."""


def gaps(wavelength: Floats) -> NDArray[np.intp]:
    """Positions of the bands before which a gap lies."""
    step = np.diff(wavelength)
    if not step.size:
        return np.zeros(0, np.intp)
    return np.flatnonzero(step > GAP * np.median(step)) + 1


def remove_continuum(wavelength: Floats, spectrum: Floats, limits: tuple[float, float]) -> Floats:
    """The spectrum over its upper hull within the limits (µm); NaN outside them and where it has no value.

    `spectrum` (..., n_bands). A spectrum that is not positive everywhere has no continuum: all NaN.
    """
    removed = np.full(spectrum.shape, np.nan)
    inside = (wavelength >= limits[0]) & (wavelength <= limits[1])
    for row in np.ndindex(spectrum.shape[:-1]):
        used = inside & np.isfinite(spectrum[row])
        value = spectrum[row][used]
        if value.size > 2 and (value > 0).all():
            removed[row][used] = value / _hull(wavelength[used], value)
    return removed


def find_bands(wavelength: Floats, removed: Floats, min_depth: float) -> list[Band]:
    """The bands of a continuum-removed spectrum at least so deep, by wavelength."""
    used = np.isfinite(removed)
    x, y = wavelength[used], removed[used]
    if x.size < WINDOW:
        return []
    level = smooth(x, y)
    depth = 1.0 - level
    noise = float(np.median(np.abs(y - level))) * 1.4826 * LEFT_OVER
    peaks, _ = find_peaks(depth, prominence=max(min_depth / 2, NOISE_LIMIT * noise))
    borders = _borders(level, peaks)
    ends = np.concatenate([[0], gaps(x), [x.size]])
    bands = [
        _measure(x[first : last + 1], level[first : last + 1], int(peak - first))
        for peak, (first, last) in zip(peaks, itertools.pairwise(borders), strict=False)
        if np.abs(ends - peak).min() >= EDGE and np.abs(ends - 1 - peak).min() >= EDGE
    ]
    return _distinct([band for band in bands if band.depth >= max(min_depth, NOISE_LIMIT * noise)])


def smooth(wavelength: Floats, values: Floats) -> Floats:
    """Finite values smoothed from gap to gap; runs shorter than the window, or too coarse for it, stay as they are."""
    edge = np.concatenate([[0], gaps(wavelength), [values.size]])
    runs = [(wavelength[start:stop], values[start:stop]) for start, stop in itertools.pairwise(edge)]
    return np.concatenate([savgol_filter(y, WINDOW, 2) if _is_fine(x) else y for x, y in runs])


def _is_fine(wavelength: Floats) -> bool:
    """Whether the bands of a run lie so close that what a window holds is part of one absorption."""
    if wavelength.size < WINDOW:
        return False
    return bool(np.median(wavelength[WINDOW - 1 :] - wavelength[: 1 - WINDOW]) <= WIDEST)


def _borders(level: Floats, peaks: NDArray[np.intp]) -> list[int]:
    """Where each dip ends and the next begins: both ends, and the highest point between two dips."""
    between = [int(one + level[one : other + 1].argmax()) for one, other in itertools.pairwise(peaks)]
    return [0, *between, len(level) - 1]


def _distinct(bands: list[Band]) -> list[Band]:
    """The bands by wavelength; of two that are one dip measured twice, the deeper."""
    kept: list[Band] = []
    for band in sorted(bands, key=lambda band: -band.depth):
        if all(abs(band.centre - other.centre) >= APART for other in kept):
            kept.append(band)
    return sorted(kept, key=lambda band: band.centre)


def _hull(x: Floats, y: Floats) -> Floats:
    """The upper convex hull of the points, at x (rising)."""
    corner: list[int] = []
    for i in range(len(x)):
        while len(corner) > 1:
            a, b = corner[-2], corner[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) > (y[i] - y[a]) * (x[b] - x[a]):
                break
            corner.pop()
        corner.append(i)
    hull: Floats = np.interp(x, x[corner], y[corner])
    return hull


def _measure(x: Floats, level: Floats, peak: int) -> Band:
    """The band about a dip of the smoothed, continuum-removed spectrum."""
    left, right = _shoulder(level[: peak + 1][::-1]), _shoulder(level[peak:])
    first, last = peak - left, peak + right
    line = np.interp(x[first : last + 1], x[[first, last]], level[[first, last]])
    depth = 1.0 - level[first : last + 1] / line
    own = x[first : last + 1]
    deepest = int(depth.argmax())
    core = _run_about(depth >= CORE * depth[deepest], deepest)
    centre, height = own[deepest], float(depth[deepest])
    if core.stop - core.start >= 3:
        a, b, _ = np.polyfit(own[core] - centre, depth[core], 2)
        if a < 0 and abs(b / (2 * a)) < np.ptp(own[core]) / 2:
            centre = centre - b / (2 * a)
    half = _run_about(depth >= 0.5 * height, deepest)
    ends = [_crossing(own, depth, half.start, -1, height / 2), _crossing(own, depth, half.stop - 1, 1, height / 2)]
    return Band(float(centre), height, float(ends[1] - ends[0]))


def _shoulder(outward: Floats) -> int:
    """Steps from the dip (first) to where the band ends, on the way out."""
    top = outward.max()
    return int(np.flatnonzero(outward >= top - SHOULDER * (top - outward[0]))[0])


def _run_about(is_in: NDArray[np.bool_], middle: int) -> slice:
    """The unbroken run of true values that holds `middle`."""
    out = np.flatnonzero(~is_in)
    before, after = out[out < middle], out[out > middle]
    return slice(int(before[-1]) + 1 if before.size else 0, int(after[0]) if after.size else len(is_in))


def _crossing(x: Floats, depth: Floats, inside: int, step: int, height: float) -> float:
    """Where the depth falls to `height`, between the last value inside and its neighbour outside."""
    outside = inside + step
    if not 0 <= outside < len(x):
        return float(x[inside])
    share = (depth[inside] - height) / (depth[inside] - depth[outside])
    return float(x[inside] + share * (x[outside] - x[inside]))
