"""Bland pixels: those whose spectra come nearest to a straight line. Spectra are ratioed to them.

What a pixel shares with bland ones seen by the same detector column (air, column calibration, light) drops out
of the ratio; what is left is its minerals. Each column has its own bland pixels, because each has its own error.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHARE = 0.05
"""The blandest share of a column's pixels."""
LEAST_BLAND = 3
"""At least so many of a column."""
LEAST_PIXELS = 20
"""A column with fewer valid pixels takes the bland pixels of the whole scene."""
AIR = (1.94, 2.09)
"""µm. Carbon dioxide absorbs here (McGuire et al. 2009, Planet. Space Sci. 57, 809-815): these bands do not judge."""
CELL = 0.04
"""µm. Bands are averaged over so much before they are judged, which keeps noise from deciding."""


def blandness(wavelength: Floats, spectra: NDArray[np.floating], limits: tuple[float, float]) -> Floats:
    """How far each spectrum (n_pixels, n_bands) is from a straight line within the limits (µm).

    The root mean square of its deviation from the line of least squares, over its mean. NaN where that is not positive
    or a whole stretch of 0.04 µm has no value. A spectrum's score does not depend on the others beside it.
    """
    used = (wavelength >= limits[0]) & (wavelength <= limits[1])
    used = used & ~((wavelength > AIR[0]) & (wavelength < AIR[1])) if used.sum() > 8 else np.ones_like(used)
    _, first, count = np.unique(np.floor(wavelength[used] / CELL), return_index=True, return_counts=True)
    x = np.add.reduceat(wavelength[used], first) / count
    is_finite = np.isfinite(spectra[:, used])
    total = np.add.reduceat(np.where(is_finite, spectra[:, used], 0.0).astype(np.float64), first, axis=1)
    n = np.add.reduceat(is_finite, first, axis=1, dtype=np.int64)
    value = np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0)
    x = x - x.mean()
    mean = value.sum(axis=1) / len(x)
    slope = (value * x).sum(axis=1) / max(float(np.square(x).sum()), 1e-12)
    rest = value - mean[:, None] - slope[:, None] * x
    score = np.sqrt(np.square(rest).sum(axis=1) / len(x))
    return np.divide(score, mean, out=np.full(len(mean), np.nan), where=mean > 0)


def choose(score: Floats, column: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Which pixels (y, x) are bland: the lowest scores of each detector column (y, x).

    Pixels without a score (NaN) never are. Columns with too few pixels, and the pixels of unknown column
    (-1) as one more, take part only when the scene has no larger column.
    """
    usable, values = np.isfinite(score).ravel(), score.ravel()
    owner = column.ravel()
    count = dict(zip(*(found.tolist() for found in np.unique(owner[usable], return_counts=True)), strict=True))
    least = min(LEAST_PIXELS, max(count.values(), default=0))
    chosen = np.zeros(score.size, bool)
    if len(count) == 1:
        # One column is the whole scene: places of its pixels would take as much room as their scores.
        chosen[usable] = _lowest(values[usable])
        return chosen.reshape(score.shape)
    # Sorted by column alone: with the scores, all pixels would be held several times.
    order = np.argsort(owner, kind="stable")
    for value, n in count.items():
        if n >= least:
            first, last = (np.searchsorted(owner, value, side, sorter=order) for side in ("left", "right"))
            own = order[first:last][usable[order[first:last]]]
            chosen[own] = _lowest(values[own])
    return chosen.reshape(score.shape)


def _lowest(score: Floats) -> NDArray[np.bool_]:
    """Which of a column's scores are those of its bland pixels; among equal ones the first."""
    wanted = min(len(score), max(int(np.ceil(SHARE * len(score))), LEAST_BLAND))
    highest = np.partition(score, wanted - 1)[wanted - 1]
    found = score < highest
    found[np.flatnonzero(score == highest)[: wanted - int(found.sum())]] = True
    return found


def denominators(total: Floats, n: NDArray[np.int64]) -> Floats:
    """The bland spectrum (n_columns + 1, n_bands) of each column from sums over its bland pixels; the last of all.

    `total` and `n` (n_columns + 1, n_bands): sums of the columns, the last row of pixels of unknown column. A column
    without bland pixels has the scene's, and so have pixels of unknown column, who find theirs at -1.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        everywhere = total.sum(axis=0) / n.sum(axis=0)
        own = np.where(n > 0, total / n, everywhere)
    own[-1] = everywhere
    return np.where(own > 0, own, np.nan)
