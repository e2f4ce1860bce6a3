"""How files tell the wavelengths of their bands: the unit, and lists kept beside an image."""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import InputError

_TO_MICROMETRES = {
    **dict.fromkeys(("nanometers", "nanometres", "nanometer", "nanometre", "nm"), 1e-3),
    **dict.fromkeys(("micrometers", "micrometres", "micrometer", "micrometre", "microns", "micron"), 1.0),
    **dict.fromkeys(("um", "µm", "μm"), 1.0),
}
_PLAUSIBLE = (0.1, 100.0)
"""µm: no imaging spectrometer goes beyond."""


def micrometres(
    values: NDArray[np.float64], unit: str, source: Path, listed_good: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """The wavelengths in µm; an unknown unit (empty or `unknown`) is told by the numbers themselves.

    A band that is listed as bad may have none: NaN.
    """
    unit, good = unit.strip().lower(), np.ones(len(values), np.bool_) if listed_good is None else listed_good
    if unit in _TO_MICROMETRES:
        factor = _TO_MICROMETRES[unit]
    elif unit in ("", "unknown"):
        factor = 1e-3 if values[good & np.isfinite(values)].max(initial=0.0) > _PLAUSIBLE[1] else 1.0
    else:
        raise InputError(f"{source}: found wavelength units {unit}, expected Nanometers or Micrometers")
    found = values * factor
    is_plausible = np.isfinite(found) & (found >= _PLAUSIBLE[0]) & (found <= _PLAUSIBLE[1])
    if not (is_plausible | ~good).all():
        band = int(np.argmin(is_plausible | ~good))
        raise InputError(
            f"{source}: band {band} has a wavelength of {found[band]:g} µm, expected {_PLAUSIBLE[0]:g} to "
            f"{_PLAUSIBLE[1]:g}; mend the list or its unit, or list the band as bad (bbl)"
        )
    return np.where(is_plausible, found, np.nan)


def with_place(wavelength: NDArray[np.float64], listed_good: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Numbers of the bands that have a place in a spectrum, by wavelength: all but bands listed as bad that have none,
    or that of another band."""
    value, inverse, count = np.unique(wavelength, return_inverse=True, return_counts=True)
    is_alone = np.isfinite(value[inverse]) & (count[inverse] == 1)
    placed = np.flatnonzero(listed_good | is_alone)
    return placed[np.argsort(wavelength[placed], kind="stable")]


def read_list(path: Path, listed_good: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Wavelength (band) in µm from a text file of one number per band, in nm or µm."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        values = np.array([float(word) for word in re.split(r"[,;\s]+", text) if word])
    except OSError as error:
        raise InputError(f"{path}: cannot read the wavelengths ({error.strerror}); check the path") from None
    except ValueError:
        raise InputError(f"{path}: not a list of numbers; give a text file of one wavelength per band") from None
    if values.size != listed_good.size:
        raise InputError(f"{path}: {values.size} wavelengths for {listed_good.size} bands; give one for every band")
    return micrometres(values, "", path, listed_good)
