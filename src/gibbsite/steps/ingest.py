"""Turn a CRISM, ENVI or GeoTIFF cube into a cube store: reflectance, wavelengths, valid pixels, coordinates.

CUBE is the .lbl, .hdr or .img of a TRR3, TER3 or MTR3 I/F product or MRDR tile, or any ENVI or GeoTIFF cube.
"""

import argparse
import logging
from pathlib import Path

from gibbsite.ingest import NAME_FILL, write_cube
from gibbsite.observation import open_observation
from gibbsite.settings import Settings

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `gibbsite ingest`, added to `parser`."""
    parser.add_argument(
        "cube",
        type=Path,
        metavar="CUBE",
        help="the cube's .lbl, .hdr, .img or .tif (TRR3, TER3 or MTR3 I/F, an MRDR tile, plain ENVI or GeoTIFF)",
    )
    parser.add_argument(
        "--ddr",
        type=Path,
        metavar="FILE",
        help="DDR of a TRR3 or TER3 cube: incidence angles, latitude and longitude",
    )
    parser.add_argument(
        "--wavelengths",
        type=Path,
        metavar="FILE",
        help="WA record of a TRR3 cube (else the one its label names, if beside it; else nominal), or, for a cube that "
        "tells none, a text file of one wavelength per band",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="STORE", help="cube store to write (SCENE.zarr)")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Nothing; the cube store is then at `args.out`."""
    product = open_observation(args.cube, args.ddr, args.wavelengths)
    for remark in product.remarks:
        log.warning("%s", remark)
    summary = write_cube(product, args.out, settings.ingest)
    if summary.n_zero:
        log.warning(
            "%d valid pixels are 0 in every band; if that is fill, %s, and ingest anew", summary.n_zero, NAME_FILL
        )
    log.info(
        "%s: %d lines × %d samples × %d bands, %d bands good, %d pixels valid (%.1f %%), wavelengths: %s",
        product.name,
        summary.n_lines,
        summary.n_samples,
        summary.n_bands,
        summary.n_good_bands,
        summary.n_valid,
        100 * summary.n_valid / (summary.n_lines * summary.n_samples),
        product.wavelength_source,
    )
