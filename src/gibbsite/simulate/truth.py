"""The truth in numbers: the pixels of each class, what it was planted for, its mean noise-free spectrum."""

import csv
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.simulate.detector import map_channels
from gibbsite.simulate.fields import Floats, Integers
from gibbsite.simulate.instrument import Pixels
from gibbsite.simulate.minerals import FALSE_BAND, MINERALS, transmitted
from gibbsite.simulate.terrain import CLASSES


@dataclass(frozen=True)
class Tally:
    """Sums over the pixels of each class, by code; code 0 is unknown."""

    n_pixels: Integers
    """(n_classes + 1)"""
    abundance: Floats
    """(n_classes + 1, n_minerals)"""
    false_band: Floats
    """(n_classes + 1) Depth of the false band."""

    @classmethod
    def none(cls) -> "Tally":
        """No pixel yet."""
        n_codes = len(CLASSES) + 1
        return cls(np.zeros(n_codes, dtype=np.int64), np.zeros((n_codes, len(MINERALS))), np.zeros(n_codes))

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.n_pixels + other.n_pixels,
            self.abundance + other.abundance,
            self.false_band + other.false_band,
        )


def count(code: NDArray[np.uint8], pixels: Pixels) -> Tally:
    """The tally of these pixels, whose classes are `code`."""
    n_codes = len(CLASSES) + 1
    abundance = [np.bincount(code, weights=amount, minlength=n_codes) for amount in pixels.abundance]
    false_band = np.bincount(code, weights=pixels.false_band, minlength=n_codes).astype(np.float64)
    return Tally(np.bincount(code, minlength=n_codes), np.stack(abundance, axis=1), false_band)


def summary(sensor: Tally, n_map_pixels: Integers, n_labelled: Integers) -> dict[str, Any]:
    """What is true of each class, and which classes play which part."""
    n_scene = int(sensor.n_pixels[1:].sum())
    roles = {role: [item.name for item in CLASSES if item.role == role] for role in dict.fromkeys(_roles())}
    return {
        "classes": [
            {
                "code": code,
                "name": item.name,
                "role": item.role,
                "n_pixels": int(sensor.n_pixels[code]),
                "share": float(sensor.n_pixels[code] / n_scene),
                "n_map_pixels": int(n_map_pixels[code]),
                "n_labelled_pixels": int(n_labelled[code]),
            }
            for code, item in enumerate(CLASSES, 1)
        ],
        "roles": roles,
    }


def spectra(sensor: Tally) -> str:
    """CSV of the mean reflectance of each class without noise and air, at the map product's wavelengths."""
    wavelength = map_channels().wavelength[:, 0]
    pure = np.stack([mineral.reflectance(wavelength) for mineral in MINERALS])
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["wavelength_um", *(item.name for item in CLASSES)])
    columns = []
    for code in range(1, len(CLASSES) + 1):
        n_pixels = max(int(sensor.n_pixels[code]), 1)
        mean = (sensor.abundance[code] / n_pixels) @ pure
        columns.append(mean * (1.0 - sensor.false_band[code] / n_pixels * (1.0 - transmitted(FALSE_BAND, wavelength))))
    for place, row in zip(wavelength, np.stack(columns, axis=1), strict=True):
        table.writerow([f"{place:.5f}", *(f"{value:.6f}" for value in row)])
    return text.getvalue()


def _roles() -> list[str]:
    return [item.role for item in CLASSES]
