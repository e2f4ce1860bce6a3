"""Cleaned spectra of a cube, block by block: the one reading that `basis` and `features` share.

Bands are the cube's good bands within the wanted wavelengths. A spectrum is filled across its gaps, divided
by cos(incidence) and by the gain of its detector column, and given out when all its bands are finite. Memory
does not grow with the scene: blocks are whole chunks of the store, and stripes are measured on a bounded sample
of neighbours in each pair of columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gibbsite import clean, scene
from gibbsite.errors import InputError
from gibbsite.settings import Settings

BLOCK_BYTES = 2**24
"""Blocks are whole chunks of lines, about this large."""
SAME_BAND = 0.001
"""Bands of two scenes are the same when their wavelengths differ by less (µm); bands lie 0.0065 µm apart."""

Spectra = NDArray[np.float32]


class Block(NamedTuple):
    """Usable pixels of some lines, in rising order."""

    pixel: NDArray[np.int64]
    """(n_pixels,) y · width + x."""
    spectra: Spectra
    """(n_pixels, n_bands) cleaned, all finite."""


@dataclass(frozen=True)
class CleanedScene:
    """A cube and how to clean it."""

    path: Path
    """The cube store."""
    cube: xr.Dataset
    """Its lazy arrays."""
    band: NDArray[np.intp]
    """(n_bands,) the bands used."""
    divides_by_incidence: bool
    """Whether spectra are divided by cos(incidence)."""
    gain: NDArray[np.float64] | None = None
    """(n_columns, n_bands) by which detector columns are divided; None: not at all."""

    @property
    def wavelength(self) -> NDArray[np.float64]:
        """(n_bands,) µm."""
        return np.asarray(self.cube["wavelength"].values[self.band], np.float64)

    @property
    def name(self) -> str:
        """The scene's name."""
        return str(self.cube.attrs["scene"])

    def blocks(self) -> Iterator[Block]:
        """The cleaned spectra of all usable pixels, from the first line to the last."""
        n_pixels = 0
        for rows in _line_blocks(self.cube):
            pixel, spectra = _read(self, rows, self.cube["valid"][rows].values)
            usable = np.isfinite(spectra).all(axis=1)
            n_pixels += int(usable.sum())
            yield Block(pixel[usable], spectra[usable])
        if not n_pixels:
            raise InputError(
                f"{self.path}: no usable pixel; expected valid pixels with finite bands: leave the scene "
                "out, or check its files and ingest.valid_range"
            )


def open_cleaned(path: Path, settings: Settings) -> CleanedScene:
    """The cube at `path`, ready to give out spectra cleaned as the settings say."""
    cube = scene.open_cube(path)
    shortest, longest = settings.features.wavelengths
    wavelength = cube["wavelength"].values
    band = np.flatnonzero(cube["good_band"].values & (wavelength >= shortest) & (wavelength <= longest))
    if not band.size:
        raise InputError(
            f"{path}: no good band within features.wavelengths {shortest}-{longest} µm; the cube's bands lie "
            f"at {wavelength.min():.4f}-{wavelength.max():.4f} µm"
        )
    cleaned = CleanedScene(path, cube, band, settings.clean.incidence and "incidence" in cube.variables)
    # Map-projected archive products are filtered already, and their pixels were moved off their columns.
    is_asked = settings.clean.destripe
    if not (scene.grid_of(cube).transform is None if is_asked == "auto" else is_asked):
        return cleaned
    return replace(cleaned, gain=_column_gains(cleaned))


def check_bands(found: CleanedScene, wavelength: NDArray[np.float64], owner: Path) -> None:
    """Refuse a scene whose bands are not those (`wavelength`, µm) of `owner`."""
    mine = found.wavelength
    if len(mine) == len(wavelength) and np.abs(mine - wavelength).max() < SAME_BAND:
        return
    raise InputError(
        f"{found.path}: its {len(mine)} bands at {mine[0]:.4f}-{mine[-1]:.4f} µm are not the "
        f"{len(wavelength)} bands at {wavelength[0]:.4f}-{wavelength[-1]:.4f} µm of {owner}; scenes of one "
        "basis need the same bands: narrow features.wavelengths to bands all of them have, or fit them apart"
    )


def _line_blocks(cube: xr.Dataset) -> Iterator[slice]:
    """Slices of lines, whole chunks of the store each."""
    reflectance = cube["reflectance"]
    height, width, n_bands = reflectance.shape
    chunk_lines = reflectance.encoding["chunks"][0]
    n_chunks = max(1, BLOCK_BYTES // (chunk_lines * width * n_bands * reflectance.dtype.itemsize))
    lines = chunk_lines * n_chunks
    for start in range(0, height, lines):
        yield slice(start, min(start + lines, height))


def _read(cleaned: CleanedScene, rows: slice, wanted: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Spectra]:
    """Numbers and cleaned spectra of the wanted (lines, width) pixels of these lines, gaps included."""
    cube = cleaned.cube
    first, last = cleaned.band[0], cleaned.band[-1] + 1
    spectra = cube["reflectance"][rows, :, first:last].values[wanted][:, cleaned.band - first]
    spectra = clean.fill_gaps(spectra, cleaned.wavelength)
    if cleaned.divides_by_incidence:
        spectra = clean.divide_by_cos_incidence(spectra, cube["incidence"][rows].values[wanted])
    if cleaned.gain is not None:
        column = cube["detector_column"][rows].values[wanted]
        known = column >= 0
        spectra[known] /= cleaned.gain[column[known]]
    return np.flatnonzero(wanted) + np.int64(rows.start) * wanted.shape[1], np.asarray(spectra, np.float32)


def _column_gains(cleaned: CleanedScene) -> NDArray[np.float64] | None:
    """Gains (n_columns, n_bands) of the detector columns; None where no two neighbours are known."""
    column = cleaned.cube["detector_column"].values
    if (column < 0).all():
        return None
    pair = clean.neighbour_columns(column, cleaned.cube["valid"].values)
    first = clean.sample_columns(pair)
    if not first.size:
        return None
    sampled = np.zeros(column.size, bool)
    sampled[first] = sampled[first + 1] = True
    sampled = sampled.reshape(column.shape)
    # Where columns fall from left to right, the right pixel belongs to the lower one.
    turn = np.diff(column, axis=1, append=0).ravel()[first] < 0
    ratio = np.empty((len(first), len(cleaned.band)), np.float32)
    for rows in _line_blocks(cleaned.cube):
        pixel, spectra = _read(cleaned, rows, sampled[rows])
        mine = slice(*np.searchsorted(first, (rows.start * column.shape[1], rows.stop * column.shape[1])))
        place = np.searchsorted(pixel, first[mine])
        ratio[mine] = clean.ratios(spectra[place + ~turn[mine]], spectra[place + turn[mine]])
    return clean.column_gains(clean.column_medians(ratio, pair.ravel()[first], int(column.max()) + 1))
