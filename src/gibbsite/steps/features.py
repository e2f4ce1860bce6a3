"""Turn a cube's spectra into a few whitened fixed-point features."""

import argparse
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gibbsite import feature_store, features
from gibbsite.cleaned import CleanedScene, check_bands, open_cleaned
from gibbsite.feature_store import FeatureBlock
from gibbsite.features import FIXED_CLIP, Basis
from gibbsite.scene import grid_of
from gibbsite.settings import Settings

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `gibbsite features`."""
    parser.add_argument("cube", type=Path, metavar="CUBE.zarr", help="cube store made by `ingest`")
    parser.add_argument("--basis", type=Path, required=True, help="basis store made by `basis` from all scenes")
    parser.add_argument("--out", type=Path, required=True, help="features store to write")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Write the features of one cube."""
    basis = feature_store.read_basis(args.basis)
    scene = open_cleaned(args.cube, settings)
    check_bands(scene, basis.wavelength, args.basis)
    n_valid = int(scene.cube["valid"].values.sum())
    written = feature_store.write_features(
        args.out, _blocks(scene, basis), n_valid, basis, scene.name, grid_of(scene.cube)
    )
    log.info(
        "features: %s has %d usable pixels of %d, %.4f %% of the values were cut at ±%g",
        scene.name, written.n_pixels, scene.cube["valid"].size, 100 * written.clipped_share, FIXED_CLIP,
    )  # fmt: skip


def _blocks(scene: CleanedScene, basis: Basis) -> Iterator[FeatureBlock]:
    for block in scene.blocks():
        value = features.project(block.spectra, basis)
        n_clipped = int((np.abs(value) > FIXED_CLIP).sum())
        yield FeatureBlock(block.pixel, features.quantise(value), n_clipped)
