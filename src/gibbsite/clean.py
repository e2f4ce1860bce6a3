"""Corrections of spectra: gaps, slant sunlight, stripes of detector columns. Arrays in, arrays out.

Destriping takes three calls, and its result does not depend on how a scene is cut into blocks:

    pixel = sample_columns(detector_column, valid)           which pixels to read, the same for every cut
    medians = column_medians(spectra[pixel], column[pixel], n_columns)
    gains = column_gains(medians, width)                     divide each spectrum by gains[its column]
"""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

Floats = NDArray[np.floating]

STEEPEST_INCIDENCE = 85.0
"""Degrees. Beyond it the light is mostly the sky's, and 1/cos would blow noise up more than 11-fold."""
WIDTH = 31
"""Columns. Narrower follows the stripes, wider flattens the scene; 31 leaves about a fifth of a stripe."""
_LARGEST_GAIN = 2.0
"""Stripes are a few per cent; a gain beyond this comes from a dark or broken band and would do harm."""
_BIWEIGHT = 6.0
"""Residuals beyond this many median absolute deviations do not pull on the smooth curve (Cleveland 1979)."""


def fill_gaps(spectra: Floats, wavelength: NDArray[np.float64]) -> Floats:
    """The spectra (..., band) with NaN replaced by linear interpolation in `wavelength` (band).

    At the ends the nearest value is taken. Spectra without any finite value stay NaN. The dtype is kept.
    """
    flat = spectra.reshape(-1, spectra.shape[-1])
    finite = np.isfinite(flat)
    broken = ~finite.all(axis=1) & finite.any(axis=1)
    if not broken.any():
        return spectra
    filled = flat.copy()
    filled[broken] = _interpolate(flat[broken], finite[broken], wavelength)
    return filled.reshape(spectra.shape)


def divide_by_cos_incidence(spectra: Floats, incidence: Floats) -> Floats:
    """The spectra (..., band) as if lit from above: divided by the cosine of `incidence` (...), degrees.

    Unknown incidence (NaN) gives NaN. Angles beyond STEEPEST_INCIDENCE count as that.
    """
    cosine = np.cos(np.deg2rad(np.minimum(incidence, STEEPEST_INCIDENCE)))
    return spectra / cosine[..., None].astype(spectra.dtype)


def sample_columns(column: NDArray[np.integer], valid: NDArray[np.bool_], most: int = 400) -> NDArray[np.int64]:
    """Rising flat indices of at most `most` valid pixels of each detector column, spread over the scene.

    `column` and `valid` are (y, x); pixels of unknown column (-1) are left out.
    """
    pixel = np.flatnonzero(valid.ravel() & (column.ravel() >= 0))
    owner = column.ravel()[pixel]
    by_column = np.argsort(owner, kind="stable")
    _, start, count = np.unique(owner[by_column], return_index=True, return_counts=True)
    place = np.arange(pixel.size) - np.repeat(start, count)
    size = np.repeat(count, count)
    # Of `size` pixels the ones are taken where place·most/size passes a whole number: `most` of them, evenly.
    taken = (size <= most) | (place * most // size != (place + 1) * most // size)
    return np.sort(pixel[by_column[taken]])


def column_medians(spectra: Floats, column: NDArray[np.integer], n_columns: int) -> NDArray[np.float64]:
    """Median (n_columns, band) of the spectra (n, band) of each detector column (n); NaN values do not count.

    NaN where a column has no finite value; pixels of unknown column (-1) are left out.
    """
    medians = np.full((n_columns, spectra.shape[1]), np.nan)
    order = np.argsort(column, kind="stable")
    starts = np.searchsorted(column[order], np.arange(n_columns + 1))
    for index in range(n_columns):
        members = spectra[order[starts[index] : starts[index + 1]]]
        if members.size:
            medians[index] = _median(members)
    return medians


def column_gains(medians: NDArray[np.float64], width: int = WIDTH) -> NDArray[np.float64]:
    """Gains (n_columns, band) that even out the stripes: each column's median over its smooth course.

    `medians` (n_columns, band) has NaN for columns without data. The smooth course is a robust local line
    under a Gaussian window about `width` columns wide: a line, so that brightness that changes broadly across
    the scene is kept up to its edges. Where there is nothing to compare, or a band is dark, the gain is 1.
    """
    known = np.isfinite(medians)
    level = np.where(known, medians, 0.0)
    weight = known.astype(np.float64)
    smooth = _local_line(level, weight, width)
    residual = np.where(known, medians - smooth, np.nan)
    spread = _median(np.abs(residual))
    scale = np.where(spread > 0, _BIWEIGHT * spread, np.inf)
    weight *= np.where(known, np.clip(1 - (np.nan_to_num(residual) / scale) ** 2, 0, None) ** 2, 0.0)
    smooth = _local_line(level, weight, width)
    usable = known & (smooth > 0) & (level > 0)
    gains = np.where(usable, level, 1.0) / np.where(usable, smooth, 1.0)
    return np.clip(gains, 1 / _LARGEST_GAIN, _LARGEST_GAIN)


def _interpolate(flat: Floats, finite: NDArray[np.bool_], wavelength: NDArray[np.float64]) -> Floats:
    """Spectra (n, band), each with some finite value, with their gaps bridged."""
    n_bands = flat.shape[1]
    band = np.arange(n_bands)
    before = np.maximum.accumulate(np.where(finite, band, -1), axis=1)
    after = np.minimum.accumulate(np.where(finite, band, n_bands)[:, ::-1], axis=1)[:, ::-1]
    left = np.where(before < 0, after, before)
    right = np.where(after == n_bands, before, after)
    span = wavelength[right] - wavelength[left]
    share = np.divide(wavelength - wavelength[left], span, out=np.zeros(flat.shape), where=span > 0)
    low, high = np.take_along_axis(flat, left, axis=1), np.take_along_axis(flat, right, axis=1)
    return np.where(finite, flat, low + share * (high - low)).astype(flat.dtype)


def _median(values: Floats) -> NDArray[np.float64]:
    """Median over the first axis of the finite values; NaN where there are none."""
    finite = np.isfinite(values)
    count = np.count_nonzero(finite, axis=0)
    ordered = np.sort(np.where(finite, values, np.inf), axis=0)
    lower = np.take_along_axis(ordered, np.maximum((count - 1) // 2, 0)[None], axis=0)[0]
    upper = np.take_along_axis(ordered, np.minimum(count // 2, len(values) - 1)[None], axis=0)[0]
    middle = np.where(count > 0, lower, 0).astype(np.float64) + np.where(count > 0, upper, 0)
    return np.where(count > 0, middle / 2, np.nan)


def _local_line(level: NDArray[np.float64], weight: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Value at each column (n_columns, band) of the line fitted to its neighbours under a Gaussian window.

    Weighted least squares, with moments S_k = Σ w dᵏ and T_k = Σ w dᵏ y of the column distance d:
    (S_2 T_0 − S_1 T_1)/(S_2 S_0 − S_1²); the weighted mean where they share one column; 0 without any.
    """
    radius = max(1, width)
    distance = np.arange(-radius, radius + 1, dtype=np.float64)
    # Standard deviation width/4: a stripe then counts for about 1/(0.9·width) of its own smooth course.
    window = np.exp(-0.5 * (4 * distance / max(1, width)) ** 2)

    def moment(values: NDArray[np.float64], power: int) -> NDArray[np.float64]:
        return correlate1d(values, window * distance**power, axis=0, mode="constant", cval=0.0)

    s0, s1, s2 = (moment(weight, power) for power in (0, 1, 2))
    t0, t1 = (moment(weight * level, power) for power in (0, 1))
    determinant = s2 * s0 - s1 * s1
    is_line = determinant > 1e-9 * s0 * s0
    mean = np.divide(t0, s0, out=np.zeros_like(t0), where=s0 > 0)
    return np.divide(s2 * t0 - s1 * t1, determinant, out=mean, where=is_line)
