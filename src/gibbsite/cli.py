"""The command `gibbsite`: one sub-command per step of the pipeline.

A step is imported only when it is called, so that `gibbsite --help` answers at once.
"""

import argparse
import importlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from gibbsite import __version__
from gibbsite.errors import GibbsiteError

STEPS = {
    "simulate": "write a simulated CRISM observation with known truth, in archive formats",
    "ingest": "turn archive files (TRR3, MTR3, ENVI) into a cube store",
    "basis": "learn, from all scenes, the basis that turns spectra into features",
    "features": "turn a cube's spectra into a few whitened fixed-point features",
    "labels": "burn label polygons or a class raster into the scene; choose training pixels",
    "fit": "run one chain of the sampler over all scenes",
    "select": "take the best structure of all chains and polish it into a model",
    "map": "write class, probability, entropy and unknown maps of a scene",
    "spectra": "write mean spectra and spread of every class",
    "products": "write polygons, cloud-optimised map, QGIS style and class table",
    "evaluate": "score the maps against known truth (mean F1 of the paper)",
    "report": "write one self-contained page with maps, spectra and diagnostics",
}

EPILOG = """Each step reads the files of the one before; `snakemake` runs them all in order.
Run `gibbsite STEP --help` for a step's own flags. Numbers are never flags: they come from the settings
(--settings FILE, by default every key of config/config.yaml at its default)."""

INTERRUPTED = "interrupted; nothing half-written was left"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 an error the user can mend, 2 wrong usage, 3 a fault of gibbsite, 130 interrupted."""
    # Before numpy is imported: threaded linear algebra rounds differently on different machines, and steps are parallel
    # over tiles instead.
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parsed = _parser(_chosen(arguments)).parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.captureWarnings(True)
    logging.getLogger("pyogrio").setLevel(logging.WARNING)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        _run(parsed)
    except GibbsiteError as error:
        return _fail(f"{error}", 1, parsed.debug)
    except KeyboardInterrupt:
        return _fail(INTERRUPTED, 130, parsed.debug)
    except Exception as error:
        if _is_interrupt(error):
            return _fail(INTERRUPTED, 130, parsed.debug)
        message = f"unexpected {type(error).__name__}: {error}; run again with --debug and report what it prints"
        return _fail(message, 3, parsed.debug)
    return 0


def _run(parsed: argparse.Namespace) -> None:
    from gibbsite import settings

    importlib.import_module(f"gibbsite.steps.{parsed.step}").run(parsed, settings.load(parsed.settings))


def _chosen(arguments: Sequence[str]) -> str | None:
    """The step named on the command line, if any."""
    return next((word for word in arguments if word in STEPS), None)


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gibbsite",
        description="From hyperspectral scenes and a few labelled pixels to maps of known and unknown classes.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gibbsite {__version__}")
    steps = parser.add_subparsers(dest="step", metavar="STEP", required=True)
    for name, summary in STEPS.items():
        step = steps.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name == chosen:
            importlib.import_module(f"gibbsite.steps.{name}").add_arguments(step)
        step.add_argument(
            "--settings",
            metavar="FILE|JSON",
            action="append",
            default=[],
            help="settings file (YAML) such as config/config.yaml, or inline JSON of that shape; may be repeated",
        )
        step.add_argument("--debug", action="store_true", help="show the full traceback of an error")
    return parser


def _fail(message: str, code: int, debug: bool) -> int:
    if debug:
        logging.exception("traceback:")
    print(f"gibbsite: error: {' '.join(message.split())}", file=sys.stderr)
    return code


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether an interrupt is behind this error: one that comes while a kernel runs is a SystemError's cause."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def _terminate(_number: int, _frame: FrameType | None) -> None:
    # Batch systems end a job with SIGTERM: unwind like Ctrl-C, so that temporary files and workers go.
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
