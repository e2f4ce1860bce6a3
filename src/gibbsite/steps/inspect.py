"""Tell what a file is: kind, size, wavelengths, place, share of valid pixels, what looks wrong; draw a quick look."""

import argparse
from pathlib import Path

from gibbsite import inspection
from gibbsite.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `gibbsite inspect`."""
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="any file of a CRISM product (TRR3, DDR, TER3, MTR3, MRDR, WA, ADR), an ENVI image or a GeoTIFF cube",
    )
    parser.add_argument("--out", type=Path, metavar="PNG", help="draw a quick look and write it here")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Print what the file is; with --out also draw it."""
    found = inspection.inspect(args.file, settings.ingest)
    if args.out is not None:
        from gibbsite import quicklook

        quicklook.write(args.out, found)
    # Last, so that a picture that cannot be written is told in one line and nothing else.
    print(inspection.describe(found))
