"""How alike two spectra are in their absorption bands, whatever their brightness, slope and depth.

A spectrum's *shape* is what it lacks below its continuum, on a grid of 5 nm, in two parts: dips narrower than
`NARROW`, which name hydrous minerals, salts and carbonates, and the broad rest, which names pyroxene, olivine and
plagioclase. The narrow part counts more. The score of two shapes is the cosine between them: 1 for the same bands
in the same proportions, 0 for none in common.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import grey_closing

from gibbsite.continuum import remove_continuum, smooth

Floats = NDArray[np.float64]

STEP = 0.005
"""µm of the grid."""
NARROW = 0.4
"""µm. Dips narrower than this at their top are narrow."""
WEIGHT = 3.0
"""Of the narrow part. With these two numbers the built-in table names 20 of the 29 CRISM type spectra that it has an
entry for (Viviano-Beck et al. 2014), and 28 within its first three."""
COVERED = 0.9
"""A library spectrum that covers less of the range is not compared."""


@dataclass(frozen=True, eq=False)
class Reference:
    """A spectrum of a library."""

    name: str
    source: str
    """Where it is from."""
    wavelength: Floats
    """µm, rising."""
    spectrum: Floats
    """NaN where there is no value."""


def shape(wavelength: Floats, spectrum: Floats, limits: tuple[float, float]) -> Floats | None:
    """The shape of a spectrum within the limits (µm); None when it does not cover them or is not positive there."""
    used = np.isfinite(spectrum) & (wavelength >= limits[0] - 0.05) & (wavelength <= limits[1] + 0.05)
    x, y = wavelength[used], spectrum[used]
    if x.size < 20 or min(x[-1], limits[1]) - max(x[0], limits[0]) < COVERED * (limits[1] - limits[0]):
        return None
    grid = np.arange(limits[0], limits[1] + STEP / 2, STEP)
    removed = remove_continuum(grid, np.interp(grid, x, smooth(x, y)), (0.0, np.inf))
    if np.isnan(removed).any():
        return None
    size = min(int(NARROW / STEP) | 1, len(grid) - 1)
    closed = grey_closing(np.pad(removed, size, mode="reflect"), size)[size:-size]
    return np.concatenate([WEIGHT * (closed - removed), 1.0 - closed])


def likeness(one: Floats, other: Floats) -> float:
    """The score of two shapes, 0 to 1; 0 when one of them has no bands at all."""
    size = float(np.sqrt(np.square(one).sum() * np.square(other).sum()))
    return float((one * other).sum() / size) if size > 0 else 0.0


def rank(own: Floats, shapes: Sequence[tuple[Reference, Floats]]) -> list[tuple[Reference, float]]:
    """The references with their scores, the best first, each name once."""
    scored = sorted(((likeness(own, other), -n) for n, (_, other) in enumerate(shapes)), reverse=True)
    best: dict[str, tuple[Reference, float]] = {}
    for score, n in scored:
        reference = shapes[-n][0]
        best.setdefault(reference.name, (reference, score))
    return list(best.values())
