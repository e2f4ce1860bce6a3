"""Turn a cube's spectra into a few whitened fixed-point features."""

import argparse
import logging
from pathlib import Path

import numpy as np

from gibbsite import feature_store, features
from gibbsite.cleaned import Block, CleanedScene, check_bands, open_cleaned
from gibbsite.feature_store import FeatureBlock, Written
from gibbsite.features import FIXED_CLIP, Basis
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
    written = write(args.out, scene, basis)
    log.info(
        "features: %s has %d usable pixels of %d, %.4f %% of the values were cut at ±%g, %d values were spikes",
        scene.source.name, written.n_pixels, scene.source.valid.size, 100 * written.clipped_share, FIXED_CLIP,
        written.n_despiked,
    )  # fmt: skip


def write(out: Path, scene: CleanedScene, basis: Basis) -> Written:
    """What went into the features store that is then at `out`."""

    def of_block(block: Block) -> FeatureBlock:
        usable = block.usable()
        feature, error = features.project_lines(block.lines, basis)
        value = feature.transpose(0, 2, 1)[usable]
        return FeatureBlock(
            pixel=block.pixel(usable),
            feature=features.quantise(value),
            error=error[usable].astype(np.float32),
            n_despiked=block.n_despiked[usable].astype(np.uint16),
            n_clipped=int((np.abs(value) > FIXED_CLIP).sum()),
        )

    source = scene.source
    n_valid = int(source.valid.sum())
    scene.check_usable(n_valid)
    blocks = scene.map_blocks(of_block)
    written = feature_store.write_features(out, blocks, n_valid, basis, source.name, source.grid)
    return written
