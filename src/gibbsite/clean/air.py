"""Carbon dioxide in the air above each pixel, from the transmission that a volcano scan measured.

The scan's path through the air is not the pixel's, but the shape of the bands is the same: a pixel is divided by
transmission^β, where β makes its own carbon dioxide band (a pair of wavelengths, one in the band, one beside it) vanish
(McGuire et al. 2009, Planet. Space Sci. 57, 809-815).

That leaves a bowl about 2 µm with the teeth of the gas in it: the gas over the scene is not quite the volcano's.
The record's artefact spectrum shows it, and a multiple of it is added: the one that takes the most of its teeth (what a
band has beyond the mean of the next two) out of the pixel. Teeth, not the bowl, because minerals have broad bands here.
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
    artefact: NDArray[np.float64]
    """(band, column) A multiple of which is added; 0 where there is none."""
    tooth: NDArray[np.float64]
    """(band, column) The sum of these times a spectrum is that multiple."""


def fit_air(
    transmission: NDArray[np.float64],
    wavelength: NDArray[np.float64],
    pair: str,
    artefact: NDArray[np.float64] | None = None,
) -> Air:
    """The air of `transmission` (column, band), NaN unknown, at wavelengths (band) or (column, band) in µm, and the
    artefact (column, band) that goes with the pair."""
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
    left = np.zeros(transmission.shape) if artefact is None else np.nan_to_num(artefact, nan=0.0)
    return Air(np.ascontiguousarray(known.T), bands[0], bands[1], np.ascontiguousarray(left.T), _teeth(left))


def _teeth(artefact: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights (band, column) that find how much of an artefact (column, band) must be added to a spectrum.

    With t(x) = x − the mean of its two neighbours, the multiple that leaves the least Σ t(spectrum + m · artefact)² is
    m = −Σ t(spectrum) t(artefact) / Σ t(artefact)², a weighted sum of the spectrum. Nothing where there are no teeth.
    """
    tooth = np.zeros(artefact.shape)
    tooth[:, 1:-1] = artefact[:, 1:-1] - (artefact[:, :-2] + artefact[:, 2:]) / 2
    # At its ends the artefact begins from nothing: the step there is no tooth of the gas.
    inside = artefact != 0
    tooth[:, 1:-1] *= inside[:, :-2] & inside[:, 1:-1] & inside[:, 2:]
    square = np.square(tooth).sum(axis=1, keepdims=True)
    weight = tooth.copy()
    weight[:, 1:] -= tooth[:, :-1] / 2
    weight[:, :-1] -= tooth[:, 1:] / 2
    found = np.divide(-weight, square, out=np.zeros_like(weight), where=square > 0)
    return np.ascontiguousarray(found.T)
