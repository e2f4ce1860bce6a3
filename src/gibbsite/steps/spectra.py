"""Class-mean spectra of all scenes, as a table and a figure.

Only valid pixels and bands that are good in every scene count. Values are plain I/F: no correction of
incidence or stripes.
"""

import argparse
import logging
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gibbsite import figures, raster, store
from gibbsite.errors import InputError
from gibbsite.scene import open_cube
from gibbsite.settings import Settings
from gibbsite.spectra import ClassSums, finish, positions_of, sum_block, table_text

log = logging.getLogger(__name__)

BLOCK_BYTES = 16 * 2**20
"""Of reflectance per block, when the cube does not say how it is chunked."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this step's flags."""
    parser.add_argument(
        "--cubes", type=Path, nargs="+", required=True, metavar="CUBE.zarr", help="cubes of the ingest step"
    )
    parser.add_argument(
        "--maps",
        type=Path,
        nargs="+",
        required=True,
        metavar="S_class.tif",
        help="class maps of the same scenes, in the same order",
    )
    parser.add_argument("--model", type=Path, required=True, help="model of the select step (its class names)")
    parser.add_argument("--out-dir", type=Path, required=True, help="folder that receives spectra.csv and spectra.png")


def run(args: argparse.Namespace, settings: Settings) -> None:  # noqa: ARG001 - every step has this shape
    """Write spectra.csv and spectra.png."""
    if len(args.cubes) != len(args.maps):
        raise InputError(f"found {len(args.cubes)} cubes and {len(args.maps)} class maps; give one map per cube")
    classes = store.read(args.model, "model").attrs["classes"]
    cubes = [open_cube(path) for path in args.cubes]
    wavelength, is_used = common_bands(cubes, args.cubes)
    sums = None
    for cube, cube_path, map_path in zip(cubes, args.cubes, args.maps, strict=True):
        of_scene = sum_scene(cube, map_path, is_used, classes)
        sums = of_scene if sums is None else sums + of_scene
        log.info("%s: summed %d bands of %d lines", cube_path.stem, is_used.sum(), cube.sizes["y"])
    assert sums is not None
    spectra = finish(sums, wavelength)
    with store.writing_together(args.out_dir) as out:
        store.write_text(out / "spectra.csv", table_text(spectra, classes))
        figures.write_spectra(out / "spectra.png", spectra, classes)
    log.info("wrote the mean spectra of %d classes to %s", len(classes), args.out_dir)


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


def sum_scene(
    cube: xr.Dataset, map_path: Path, is_used: NDArray[np.bool_], classes: list[dict[str, object]]
) -> ClassSums:
    """Sums of one scene's classes over its valid pixels, read block of lines by block of lines."""
    height, width, n_bands = cube["reflectance"].shape
    sums = sum_block(np.zeros((0, int(is_used.sum()))), np.zeros(0, np.intp), len(classes))
    with raster.open_raster(map_path) as class_map:
        if class_map.shape != (height, width):
            raise InputError(
                f"{map_path}: found {class_map.height} × {class_map.width} pixels, the cube has "
                f"{height} × {width}; give cubes and maps in the same order"
            )
        chunks = cube["reflectance"].encoding.get("chunks")
        n_rows = chunks[0] if chunks else max(1, BLOCK_BYTES // (4 * width * n_bands))
        for start in range(0, height, n_rows):
            rows = slice(start, min(start + n_rows, height))
            is_valid = cube["valid"][rows].values
            code = raster.read_rows(class_map, rows.start, rows.stop)[is_valid]
            spectrum = cube["reflectance"][rows].values[is_valid][:, is_used]
            sums = sums + sum_block(spectrum, positions_of(code, classes, str(map_path)), len(classes))
    return sums
