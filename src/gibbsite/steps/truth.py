"""Take in what a scene's map is scored against, and check it before anything long runs."""

import argparse
import logging
from pathlib import Path

import numpy as np

from gibbsite import labels, scene, store, truth
from gibbsite.errors import InputError
from gibbsite.settings import Settings

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `gibbsite truth`."""
    parser.add_argument("--cube", type=Path, required=True, help="cube store of the scene, made by `ingest`")
    parser.add_argument("--labels", type=Path, required=True, help="labels store of the scene, made by `labels`")
    parser.add_argument(
        "--raster",
        type=Path,
        help="raster of true classes on the scene's pixels: 0 unknown, tags CLASS_<value>=<name>; left out: the labels "
        "held out from the model are the truth",
    )
    parser.add_argument("--out", type=Path, required=True, help="truth store to write")


def run(args: argparse.Namespace, settings: Settings) -> None:  # noqa: ARG001 - every step has this shape
    """Write the truth of one scene."""
    cube, labelled = scene.open_cube(args.cube), store.read(args.labels, "labels")
    if cube.attrs["scene"] != labelled.attrs["scene"] or cube["valid"].shape != labelled["role"].shape:
        raise InputError(
            f"{args.labels}: labels of scene {labelled.attrs['scene']!r} do not belong to the cube {args.cube} of "
            f"scene {cube.attrs['scene']!r}; give both of one scene, made in one run"
        )
    found = truth.from_raster(args.raster, cube, labelled) if args.raster else truth.from_labels(labelled)
    truth.write(args.out, found)
    n_pixels = np.count_nonzero(found.truth != labels.NO_CLASS)
    log.info("truth: %s: %d pixels to score, from the %s", found.scene, n_pixels, found.source)
