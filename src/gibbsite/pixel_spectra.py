"""Spectra of very many pixels in a few bytes each, for a page that shows any of them.

A spectrum is rebuilt from its leading principal components: mean + Σ code · step · axis. Codes are whole steps, and
mean and axes are rounded, so that the same spectra give the same codes whatever the number of threads.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

Floats = NDArray[np.float64]

N_AXES = 16
"""Components kept; noise is most of what the others hold."""
STEP = 0.002
"""I/F along an axis of length 1. Rounding to it adds about STEP/√12 · √(axes/bands) to each band: 0.0001."""
GRAIN = 2.0**-12
"""Of the axes' numbers."""
CELL = 2.0**-14
"""I/F to which spectra are rounded when axes are learnt: 20,000 products then add up without rounding."""
SAMPLED = 20_000
"""Spectra that the axes are learnt from."""


@dataclass(frozen=True, eq=False)
class Coder:
    """How codes and spectra belong together."""

    mean: Floats
    """(n_bands) I/F."""
    axis: NDArray[np.int16]
    """(n_axes, n_bands) in GRAINs."""
    error: float
    """Root mean square, over bands, of rebuilt minus true I/F: that of the median spectrum of the sample."""

    def encode(self, spectra: NDArray[np.floating]) -> NDArray[np.int16]:
        """Codes (n_axes, n_spectra) of spectra (n_spectra, n_bands), all finite."""
        score = self.axis.astype(np.float64) @ (spectra.astype(np.float64) - self.mean).T * GRAIN
        return np.clip(np.rint(score / STEP), -32767, 32767).astype(np.int16)

    def decode(self, code: NDArray[np.int16]) -> Floats:
        """Spectra (n_spectra, n_bands) of codes (n_axes, n_spectra)."""
        rebuilt: Floats = self.mean + STEP * GRAIN * (code.T.astype(np.float64) @ self.axis.astype(np.float64))
        return rebuilt


def fit_coder(sample: NDArray[np.floating]) -> Coder:
    """The coder of spectra like these (n_spectra, n_bands), all finite."""
    spectra = sample.astype(np.float64)
    mean = np.round(spectra.mean(axis=0), 6) if len(spectra) else np.zeros(spectra.shape[1])
    # Whole numbers add up exactly, in any order; and the eigenvectors of noise turn with the last digit.
    centred = np.rint((spectra - mean) / CELL)
    with threadpool_limits(limits=1):
        variance, vector = np.linalg.eigh(centred.T @ centred)
    # An axis along which hardly any code differs from 0 is rounding, and points anywhere.
    telling = variance[::-1] * CELL**2 > len(spectra) * (STEP / 4) ** 2
    axis = vector[:, ::-1][:, telling][:, :N_AXES].T
    largest = np.take_along_axis(axis, np.abs(axis).argmax(axis=1)[:, None], axis=1)
    coder = Coder(mean, np.rint(axis * np.sign(largest) / GRAIN).astype(np.int16), 0.0)
    rest = np.sqrt(np.square(coder.decode(coder.encode(spectra)) - spectra).mean(axis=1))
    # Two digits: the rest may depend on how a processor rounds.
    error = float(f"{np.median(rest):.2g}") if len(spectra) else 0.0
    return Coder(coder.mean, coder.axis, error)


def fill(spectra: NDArray[np.float32], wavelength: Floats) -> NDArray[np.float32]:
    """The spectra (n, n_bands) with missing values interpolated; those without any value are 0."""
    filled = spectra.copy()
    for row in np.flatnonzero(~np.isfinite(spectra).all(axis=1)):
        known = np.isfinite(spectra[row])
        filled[row] = np.interp(wavelength, wavelength[known], spectra[row, known]) if known.any() else 0.0
    return filled
