"""Class spectra of all scenes: mean, spread, quantiles and continuum removed, in I/F and ratioed to bland pixels.

Only valid pixels and bands that are good in every scene count. I/F is that of the cube: no correction of incidence
or stripes. A pixel is ratioed to the mean of the bland pixels in its own detector column.
"""

import argparse
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gibbsite import bland, figures, mapped_scenes, raster, spectra_files, store
from gibbsite.errors import InputError
from gibbsite.rows import blocks_of
from gibbsite.settings import Settings
from gibbsite.spectra import Classes, ClassSpectra, ClassSums, Floats, Sample, finish, positions_of

log = logging.getLogger(__name__)

BLOCK_BYTES = 16 * 2**20
"""Of reflectance per block, when the cube does not say how it is chunked."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A cube, its class map, and the bands that count."""

    cube: xr.Dataset
    band: NDArray[np.intp]
    """(n_bands) of the cube."""
    wavelength: Floats
    """(n_bands) µm."""
    position: NDArray[np.uint16]
    """(y, x) of the class, from 1, 0 for none; invalid pixels have none."""


class Line(NamedTuple):
    """The valid pixels of a line."""

    y: int
    x: NDArray[np.intp]
    spectrum: NDArray[np.float32]
    """(n_pixels, n_bands)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this step's flags."""
    mapped_scenes.add_arguments(parser)
    parser.add_argument("--model", type=Path, required=True, help="model of the select step (its class names)")
    parser.add_argument("--out-dir", type=Path, required=True, help="folder that receives spectra.* and spectra_*.sli")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Write spectra.csv, spectra.nc, the spectral libraries and the figures."""
    classes = store.read(args.model, "model").attrs["classes"]
    opened = [mapped_scenes.open_pair(*pair) for pair in mapped_scenes.pairs(args)]
    wavelength, is_used = common_bands([cube for cube, _ in opened], args.cubes)
    band = np.flatnonzero(is_used)
    scenes = [Scene(cube, band, wavelength, read_positions(cube, class_map, classes)) for cube, class_map in opened]
    spectra = class_spectra(scenes, len(classes), settings)
    with store.writing_together(args.out_dir) as out:
        spectra_files.write_all(out, spectra, classes, settings.spectra.quantiles)
        figures.write_spectra(out / "spectra", spectra, classes, settings.spectra.quantiles)
    log.info("wrote the spectra of %d classes to %s", len(classes), args.out_dir)


def class_spectra(scenes: list[Scene], n_classes: int, settings: Settings) -> ClassSpectra:
    """The spectra of the classes, gathered line by line over all scenes."""
    limits, shares = settings.spectra.wavelengths, settings.spectra.quantiles
    wavelength = scenes[0].wavelength
    size = sum(np.bincount(scene.position.ravel(), minlength=n_classes + 1)[1:] for scene in scenes)
    gathered = [
        (ClassSums.none(n_classes, len(wavelength)), Sample.of(np.asarray(size), len(wavelength))) for _ in range(2)
    ]
    for scene in scenes:
        denominator = bland_spectra(scene, limits)
        column = scene.cube["detector_column"].values
        for line in lines(scene):
            position = scene.position[line.y, line.x]
            ratio = line.spectrum / denominator[column[line.y, line.x]]
            for (sums, sample), values in zip(gathered, (line.spectrum, ratio), strict=True):
                sums.add(values, position)
                sample.add(values, position)
        log.info("%s: gathered %d bands of %d lines", scene.cube.attrs["scene"], len(wavelength), len(column))
    statistics = [
        finish(sums, sample.quantiles(len(wavelength), shares), wavelength, limits) for sums, sample in gathered
    ]
    return ClassSpectra(wavelength, gathered[0][0].n, *statistics)


def bland_spectra(scene: Scene, limits: tuple[float, float]) -> Floats:
    """The bland spectrum (n_columns + 1, n_bands) of each detector column; the last, at -1, of unknown ones."""
    column = scene.cube["detector_column"].values
    score = np.full(column.shape, np.nan)
    for line in lines(scene):
        score[line.y, line.x] = bland.blandness(scene.wavelength, line.spectrum, limits)
    chosen = bland.choose(score, column)
    sums = ClassSums.none(int(column.max(initial=-1)) + 2, len(scene.wavelength))
    n_columns = len(sums.n) - 1
    for line in lines(scene):
        own = chosen[line.y, line.x]
        sums.add(line.spectrum[own], column[line.y, line.x[own]].astype(np.intp) % (n_columns + 1) + 1)
    return bland.denominators(sums.total, sums.n)


def common_bands(cubes: list[xr.Dataset], paths: list[Path]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Wavelengths (of the first scene) of the bands good in every scene, and which bands these are."""
    first = cubes[0]["wavelength"].values.astype(np.float64)
    is_used = np.ones(len(first), dtype=bool)
    tolerance = np.median(np.diff(first)) / 2 if len(first) > 1 else 1e-3
    for cube, path in zip(cubes, paths, strict=True):
        wavelength = cube["wavelength"].values
        if wavelength.shape != first.shape or np.abs(wavelength - first).max(initial=0.0) > tolerance:
            raise InputError(
                f"{path}: found {len(wavelength)} bands whose wavelengths differ from the {len(first)} of "
                f"{paths[0].name} by more than half a band; give scenes of one sensor and product type"
            )
        is_used &= cube["good_band"].values
    if not is_used.any():
        raise InputError(f"{paths[0]}: no band is good in all {len(cubes)} scenes; check their bad bands")
    return first[is_used], is_used


def read_positions(cube: xr.Dataset, class_map: raster.Stored, classes: Classes) -> NDArray[np.uint16]:
    """Class position (y, x) of each valid pixel, 0 for none."""
    position = np.zeros(class_map.shape, np.uint16)
    for rows in blocks_of(class_map.shape[0]):
        found = positions_of(class_map[rows], classes, str(class_map.path))
        position[rows] = np.where(cube["valid"][rows].values, found, 0)
    return position


def lines(scene: Scene) -> Iterator[Line]:
    """The valid pixels of the scene, line by line; read in blocks of whole chunks."""
    reflectance = scene.cube["reflectance"]
    height, width, n_bands = reflectance.shape
    chunks = reflectance.encoding.get("chunks")
    n_lines = chunks[0] if chunks else max(1, BLOCK_BYTES // (4 * width * n_bands))
    valid = scene.cube["valid"].values
    for start in range(0, height, n_lines):
        block = reflectance[start : start + n_lines].values
        for offset, values in enumerate(block):
            x = np.flatnonzero(valid[start + offset])
            if x.size:
                yield Line(start + offset, x, values[x][:, scene.band])
