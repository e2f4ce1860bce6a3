"""Spectra to whitened features in fixed point, and the basis that does it.

    fences      (`fences.py`) low and high per band, from a sample of the spectra, and values in cells between them
    band_sums   integer sums over spectra in cells; `+` joins blocks
    noise_sums  the same over differences of neighbours, which are noise twice over
    fit_basis   sums -> standardise, principal components (or minimum noise fraction), whitening
    project     spectra -> features;  quantise  features -> int16

Values are held within their band's fences first, in the sums and in every projection: a cosmic-ray spike
counts as an unusually bright value, not as a thousand of them. Between its fences a band has 2¹⁴ cells, and
sums of cell numbers and of their products are integers: exact, so the basis is the same bytes for any block
size, order or number of threads. `project` adds up every pixel by itself, band by band, so its features do not
depend on the block it came in.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels
from gibbsite.errors import InputError, SettingsError
from gibbsite.fences import CELLS, Cells, Fences, cells
from gibbsite.threads import in_order

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Spectra = NDArray[np.floating]

FIXED_STEP = 2.0**-10
"""Step of the fixed-point features."""
FIXED_CLIP = 32.0 - FIXED_STEP
"""Largest magnitude of a feature: 32767 steps, all that int16 holds."""

RANK_FLOOR = 1e-6
"""Variance, against one standardised band's, below which a component is rounding and not signal."""
MOST_PAIRS = 2**14
"""Neighbours whose differences are added up in a scene, spread over it: plenty for the noise of some hundred bands."""
FEW_PAIRS = 2**11
"""The same where noise is only told, not asked which features there are: its shares are then good to 3 %."""
SPECTRA_AT_ONCE = 2**12
"""That a thread adds up."""


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
    noise_share: Floats
    """(n_features,) share of a feature's variance that is noise, by the differences of neighbours; NaN unknown."""
    method: str
    """`pca` or `mnf`."""
    n_pixels: int
    """Spectra it was learnt from."""

    def digest(self) -> str:
        """SHA-256 of everything that decides a feature, in hexadecimal."""
        parts = (self.mean, self.scale, self.axes, self.fences.low, self.fences.high, self.wavelength)
        return hashlib.sha256(b"".join(np.ascontiguousarray(part, "<f8").tobytes() for part in parts)).hexdigest()


def no_sums(n_bands: int) -> BandSums:
    """Sums over no spectra."""
    return BandSums(0, np.zeros(n_bands, np.int64), np.zeros((n_bands, n_bands), np.int64))


def band_sums(cell: Cells, largest: int = CELLS) -> BandSums:
    """Sums over spectra in cells (n_bands, n_spectra), none of which is larger than that."""

    def of_some(start: int) -> BandSums:
        sums = kernels.cell_products(cell[:, start : start + SPECTRA_AT_ONCE], largest)
        return BandSums(int(sums[-1, -1]), sums[-1, :-1], sums[:-1, :-1])

    return sum(in_order(of_some, range(0, cell.shape[1], SPECTRA_AT_ONCE)), no_sums(len(cell)))


def noise_sums(cell: Cells, pixel: Integers, width: int, most_pairs: int = MOST_PAIRS) -> BandSums:
    """Sums over the differences of neighbours in a line: of spectra (n_bands, n_spectra) of pixels y · width + x.

    The ground changes little from one pixel to the next, so a difference is mostly noise, stripes included.
    """
    # Spectra may come strip by strip; which pairs are taken must not depend on how a scene was cut.
    order = np.argsort(pixel, kind="stable")
    pixel = pixel[order]
    left = np.flatnonzero((np.diff(pixel) == 1) & (pixel[1:] % width != 0))
    left = left[:: -(-len(left) // most_pairs) or 1]
    return band_sums(cell.take(order[left + 1], axis=1) - cell.take(order[left], axis=1), 2 * CELLS)


class Learnt(NamedTuple):
    """What a basis is fitted to."""

    sums: BandSums
    """Over all spectra."""
    noise: BandSums
    """Over differences of neighbours."""
    within: Fences
    """Fences of both."""
    wavelength: Floats
    """(n_bands,) µm."""


def fit_basis(learnt: Learnt, n_features: int | Literal["auto"], method: str = "pca") -> Basis:
    """The basis of the leading components of the standardised bands, whitened.

    `pca` takes components by variance, `mnf` by the share of noise in their variance, least first (Green et al. 1988,
    IEEE Trans. Geosci. Remote Sens. 26, 65-74). `auto` takes the leading ones that noise makes up less than half of.
    Each axis points where its largest loading is positive, so the same spectra always give the same signs.
    """
    sums, within = learnt.sums, learnt.within
    _check_counts(sums, 1 if n_features == "auto" else n_features)
    if learnt.noise.n < 2 and (method == "mnf" or n_features == "auto"):
        raise InputError(
            f"found {learnt.noise.n} pairs of neighbouring usable pixels, expected at least 2 to tell noise from "
            "signal; set features.method to pca and features.n_features to a number"
        )
    covariance = _covariance(sums)
    # A band that stays in one cell has variance 0, and must not get a scale from rounding.
    varies = covariance.diagonal() > 0.5
    scale_cell = np.sqrt(np.where(varies, covariance.diagonal(), 1.0))
    both = np.where(np.outer(varies, varies), 1.0 / np.outer(scale_cell, scale_cell), 0.0)
    correlation, noise = covariance * both, _covariance(learnt.noise) / 2 * both
    axes = _components(correlation, noise, method)
    share = ((axes @ noise) * axes).sum(axis=1) if learnt.noise.n > 1 else np.full(len(axes), np.nan)
    n_kept = _n_below_half(share) if n_features == "auto" else n_features
    _check_rank(len(axes), n_kept)
    middle, unit = cells(within)
    mean = middle + sums.total / sums.n * unit
    scale = np.where(varies, scale_cell * unit, 1.0)
    return Basis(
        mean=mean,
        scale=scale,
        axes=_point_up(axes[:n_kept]),
        fences=within,
        wavelength=np.asarray(learnt.wavelength, np.float64),
        variance=((axes[:n_kept] @ correlation) ** 2).sum(axis=1) / max(1, int(varies.sum())),
        noise_share=share[:n_kept],
        method=method,
        n_pixels=sums.n,
    )


def project(spectra: Spectra, basis: Basis) -> NDArray[np.float32]:
    """Features (n_spectra, n_features) of spectra (n_spectra, n_bands), all finite."""
    feature, _ = project_lines(np.asarray(spectra, np.float32).T[None], basis)
    return feature[0].T


def project_lines(lines: NDArray[np.float32], basis: Basis) -> tuple[NDArray[np.float32], Floats]:
    """Features (line, feature, sample) of lines (line, band, sample), and the reconstruction error (line, sample).

    That is the root mean square over bands, in standard deviations of each, of what the features leave of a spectrum
    held within its fences. A sample's sums are added in the order of its bands, whatever stands beside it.
    """
    n_samples, width = lines.shape[2], kernels.LANES
    project_strip = strip_projection(basis)
    parts = []
    for start in range(0, n_samples, width):
        strip = lines[:, :, start : start + width]
        room = ((0, 0), (0, 0), (0, width - strip.shape[2]))
        parts.append(project_strip(np.ascontiguousarray(np.pad(strip, room) if strip.shape[2] < width else strip)))
    feature, error = (np.concatenate(some, axis=-1)[..., :n_samples] for some in zip(*parts, strict=True))
    return feature, error


def strip_projection(basis: Basis) -> Callable[[NDArray[np.float32]], tuple[NDArray[np.float32], Floats]]:
    """The function that does what `project_lines` does, for strips (line, band, LANES)."""
    table = np.stack([basis.fences.low, basis.fences.high, basis.mean, 1 / basis.scale]).astype(np.float32)
    axes = np.ascontiguousarray(basis.axes.T, np.float32)
    within = np.linalg.inv(basis.axes @ basis.axes.T)

    return lambda strip: kernels.project_lines(strip, table, axes, within)


def quantise(values: NDArray[np.floating], step: float = FIXED_STEP, clip: float = FIXED_CLIP) -> NDArray[np.int16]:
    """Finite values in whole steps, held within ±clip."""
    return np.rint(np.clip(values, -clip, clip) / step).astype(np.int16)


def _covariance(sums: BandSums) -> Floats:
    """Covariance (n_bands, n_bands) in cells²; 0 of nothing."""
    mean = sums.total / max(1, sums.n)
    return np.asarray(sums.outer / max(1, sums.n) - np.outer(mean, mean))


def _components(correlation: Floats, noise: Floats, method: str) -> Floats:
    """All directions (n, n_bands) of unit variance, the wanted ones first, but none that is mere rounding."""
    value, vector = np.linalg.eigh(correlation)
    value, vector = value[::-1], vector[:, ::-1].T
    rank = int((value > RANK_FLOOR).sum())
    axes = vector[:rank] / np.sqrt(value[:rank, None])
    if method == "pca":
        return axes
    _, turn = np.linalg.eigh(axes @ noise @ axes.T)
    return np.asarray(turn.T @ axes)


def _n_below_half(noise_share: Floats) -> int:
    """Number of leading components before the first that noise makes up half of, at least one."""
    noisy = np.flatnonzero(noise_share >= 0.5)
    return max(1, int(noisy[0]) if noisy.size else len(noise_share))


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


def _check_rank(rank: int, n_features: int) -> None:
    if n_features > rank:
        raise InputError(
            f"features.n_features is {n_features}, but the spectra vary in only {rank} independent ways; "
            f"lower it to {max(rank, 1)} or less, or check the cubes for constant or repeated bands"
        )
