"""What the page shows of a cube: a colour composite, and the spectrum of each shown pixel as a few codes."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gibbsite.pixel_spectra import SAMPLED, Coder, Floats, fill, fit_coder
from gibbsite.scene import open_cube

BLOCK_BYTES = 16 * 2**20
STRETCH = (2.0, 98.0)
"""Percentiles of a channel that are shown black and full."""


@dataclass(frozen=True, eq=False)
class Shown:
    """A cube, and which of its pixels and bands the page shows."""

    path: Path
    rows: NDArray[np.intp]
    """Rising lines."""
    cols: NDArray[np.intp]
    """Rising samples."""
    band: NDArray[np.intp]
    """Bands."""


def coder_of(shown: list[Shown], wavelength: Floats) -> Coder:
    """The coder of the shown pixels of all cubes, learnt from an even sample of the valid ones."""
    every = max(1, sum(item.rows.size * item.cols.size for item in shown) // SAMPLED)
    taken, start = [], 0
    for item in shown:
        for _, spectra, valid in _blocks(item):
            inside = np.flatnonzero(valid.ravel())
            taken.append(spectra.reshape(-1, spectra.shape[-1])[inside[(inside + start) % every == 0]])
            start += valid.size
    return fit_coder(fill(np.concatenate(taken), wavelength))


def encode(shown: Shown, coder: Coder, wavelength: Floats) -> NDArray[np.int16]:
    """Codes (n_axes, rows, cols) of the shown pixels; 0, the mean spectrum, where a pixel is not valid."""
    codes = np.zeros((len(coder.axis), shown.rows.size, shown.cols.size), np.int16)
    for place, spectra, valid in _blocks(shown):
        codes[:, place][:, valid] = coder.encode(fill(spectra[valid], wavelength))
    return codes


def composite(path: Path, rows: NDArray[np.intp], cols: NDArray[np.intp], band: list[int]) -> NDArray[np.uint8]:
    """Red, green, blue and opacity (rows, cols, 4) of three bands, stretched; invalid pixels are transparent."""
    cube = open_cube(path)
    valid = cube["valid"].values[np.ix_(rows, cols)]
    picture = np.zeros((*valid.shape, 4), np.uint8)
    for channel, index in enumerate(band):
        values = _one_band(cube, index, rows, cols)
        known = valid & np.isfinite(values)
        if known.any():
            low, high = np.percentile(values[known], STRETCH)
            level = np.clip((np.nan_to_num(values) - low) / max(high - low, 1e-9), 0.0, 1.0)
            picture[..., channel] = np.where(known, np.rint(255 * level), 0)
    picture[..., 3] = np.where(valid, 255, 0)
    return picture


def nearest_bands(wavelength: Floats, usable: NDArray[np.intp], wanted: tuple[float, float, float]) -> list[int]:
    """The usable band nearest to each wanted wavelength (µm)."""
    return [int(usable[np.abs(wavelength[usable] - value).argmin()]) for value in wanted]


def _one_band(cube: xr.Dataset, band: int, rows: NDArray[np.intp], cols: NDArray[np.intp]) -> Floats:
    reflectance = cube["reflectance"]
    values = np.empty((rows.size, cols.size))
    n_lines = _lines_at_once(reflectance)
    for start in range(0, reflectance.shape[0], n_lines):
        mine = np.flatnonzero((rows >= start) & (rows < start + n_lines))
        if mine.size:
            block = reflectance[start : start + n_lines, :, band].values
            values[mine] = block[np.ix_(rows[mine] - start, cols)]
    return values


def _blocks(shown: Shown) -> Iterator[tuple[slice, NDArray[np.float32], NDArray[np.bool_]]]:
    """Which of the shown lines, their spectra (lines, cols, bands) and validity (lines, cols), block by block."""
    cube = open_cube(shown.path)
    reflectance, valid = cube["reflectance"], cube["valid"].values
    n_lines = _lines_at_once(reflectance)
    for start in range(0, reflectance.shape[0], n_lines):
        first, last = np.searchsorted(shown.rows, (start, start + n_lines))
        if first < last:
            rows = shown.rows[first:last]
            block = reflectance[start : start + n_lines].values[np.ix_(rows - start, shown.cols)]
            yield slice(int(first), int(last)), block[..., shown.band], valid[np.ix_(rows, shown.cols)]


def _lines_at_once(reflectance: xr.DataArray) -> int:
    _, width, n_bands = reflectance.shape
    chunks = reflectance.encoding.get("chunks")
    return int(chunks[0]) if chunks else max(1, BLOCK_BYTES // (4 * width * n_bands))
