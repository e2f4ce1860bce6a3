"""Carbon dioxide in the air above each pixel, from the transmission that a volcano scan measured.

The scan's path through the air is not the pixel's, but the shape of the bands is the same: a pixel is divided by
transmission^β, where β makes its own carbon dioxide band (a pair of wavelengths, one in the band, one beside it) vanish
(McGuire et al. 2009, Planet. Space Sci. 57, 809-815).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import InputError

PAIRS = {"2007/1980": (2.007, 1.980), "2011/1899": (2.011, 1.899)}
"""µm inside and beside the band, by the name in the settings."""
_LEAST_DEPTH = 0.05
"""Of the logarithm of the transmission between the two: less than this says nothing about the air."""
_MOST_OFF = 0.015
"""µm a band may lie from the wavelength it stands for."""


@dataclass(frozen=True, eq=False)
class Air:
    """What `kernels.divide_air` needs to know."""

    log_transmission: NDArray[np.float64]
    """(band, column); 0 where the scan has none, NaN in columns that cannot be corrected."""
    inside: NDArray[np.int64]
    """(column) Band in the absorption."""
    outside: NDArray[np.int64]
    """(column) Band beside it."""


def fit_air(transmission: NDArray[np.float64], wavelength: NDArray[np.float64], pair: str) -> Air:
    """The air of `transmission` (column, band), NaN unknown, at wavelengths (band) or (column, band) in µm."""
    centre = np.broadcast_to(wavelength, transmission.shape)
    bands = []
    for wanted in PAIRS[pair]:
        distance = np.where(np.isfinite(centre) & (transmission > 0), np.abs(centre - wanted), np.inf)
        if not (distance.min(initial=np.inf) < _MOST_OFF):
            raise InputError(
                f"clean.atmosphere {pair}: no band with a known transmission near {1000 * wanted:.0f} nm; "
                "widen features.wavelengths to take it in, or set clean.atmosphere to null"
            )
        bands.append(distance.argmin(axis=1))
    logarithm = np.log(np.where(transmission > 0, transmission, np.nan))
    column = np.arange(len(transmission))
    depth = logarithm[column, bands[1]] - logarithm[column, bands[0]]
    is_known = depth > _LEAST_DEPTH
    known = np.where(is_known[:, None], np.nan_to_num(logarithm, nan=0.0), np.nan)
    return Air(np.ascontiguousarray(known.T), bands[0], bands[1])
