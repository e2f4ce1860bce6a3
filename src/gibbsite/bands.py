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


def micrometres(values: NDArray[np.float64], unit: str, source: Path) -> NDArray[np.float64]:
    """The wavelengths in µm; an unknown unit (empty or `unknown`) is told by the numbers themselves."""
    unit = unit.strip().lower()
    if unit in _TO_MICROMETRES:
        factor = _TO_MICROMETRES[unit]
    elif unit in ("", "unknown"):
        factor = 1e-3 if values.max() > _PLAUSIBLE[1] else 1.0
    else:
        raise InputError(f"{source}: found wavelength units {unit}, expected Nanometers or Micrometers")
    found = values * factor
    if not (np.isfinite(found).all() and _PLAUSIBLE[0] <= found.min() and found.max() <= _PLAUSIBLE[1]):
        raise InputError(
            f"{source}: wavelengths from {found.min():g} to {found.max():g} µm, expected {_PLAUSIBLE[0]:g} to "
            f"{_PLAUSIBLE[1]:g}; mend the list or its unit"
        )
    return found


def read_list(path: Path, n_bands: int) -> NDArray[np.float64]:
    """Wavelength (band) in µm from a text file of one number per band, in nm or µm."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        values = np.array([float(word) for word in re.split(r"[,;\s]+", text) if word])
    except OSError as error:
        raise InputError(f"{path}: cannot read the wavelengths ({error.strerror}); check the path") from None
    except ValueError:
        raise InputError(f"{path}: not a list of numbers; give a text file of one wavelength per band") from None
    if values.size != n_bands:
        raise InputError(f"{path}: {values.size} wavelengths for {n_bands} bands; give one for every band")
    return micrometres(values, "", path)
