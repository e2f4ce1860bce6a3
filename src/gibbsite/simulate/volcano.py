"""The volcano scan of the simulated atmosphere: what the foot of a volcano shows against its summit."""

import numpy as np

from gibbsite.simulate import formats, labelling, minerals
from gibbsite.simulate.detector import FILL, L, sensor_channels
from gibbsite.simulate.fields import Floats, key, normal
from gibbsite.simulate.keywords import Image, transmission_product
from gibbsite.simulate.task import Task

_AIR = 0.86
"""Carbon dioxide between the summit (21 km) and the foot, against one air mass at elevation 0."""
_NOISE = 5e-4
"""Relative: many lines were averaged."""
_LEVEL = 0.25
"""I/F of the foot between the gas bands."""
_SCALED_BY = ((2.007, 1.980), (2.011, 1.899))
_CONTINUUM = (1.764, 2.239)
"""µm: pairs of wavelengths by which the air is scaled, and where the continuum of the artefact is anchored."""
_SPOILT = (0, 1, 2, 436, 437)
"""Bands without transmission in the archive's record."""


def write_transmission(task: Task) -> None:
    """Write the transmission of the air at every column of L, and one artefact spectrum for each scaling pair."""
    binning = task.settings.binning
    image = Image(transmission_product(binning), 3, task.geometry.samples, L.n_bands, rows=True)
    wavelength = sensor_channels(L, binning).wavelength
    air = minerals.transmitted(minerals.CARBON_DIOXIDE, wavelength) ** _AIR
    band, sample = np.ogrid[: L.n_bands, : task.geometry.samples]
    foot, scan = (
        air * (1.0 + _NOISE * normal(key(task.seed, f"volcano {what}"), band, sample)) for what in ("foot", "scan")
    )
    lines = np.stack([scan, *(_artefact(foot, scan, wavelength, pair) for pair in _SCALED_BY)])
    lines[0, list(_SPOILT)], lines[1:, 0] = FILL, FILL
    with task.open(image) as file:
        formats.write_lines(file, np.where(L.scene_columns(binning), lines, FILL))
        formats.write_rows(file, image, L, b" ")
    task.label(image, labelling.transmission_label(image, binning))


def _artefact(foot: Floats, scan: Floats, wavelength: Floats, pair: tuple[float, float]) -> Floats:
    """(n_bands, n_samples) What the foot, corrected by the scan, lacks to a straight continuum about 2 µm."""
    ratios = [np.log(_at(spectra, wavelength, pair[0]) / _at(spectra, wavelength, pair[1])) for spectra in (foot, scan)]
    corrected = _LEVEL * foot / scan ** (ratios[0] / ratios[1])
    low, high = (_at(corrected, wavelength, end) for end in _CONTINUUM)
    straight = low + (high - low) * (wavelength - _CONTINUUM[0]) / (_CONTINUUM[1] - _CONTINUUM[0])
    inside = (wavelength >= _CONTINUUM[0]) & (wavelength <= _CONTINUUM[1])
    return np.where(inside, straight - corrected, 0.0)


def _at(spectra: Floats, wavelength: Floats, wanted: float) -> Floats:
    """(1, n_samples) The spectra at each column's band nearest to a wavelength."""
    nearest = np.abs(wavelength - wanted).argmin(axis=0)[None]
    return np.take_along_axis(spectra, nearest, axis=0)
