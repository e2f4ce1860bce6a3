"""The corrections that the settings ask for, made ready for one scene, or refused with what is missing."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite import volcano
from gibbsite.clean import bland
from gibbsite.clean.air import PAIRS, Air, fit_air
from gibbsite.clean.smile import ColumnWeights, resampling
from gibbsite.clean.smooth import Weights, smoothing
from gibbsite.errors import InputError
from gibbsite.settings import Clean, Settings
from gibbsite.sources import Source

_MARGIN = 2
"""Bands beyond either end that are read too where columns are resampled: a column's own lie up to 1.5 bands off."""


class Spikes(NamedTuple):
    """How spikes are found."""

    windows: NDArray[np.int64]
    """Bands of the running medians, in turn."""
    sigma: np.float32
    """Standard deviations."""
    in_columns: bool
    """Also against the lines above and below."""


@dataclass(frozen=True, eq=False)
class Corrections:
    """What is done to the spectra of a scene, in this order; None: not done."""

    band: NDArray[np.intp]
    """(n_read) Bands that are read."""
    kept: NDArray[np.intp]
    """(n_bands) Those of them that are given out."""
    wavelength: NDArray[np.float64]
    """(n_bands) µm of these."""
    divides_by_incidence: bool = False
    """Whether spectra are divided by cos(incidence)."""
    air: Air | None = None
    """The air to divide by."""
    spikes: Spikes | None = None
    """How spikes are found and replaced."""
    gain: NDArray[np.float32] | None = None
    """(n_read, n_columns) By which detector columns are divided."""
    ratio: tuple[int, int] | None = None
    """Lines either way that are searched for bland pixels, and how many of these are averaged."""
    smile: ColumnWeights | None = None
    """Read bands onto the scene's wavelengths, by detector column."""
    smoothing: Weights | None = None
    """Read bands to smooth bands that are given out."""

    @property
    def names(self) -> list[str]:
        """What is done, in a word or two each."""
        done = {
            "cos i": self.divides_by_incidence,
            "air": self.air is not None,
            "spikes": self.spikes is not None,
            "stripes": self.gain is not None,
            "ratio to bland pixels": self.ratio is not None,
            "smile": self.smile is not None,
            "smoothing": self.smoothing is not None,
        }
        return [name for name, is_done in done.items() if is_done]


def plan(source: Source, settings: Settings) -> Corrections:
    """The corrections of this scene, all but the gains of its detector columns."""
    chosen = settings.clean
    by_column = _by_column(source, chosen)
    band, kept = _bands(source, settings, 0 if by_column is None else _MARGIN)
    wavelength = source.wavelength[band]
    windows = np.array(chosen.despike_windows if chosen.despike else [], np.int64)
    finds_spikes = windows.size > 0 or chosen.despike_columns
    if chosen.ratio:
        bland.check(source.column, source.valid, source.path)
    return Corrections(
        band=band,
        kept=kept,
        wavelength=wavelength[kept],
        divides_by_incidence=chosen.incidence and source.incidence is not None,
        air=_air(source, band, chosen),
        spikes=Spikes(windows, np.float32(chosen.despike_sigma), chosen.despike_columns) if finds_spikes else None,
        ratio=(chosen.ratio_lines, chosen.ratio_pixels) if chosen.ratio else None,
        # Smoothing needs the neighbours of the bands that are kept, too.
        smile=None
        if by_column is None
        else resampling(by_column[:, band], wavelength[slice(None) if chosen.smooth else kept]),
        smoothing=smoothing(wavelength, kept, chosen.smooth, chosen.smooth_order) if chosen.smooth else None,
    )


def _bands(source: Source, settings: Settings, margin: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The bands to read, and those of them to give out: good, within the wanted range and not left out."""
    shortest, longest = settings.features.wavelengths
    wavelength = source.wavelength
    good = np.flatnonzero(source.good_band)
    inside = np.flatnonzero((wavelength[good] >= shortest) & (wavelength[good] <= longest))
    if not inside.size:
        raise InputError(
            f"{source.path}: no good band within features.wavelengths {shortest}-{longest} µm; the cube's bands lie "
            f"at {wavelength.min():.4f}-{wavelength.max():.4f} µm"
        )
    first = max(0, int(inside[0]) - margin)
    band = good[first : int(inside[-1]) + 1 + margin]
    kept = (wavelength[band] >= shortest) & (wavelength[band] <= longest)
    for low, high in settings.features.leave_out:
        kept &= (wavelength[band] < low) | (wavelength[band] > high)
    if not kept.any():
        raise InputError(f"{source.path}: features.leave_out leaves no band of {shortest}-{longest} µm; shorten it")
    return band, np.flatnonzero(kept)


def _by_column(source: Source, chosen: Clean) -> NDArray[np.float64] | None:
    """Wavelengths (column, band) to resample from; None when that is not wanted."""
    # On a map the archive has resampled already.
    is_wanted = source.grid.transform is None and source.column_wavelength is not None
    if not (is_wanted if chosen.smile == "auto" else chosen.smile):
        return None
    if source.column_wavelength is None:
        raise InputError(
            f"{source.path}: clean.smile needs the wavelengths of every detector column, and the cube has none; give "
            "the WA record in the column wavelengths of the table of scenes and ingest anew, or set clean.smile to auto"
        )
    return source.column_wavelength


def _air(source: Source, band: NDArray[np.intp], chosen: Clean) -> Air | None:
    """The air that the volcano scan saw, on the scene's columns and bands."""
    if chosen.atmosphere is None:
        return None
    if not (source.valid & (source.column >= 0)).any():
        raise InputError(
            f"{source.path}: clean.atmosphere needs the detector column of each pixel, and none is known; make it null"
        )
    assert chosen.volcano_scan is not None, "the settings were checked"
    n_columns = source.grid.width if source.grid.transform is None else int(source.column.max()) + 1
    wavelength = source.wavelength[band]
    scan = volcano.fit_to_cube(volcano.read_volcano_scan(Path(chosen.volcano_scan)), wavelength, n_columns)
    by_column = source.column_wavelength
    artefact = scan.artefact[list(PAIRS).index(chosen.atmosphere)] if len(scan.artefact) else None
    return fit_air(
        scan.transmission, wavelength if by_column is None else by_column[:, band], chosen.atmosphere, artefact
    )
