"""Turn a cube's spectra into a few whitened fixed-point features."""

import argparse
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite import feature_store, features, kernels
from gibbsite.before_after import Glimpse, QuickLook
from gibbsite.cleaned import Block, CleanedScene, check_bands, open_cleaned
from gibbsite.feature_store import FeatureBlock, Written
from gibbsite.features import FIXED_CLIP, Basis, Floats
from gibbsite.settings import Settings
from gibbsite.threads import one_below

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `gibbsite features`."""
    parser.add_argument("cube", type=Path, metavar="CUBE.zarr", help="cube store made by `ingest`")
    parser.add_argument("--basis", type=Path, required=True, help="basis store made by `basis` from all scenes")
    parser.add_argument("--out", type=Path, required=True, help="features store to write")
    parser.add_argument(
        "--quick-look", type=Path, metavar="FILE.png", help="picture of the scene before and after cleaning"
    )


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Write the features of one cube."""
    basis = feature_store.read_basis(args.basis)
    feature_store.check_cleaning(args.basis, settings.clean)
    scene = open_cleaned(args.cube, settings)
    check_bands(scene, basis.wavelength, args.basis)
    look = QuickLook(scene) if args.quick_look is not None else None
    written = write(args.out, scene, basis, look)
    if look is not None:
        look.write(args.quick_look)
    log.info(
        "features: %s has %d usable pixels of %d, %.4f %% of the values were cut at ±%g, %d values were spikes",
        scene.source.name, written.n_pixels, scene.source.valid.size, 100 * written.clipped_share, FIXED_CLIP,
        written.n_despiked,
    )  # fmt: skip


class _Strip(NamedTuple):
    """What is made of a strip (line, …, sample)."""

    feature: NDArray[np.float32]
    error: Floats
    n_despiked: NDArray[np.int32]
    glimpse: Glimpse | None


def write(out: Path, scene: CleanedScene, basis: Basis, look: QuickLook | None = None) -> Written:
    """What went into the features store that is then at `out`; `look` sees every block pass."""

    with one_below():
        project_strip = features.strip_projection(basis)

    def of_strip(strip: Block) -> _Strip:
        feature, error = project_strip(strip.lines)
        return _Strip(feature, error, strip.n_despiked, look.of_strip(strip) if look is not None else None)

    def of_block(first: int, strips: list[_Strip]) -> tuple[FeatureBlock, list[Glimpse]]:
        error = scene.across([strip.error for strip in strips])
        usable = np.isfinite(error)
        value = kernels.take_spectra(scene.across([strip.feature for strip in strips]), usable)
        block = FeatureBlock(
            pixel=scene.pixel(first, usable),
            feature=features.quantise(value),
            error=error[usable].astype(np.float32),
            n_despiked=scene.across([strip.n_despiked for strip in strips])[usable].astype(np.uint16),
            n_clipped=int((np.abs(value) > FIXED_CLIP).sum()),
        )
        return block, [strip.glimpse for strip in strips if strip.glimpse is not None]

    def blocks() -> Iterator[FeatureBlock]:
        n_usable = 0
        for block, glimpses in scene.map_blocks(of_strip, of_block):
            n_usable += len(block.pixel)
            if look is not None:
                look.add(glimpses)
            yield block
        scene.check_usable(n_usable)

    return feature_store.write_features(out, blocks(), basis, scene.source.name, scene.source.grid)
