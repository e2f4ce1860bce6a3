"""Spectra to whitened features in fixed point, and the basis that does it.

    fences     low and high per band, from a sample of the spectra
    band_sums  integer sums over a block of spectra; `+` joins blocks
    fit_basis  sums -> standardise, principal components, whitening
    project    spectra -> features;  quantise  features -> int16

Values are held within their band's fences first, in the sums and in every projection: a cosmic-ray spike
counts as an unusually bright value, not as a thousand of them. Between its fences a band has 2¹⁸ cells, and
sums of cell numbers and of their products are integers: exact, so the basis is the same bytes for any block
size, order or number of threads. `project` rounds so that its sums are exact too; then a pixel's features
do not depend on the block it came in.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import InputError, SettingsError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Spectra = NDArray[np.floating]

FIXED_STEP = 2.0**-10
"""Step of the fixed-point features."""
FIXED_CLIP = 32.0 - FIXED_STEP
"""Largest magnitude of a feature: 32767 steps, all that int16 holds."""

CELLS = 2**17
"""Cells from the middle of a band's fences to either; int64 then has room for 2²⁹ pixels on the fences."""
STANDARD_STEP = 2.0**-14
"""Step to which standardised values are rounded before they are projected."""
RANK_FLOOR = 1e-6
"""Variance, against one standardised band's, below which a component is rounding and not signal."""
ROWS_AT_ONCE = 2**15
"""Spectra per matrix product: bounds memory, and 2¹⁵ · 2³⁴ is below 2⁵³, where float64 stops being exact."""


@dataclass(frozen=True)
class Fences:
    """The range in which values of each band are taken as they are; beyond it they count as the fence."""

    low: Floats
    """(n_bands,) reflectance."""
    high: Floats
    """(n_bands,) reflectance."""


@dataclass(frozen=True)
class BandSums:
    """Sums over spectra, in cells from the middle of the fences."""

    n: int
    """Spectra."""
    total: Integers
    """(n_bands,) Σx."""
    outer: Integers
    """(n_bands, n_bands) Σxxᵀ."""

    def __add__(self, other: "BandSums") -> "BandSums":
        return BandSums(self.n + other.n, self.total + other.total, self.outer + other.outer)


@dataclass(frozen=True)
class Basis:
    """How a spectrum becomes features: axes @ ((spectrum within its fences − mean) / scale)."""

    mean: Floats
    """(n_bands,) reflectance."""
    scale: Floats
    """(n_bands,) standard deviation; 1 where a band never varies."""
    axes: Floats
    """(n_features, n_bands) principal directions over the square root of their variance."""
    fences: Fences
    """Where spikes stop."""
    wavelength: Floats
    """(n_bands,) µm."""
    variance: Floats
    """(n_features,) share of the variance of all standardised bands."""
    n_pixels: int
    """Spectra it was learnt from."""

    def digest(self) -> str:
        """SHA-256 of everything that decides a feature, in hexadecimal."""
        parts = (self.mean, self.scale, self.axes, self.fences.low, self.fences.high, self.wavelength)
        return hashlib.sha256(b"".join(np.ascontiguousarray(part, "<f8").tobytes() for part in parts)).hexdigest()


def fences(sample: Spectra) -> Fences:
    """Fences (n_bands,) of a sample (n_spectra, n_bands): the 1-99 % range, widened by its length either way.

    For a normal band that is ±7 standard deviations. Up to 1 % of spikes on either side do not move them, and
    a unit that covers more than 1 % of the ground lies within them, however far it is from the rest.
    """
    first, last = np.percentile(np.asarray(sample, np.float64), [1.0, 99.0], axis=0)
    reach = last - first
    return Fences(first - reach, last + reach)


def no_sums(n_bands: int) -> BandSums:
    """Sums over no spectra."""
    return BandSums(0, np.zeros(n_bands, np.int64), np.zeros((n_bands, n_bands), np.int64))


def band_sums(spectra: Spectra, within: Fences) -> BandSums:
    """Sums over spectra (n_spectra, n_bands), all finite."""
    sums = no_sums(spectra.shape[1])
    middle, unit = _cells(within)
    for start in range(0, len(spectra), ROWS_AT_ONCE):
        rows = np.asarray(spectra[start : start + ROWS_AT_ONCE], np.float64)
        cell = np.rint((np.clip(rows, within.low, within.high) - middle) / unit)
        outer = (cell.T @ cell).astype(np.int64)
        sums += BandSums(len(rows), cell.sum(axis=0).astype(np.int64), outer)
    return sums


def fit_basis(sums: BandSums, within: Fences, wavelength: Floats, n_features: int) -> Basis:
    """The basis of the leading `n_features` principal components of the standardised bands, whitened.

    Each axis points where its largest loading is positive, so the same spectra always give the same signs.
    """
    _check_counts(sums, n_features)
    mean_cell = sums.total / sums.n
    covariance = sums.outer / sums.n - np.outer(mean_cell, mean_cell)
    # A band that stays in one cell has variance 0, and must not get a scale from rounding.
    varies = covariance.diagonal() > 0.5
    scale_cell = np.sqrt(np.where(varies, covariance.diagonal(), 1.0))
    correlation = np.where(np.outer(varies, varies), covariance / np.outer(scale_cell, scale_cell), 0.0)
    value, vector = np.linalg.eigh(correlation)
    value, vector = value[::-1], vector[:, ::-1].T
    _check_rank(value, n_features)
    axes = vector[:n_features] / np.sqrt(value[:n_features, None])
    middle, unit = _cells(within)
    mean = middle + mean_cell * unit
    scale = np.where(varies, scale_cell * unit, 1.0)
    return Basis(
        mean=mean,
        scale=scale,
        axes=_point_up(_round_axes(axes, _reach(within, mean, scale))),
        fences=within,
        wavelength=np.asarray(wavelength, np.float64),
        variance=value[:n_features] / max(1, int(varies.sum())),
        n_pixels=sums.n,
    )


def project(spectra: Spectra, basis: Basis) -> Floats:
    """Features (n_spectra, n_features) of spectra (n_spectra, n_bands), all finite."""
    features = np.empty((len(spectra), len(basis.axes)))
    for start in range(0, len(spectra), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        held = np.clip(np.asarray(spectra[rows], np.float64), basis.fences.low, basis.fences.high)
        # Whole steps times whole multiples of a power of two (`_round_axes`): nothing is rounded in the sum.
        features[rows] = np.rint((held - basis.mean) / basis.scale / STANDARD_STEP) @ basis.axes.T
    return features * STANDARD_STEP


def quantise(values: Floats, step: float = FIXED_STEP, clip: float = FIXED_CLIP) -> NDArray[np.int16]:
    """Finite values in whole steps, held within ±clip."""
    return np.rint(np.clip(values, -clip, clip) / step).astype(np.int16)


def _cells(within: Fences) -> tuple[Floats, Floats]:
    """Middle of the fences and width of a cell (n_bands,); width 1 where the fences meet."""
    width = (within.high - within.low) / (2 * CELLS)
    return (within.low + within.high) / 2, np.where(width > 0.0, width, 1.0)


def _reach(within: Fences, mean: Floats, scale: Floats) -> float:
    """The largest standardised magnitude that can occur."""
    return float(np.max(np.maximum(within.high - mean, mean - within.low) / scale))


def _round_axes(axes: Floats, reach: float) -> Floats:
    """The axes as multiples of a power of two so coarse that `project` adds up without rounding.

    It leaves about 26 bits to the largest loading: far finer than the fixed-point step of the features.
    """
    largest_sum = axes.shape[1] * max(reach / STANDARD_STEP, 1.0) * np.abs(axes).max()
    grain = 2.0 ** (np.ceil(np.log2(largest_sum)) - 52)
    return np.rint(axes / grain) * grain


def _point_up(axes: Floats) -> Floats:
    """The axes with signs such that the largest loading of each (the first of equals) is positive."""
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    return axes * np.where(largest < 0.0, -1.0, 1.0)


def _check_counts(sums: BandSums, n_features: int) -> None:
    n_bands = len(sums.total)
    if n_features > n_bands:
        raise SettingsError(
            f"features.n_features: found {n_features} for {n_bands} bands; "
            "expected at most one feature per band: lower it, or widen features.wavelengths"
        )
    if sums.n <= n_features:
        raise InputError(
            f"found {sums.n} usable pixels for {n_features} features; expected more pixels than features: "
            "check the cubes' valid pixels, or lower features.n_features"
        )


def _check_rank(value: Floats, n_features: int) -> None:
    rank = int((value > RANK_FLOOR).sum())
    if n_features > rank:
        raise InputError(
            f"features.n_features is {n_features}, but the spectra vary in only {rank} independent ways; "
            f"lower it to {max(rank, 1)} or less, or check the cubes for constant or repeated bands"
        )
