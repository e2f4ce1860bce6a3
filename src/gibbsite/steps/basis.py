"""Learn, from all scenes, the basis that turns spectra into features."""

import argparse
import itertools
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gibbsite import feature_store, features, fences, kernels
from gibbsite.cleaned import Block, CleanedScene, check_bands, open_cleaned
from gibbsite.features import Basis, Learnt
from gibbsite.settings import Features, Settings
from gibbsite.threads import one_below

SAMPLE = 20_000
"""Spectra, spread over all scenes, that the fences are taken from."""
MOST = 2**15
"""About so many spectra at most are learnt from: in larger scenes, those of every second, third, … group of lines."""

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `gibbsite basis`."""
    parser.add_argument("cubes", nargs="+", type=Path, metavar="CUBE.zarr", help="cube stores made by `ingest`")
    parser.add_argument("--out", type=Path, required=True, help="basis store to write")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Write the basis of all cubes."""
    basis = learn([open_cleaned(path, settings) for path in args.cubes], settings.features)
    feature_store.write_basis(args.out, basis, settings.clean)
    log.info(
        "basis: %d features of %d bands hold %.2f %% of the variance of %d pixels",
        len(basis.axes), len(basis.mean), 100 * basis.variance.sum(), basis.n_pixels,
    )  # fmt: skip


def learn(scenes: Sequence[CleanedScene], chosen: Features) -> Basis:
    """The basis of the spectra of all scenes."""
    for scene in scenes[1:]:
        check_bands(scene, scenes[0].wavelength, scenes[0].source.path)
    n_valid = sum(int(scene.source.valid.sum()) for scene in scenes)
    every = -(-n_valid // MOST)
    samples = [_sample(scene, every) for scene in scenes]
    pixels = np.concatenate([pixel for pixel, _ in samples])
    share = min(1.0, SAMPLE / max(1, len(pixels)))
    parts = [part for _, parts in samples for part in parts]
    within, cell = fences.fence_in(parts, np.flatnonzero(_is_chosen(pixels, share)))
    is_decided = chosen.method == "pca" and chosen.n_features != "auto"
    most_pairs = features.FEW_PAIRS if is_decided else features.MOST_PAIRS
    noise, first = features.no_sums(len(cell)), 0
    for scene, (pixel, _) in zip(scenes, samples, strict=True):
        mine = cell[:, first : first + len(pixel)]
        noise += features.noise_sums(mine, pixel, scene.source.valid.shape[1], most_pairs)
        first += len(pixel)
    learnt = Learnt(features.band_sums(cell), noise, within, scenes[0].wavelength)
    with one_below():
        return features.fit_basis(learnt, chosen.n_features, chosen.method)


def _sample(scene: CleanedScene, every: int) -> tuple[NDArray[np.int64], list[NDArray[np.float32]]]:
    """Numbers (n_pixels,) of the usable pixels of each `every`-th group of lines, and parts of their spectra.

    The parts (n_bands, …) come strip by strip, in each line by line.
    """
    width = scene.source.valid.shape[1]

    def of_strip(strip: Block) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        usable = strip.usable()
        line, sample = np.nonzero(usable)
        return (strip.first + line) * width + strip.start + sample, kernels.take_bands(strip.lines, usable)

    blocks = scene.map_blocks(of_strip, lambda _, strips: strips, every)
    pixel, parts = zip(*itertools.chain.from_iterable(blocks), strict=True)
    scene.check_usable(sum(map(len, pixel)))
    return np.concatenate(pixel), list(parts)


def _is_chosen(pixel: NDArray[np.int64], share: float) -> NDArray[np.bool_]:
    """A claim per pixel, true for about this share of any stretch of pixels.

    Multiples of the golden ratio spread evenly; a plain stride could fall into step with the columns.
    """
    return (pixel.astype(np.uint64) * np.uint64(2654435769)) % np.uint64(2**32) < np.uint64(share * 2**32)
