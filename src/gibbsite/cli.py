"""The command `gibbsite`: one sub-command per step of the pipeline.

A step is imported only when it is called, so that `gibbsite --help` answers at once.
"""

import argparse
import importlib
import logging
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType

from gibbsite import __version__
from gibbsite.errors import GibbsiteError

STEPS = {
    "simulate": "write a simulated CRISM observation with known truth, in archive formats",
    "inspect": "tell what a file is and what looks wrong with it; draw a quick look",
    "ingest": "turn archive files (TRR3, TER3, MTR3, MRDR, ENVI, GeoTIFF) into a cube store",
    "basis": "learn, from all scenes, the basis that turns spectra into features",
    "features": "turn a cube's spectra into a few whitened fixed-point features",
    "labels": "burn label polygons or a class raster into the scene; choose training pixels",
    "truth": "take in what a scene's map is scored against: a raster of true classes, or held-out labels",
    "fit": "run one chain of the sampler over all scenes",
    "select": "take the best structure of all chains and polish it into a model",
    "map": "write class, probability, entropy, unknown and component maps of a scene",
    "spectra": "write mean, spread and quantiles of every class, in I/F, ratioed and without continuum",
    "interpret": "match classes with spectral libraries, measure their bands, name suspected artefacts",
    "products": "write cloud-optimised maps with styles, polygons, class table and catalogue item of a scene",
    "catalogue": "write a STAC collection and a QGIS project over the products of all scenes",
    "evaluate": "score the maps against truth or held-out labels (mean F1 of the paper)",
    "report": "write one self-contained page with maps, spectra and diagnostics",
    "trial": "run one trial of the paper's experiments: a method on a table with one seed",
    "experiments": "write tables, figures and page of the paper's experiments from their trials",
    "verify": "compare results of the experiments with published ones",
}

EPILOG = """Each step reads the files of the one before; `snakemake` runs them all in order.
Run `gibbsite STEP --help` for a step's own flags. Numbers are never flags: they come from the settings
(--settings FILE, by default every key of config/config.yaml at its default)."""

INTERRUPTED = "interrupted; nothing half-written was left"

GRACE = 3.0
"""Seconds an interrupted step has to unwind before it is ended: a busy kernel, or a cluster that waits for one, may
take as long as a whole pass."""


class _Terminated(KeyboardInterrupt):
    """Batch systems end a job with SIGTERM: it unwinds like Ctrl-C, so that temporary files and workers go."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 an error to mend, 2 wrong usage, 3 a fault of gibbsite, 130 Ctrl-C, 143 SIGTERM.

    Without `arguments` it is the command itself: those of the process are taken, and an interrupt ends the process.
    """
    # Before numpy is imported: threaded linear algebra rounds differently on different machines, and steps are parallel
    # over tiles instead.
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    # GDAL would keep up to a twentieth of the machine's memory, which may be more than a step is allowed.
    os.environ.setdefault("GDAL_CACHEMAX", "64")
    is_command = arguments is None
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parsed = _parser(_chosen(arguments)).parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.captureWarnings(True)
    logging.getLogger("pyogrio").setLevel(logging.WARNING)
    # What GDAL cannot read is an error of ours, told in one line.
    logging.getLogger("rasterio").setLevel(logging.CRITICAL)
    signal.signal(signal.SIGTERM, _terminate)
    if is_command:
        _end_within_grace(parsed)
    try:
        _run(parsed)
    except GibbsiteError as error:
        return _fail(f"{error}", 1, parsed.debug)
    except (Exception, KeyboardInterrupt) as error:
        interrupt = _interrupt_behind(error)
        if interrupt is None:
            message = f"unexpected {type(error).__name__}: {error}; run again with --debug and report what it prints"
            return _fail(message, 3, parsed.debug)
        code = _fail(INTERRUPTED, 128 + _signal_of(interrupt), parsed.debug)
        if is_command:
            # A normal end would wait for threads that run a kernel, and tell of the tasks it cuts off.
            os._exit(code)
        return code
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


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The interrupt that is this error or behind it: one that comes while a kernel runs is a SystemError's cause."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error


def _signal_of(interrupt: KeyboardInterrupt) -> int:
    return signal.SIGTERM if isinstance(interrupt, _Terminated) else signal.SIGINT


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise _Terminated


def _end_within_grace(parsed: argparse.Namespace) -> None:
    """From now on an interrupt ends this process within GRACE seconds, whatever its threads are busy with.

    Python handles signals between two instructions of the main thread, so not while a kernel runs there. But the number
    of a signal is written to the pipe at once.
    """
    alarm, signals = os.pipe()
    os.set_blocking(signals, False)
    signal.set_wakeup_fd(signals, warn_on_full_buffer=False)
    threading.Thread(target=_end_late, args=(alarm, parsed), daemon=True).start()


def _end_late(alarm: int, parsed: argparse.Namespace) -> None:
    (number,) = os.read(alarm, 1)
    time.sleep(GRACE)
    out = parsed.out_dir if "out_dir" in parsed else parsed.out
    for part in [*out.glob(".*.part"), *out.parent.glob(".*.part")] if out is not None else []:
        if part.name.endswith(f".{os.getpid()}.part"):
            shutil.rmtree(part) if part.is_dir() else part.unlink()
    os._exit(_fail(INTERRUPTED, 128 + number, debug=False))


if __name__ == "__main__":
    sys.exit(main())
