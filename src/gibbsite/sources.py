"""Where spectra come from before they are cleaned: a cube store, or the files of an observation themselves.

A source gives out strips of lines (line, band, sample), as cleaning works on them. Through the cube store or straight
from the files, they are the same values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels, scene
from gibbsite.errors import InputError
from gibbsite.ingest import detector_columns, judge_bands
from gibbsite.product import Product
from gibbsite.scene import Grid
from gibbsite.settings import Ingest
from gibbsite.threads import in_order

Lines = NDArray[np.float32]
Floats = NDArray[np.float64]
Strip = tuple[Lines, NDArray[np.bool_]]
"""(line, band, LANES) I/F times a factor, NaN without a value and beyond the image; and the lines in which a wanted
pixel may lack a value."""
Strips = Callable[[int], Strip]
"""The strip that begins at a sample."""


@dataclass(frozen=True, eq=False)
class Source:
    """The spectra of a scene and what is known of its pixels."""

    path: Path
    """The store or file, for messages."""
    name: str
    """The scene's name."""
    grid: Grid
    """Where the pixels lie."""
    wavelength: Floats
    """(n_bands) µm, rising."""
    good_band: NDArray[np.bool_]
    """(n_bands) Fit for use."""
    valid: NDArray[np.bool_]
    """(y, x) Fit for use."""
    column: NDArray[np.int16]
    """(y, x) Detector column, -1 unknown."""
    incidence: NDArray[np.float32] | None
    """(y, x) Degrees, NaN unknown."""
    column_wavelength: Floats | None
    """(column, n_bands) µm, NaN unknown."""
    chunk_lines: int
    """Lines that are read together at no extra cost."""
    read: Callable[[slice, NDArray[np.intp], NDArray[np.float32]], Strips]
    """Strips of some lines and bands, each pixel multiplied by a factor (line, sample) that is NaN where it is not
    wanted."""

    def whole_chunks(self, n_lines: int) -> int:
        """So many lines, or a few more, that only whole chunks are read."""
        return -(-n_lines // self.chunk_lines) * self.chunk_lines

    def lines(self, rows: slice, band: NDArray[np.intp]) -> Lines:
        """(line, band, sample) I/F as it is, NaN without a value and in pixels that are not valid."""
        width = self.valid.shape[1]
        strips = self.read(rows, band, np.where(self.valid[rows], np.float32(1), np.float32(np.nan)))
        return np.concatenate([strips(start)[0] for start in range(0, width, kernels.LANES)], axis=2)[:, :, :width]


def of_cube(path: Path) -> Source:
    """The cube store at `path`."""
    cube = scene.open_cube(path)
    reflectance, valid = cube["reflectance"], cube["valid"].values

    def read(rows: slice, band: NDArray[np.intp], factor: Lines) -> Strips:
        # Chunks hold all bands, and are read whole: to cut some out would be one more copy.
        values = reflectance[rows].values
        return lambda start: kernels.take_lines(values, band, factor, start)

    optional = {
        name: cube[name].values if name in cube.variables else None for name in ("incidence", "column_wavelength")
    }
    return Source(
        path=path,
        name=str(cube.attrs["scene"]),
        grid=scene.grid_of(cube),
        wavelength=np.asarray(cube["wavelength"].values, np.float64),
        good_band=cube["good_band"].values,
        valid=valid,
        column=cube["detector_column"].values,
        chunk_lines=int(reflectance.encoding["chunks"][0]),
        read=read,
        **optional,
    )


def of_observation(product: Product, settings: Ingest) -> Source:
    """The files of an observation, read as `ingest` would, without a store between."""
    n_lines = product.shape[0]
    assert product.wavelength is not None, "an observation has wavelengths"
    order = np.argsort(product.wavelength, kind="stable")
    stored = _Stored(product, settings)
    good, valid = stored.survey()
    if not valid.any():
        raise InputError(f"{product.files[0]}: no pixel has enough of its good bands; check ingest.max_bad_bands")

    def read(rows: slice, band: NDArray[np.intp], factor: Lines) -> Strips:
        values, bounds = stored.lines(rows), np.append(stored.limits, stored.fill)
        return lambda start: kernels.take_stored(values, order[band], bounds, factor, start)

    geometry, by_column = product.geometry, product.column_wavelength
    column = product.column
    return Source(
        path=product.files[0],
        name=product.name,
        grid=product.grid,
        wavelength=product.wavelength[order],
        good_band=good[order],
        valid=valid,
        column=np.full(valid.shape, -1, np.int16) if column is None else detector_columns(column),
        incidence=None if geometry is None or geometry.is_light_corrected else geometry.incidence(slice(0, n_lines)),
        column_wavelength=None if by_column is None else by_column[:, order],
        chunk_lines=1,
        read=read,
    )


class _Stored:
    """The values of an observation as they are stored."""

    def __init__(self, product: Product, settings: Ingest) -> None:
        if product.scale != 1.0 or len(product.fill) > 1 or not isinstance(product.pixels, np.ndarray):
            raise InputError(f"{product.files[0]}: is no plain image of one fill value; ingest it instead")
        self.pixels: NDArray[Any] = product.pixels
        self.product, self.settings = product, settings
        self.limits = np.array(settings.valid_range, np.float32)
        self.fill = np.float32((*product.fill, np.nan)[0])

    def lines(self, lines: slice) -> NDArray[np.float32]:
        """(line, band, sample), without a copy where the file is line-interleaved."""
        return np.ascontiguousarray(self.pixels[lines].transpose(0, 2, 1), np.float32)

    def survey(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which bands (in file order) and pixels (line, sample) are fit for use."""
        listed = self.product.listed_good
        # Threads that read far from each other would make the disk, or what reads ahead of them, jump about.
        blocks = [slice(start, start + 8) for start in range(0, self.product.shape[0], 8)]

        def of_block(rows: slice) -> tuple[Any, Any, Any]:
            return kernels.survey_stored(self.lines(rows), self.limits, self.fill, listed)

        measured, usable, lacking = zip(*in_order(of_block, blocks), strict=True)
        good = judge_bands(self.product, sum(measured), sum(usable), self.settings)
        n_missing = np.concatenate(lacking)
        for band in np.flatnonzero(listed & ~good):
            value = np.asarray(self.pixels[:, :, band])
            n_missing -= ~((value >= self.limits[0]) & (value <= self.limits[1]) & (value != self.fill))
        return good, n_missing <= self.settings.max_bad_bands * np.count_nonzero(good)
