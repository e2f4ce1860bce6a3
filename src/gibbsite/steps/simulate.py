"""Make a simulated CRISM observation, with labels and truth, in the file formats of the archive."""

import argparse
import logging
from pathlib import Path

from gibbsite.settings import Settings
from gibbsite.simulate.observation import files, write_observation

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this step."""
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder for the simulated files; made if missing, other files in it are left alone",
    )


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Write the observation that the settings `seed` and `simulate` describe."""
    scene = settings.simulate
    log.info("simulating %d lines of %d samples, seed %d", scene.lines, 640 // scene.binning, settings.seed)
    write_observation(scene, settings.seed, args.out)
    log.info("%s: wrote %d files", args.out, len(files(scene)))
