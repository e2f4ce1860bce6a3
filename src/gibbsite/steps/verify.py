"""Compare results of the experiments with published ones, by checksums."""

import argparse
import logging
from pathlib import Path

from gibbsite.errors import OutputError
from gibbsite.experiments import checksums
from gibbsite.settings import Settings

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this step's flags."""
    parser.add_argument("--published", type=Path, required=True, metavar="SHA256SUMS", help="the published checksums")
    parser.add_argument(
        "--out-dir",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder of the results to compare; nothing is written",
    )


def run(args: argparse.Namespace, settings: Settings) -> None:  # noqa: ARG001 - every step has this shape
    """Tell what differs; an error when something does."""
    n_files = len(checksums.read(args.published))
    found = checksums.differences(args.out_dir, args.published)
    for one in found:
        log.info("%s %s", one.name, one.found)
    if found:
        raise OutputError(f"{args.out_dir}: {len(found)} of {n_files} published files differ from {args.published}")
    log.info("all %d files are the published ones, byte by byte", n_files)
