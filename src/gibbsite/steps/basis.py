"""Learn, from all scenes, the basis that turns spectra into features."""

import argparse
import functools
import logging
import operator
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gibbsite import feature_store, features
from gibbsite.cleaned import CleanedScene, Spectra, check_bands, open_cleaned
from gibbsite.settings import Settings

SAMPLE = 20_000
"""Spectra, spread over all scenes, that the fences are taken from."""

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `gibbsite basis`."""
    parser.add_argument("cubes", nargs="+", type=Path, metavar="CUBE.zarr", help="cube stores made by `ingest`")
    parser.add_argument("--out", type=Path, required=True, help="basis store to write")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Write the basis of all cubes."""
    scenes = [open_cleaned(path, settings) for path in args.cubes]
    for scene in scenes[1:]:
        check_bands(scene, scenes[0].wavelength, scenes[0].path)
    n_features = settings.features.n_features
    fences = features.fences(_sample(scenes))
    sums = functools.reduce(
        operator.add,
        (features.band_sums(block.spectra, fences) for scene in scenes for block in scene.blocks()),
        features.no_sums(len(fences.low)),
    )
    basis = features.fit_basis(sums, fences, scenes[0].wavelength, n_features)
    feature_store.write_basis(args.out, basis)
    log.info(
        "basis: %d features of %d bands hold %.2f %% of the variance of %d pixels",
        n_features, len(basis.mean), 100 * basis.variance.sum(), basis.n_pixels,
    )  # fmt: skip


def _sample(scenes: Sequence[CleanedScene]) -> Spectra:
    """About SAMPLE spectra (n_spectra, n_bands) from all over the scenes, the same for any blocks."""
    n_valid = sum(int(scene.cube["valid"].values.sum()) for scene in scenes)
    share = min(1.0, SAMPLE / max(1, n_valid))
    blocks = (block for scene in scenes for block in scene.blocks())
    return np.concatenate([block.spectra[_is_chosen(block.pixel, share)] for block in blocks])


def _is_chosen(pixel: NDArray[np.int64], share: float) -> NDArray[np.bool_]:
    """A claim per pixel, true for about this share of any stretch of pixels.

    Multiples of the golden ratio spread evenly; a plain stride could fall into step with the columns.
    """
    return (pixel.astype(np.uint64) * np.uint64(2654435769)) % np.uint64(2**32) < np.uint64(share * 2**32)
