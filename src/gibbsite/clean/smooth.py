"""Noise along the spectrum: local polynomials, as Savitzky and Golay (1964, Anal. Chem. 36, 1627-1639) fit them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import SettingsError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Weights:
    """Bands as sums of neighbouring bands."""

    start: NDArray[np.int64]
    """(n_out) First of the bands that are combined."""
    weight: NDArray[np.float32]
    """(n_out, width)."""


def smoothing(wavelength: Floats, wanted: NDArray[np.integer], window: int, order: int) -> Weights:
    """Weights of the polynomials of this order through `window` bands around each `wanted` one, at its wavelength.

    They are fitted over the real wavelengths (band), so a gap between bands counts with its width. At the ends the
    window stays within the bands.
    """
    if window > len(wavelength):
        raise SettingsError(
            f"clean.smooth: found a window of {window} for {len(wavelength)} bands; lower it, or widen "
            "features.wavelengths"
        )
    start = np.clip(np.asarray(wanted, np.int64) - window // 2, 0, len(wavelength) - window)
    weight = np.empty((len(start), window))
    for place, (first, band) in enumerate(zip(start, wanted, strict=True)):
        offset = wavelength[first : first + window] - wavelength[band]
        powers = np.vander(offset / np.abs(offset).max(), order + 1, increasing=True)
        # The fitted value at the band itself is the constant term.
        weight[place] = np.linalg.pinv(powers)[0]
    return Weights(start, weight.astype(np.float32))
