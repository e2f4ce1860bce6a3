"""Run one trial of the paper's experiments: a method on a table with one seed."""

import argparse
import logging
from pathlib import Path

from gibbsite import store
from gibbsite.experiments import trial
from gibbsite.experiments.plan import Trial
from gibbsite.settings import Settings

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this step's flags."""
    parser.add_argument(
        "name", metavar="EXPERIMENT/TABLE/METHOD/REPEAT", help="the trial, such as benchmarks/salinas/ai2gmm/1"
    )
    parser.add_argument("--timings", type=Path, metavar="CSV", help="processor seconds of each case; left out: none")
    parser.add_argument("--out", type=Path, required=True, metavar="CSV", help="scores of each case and class to write")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Write the trial's scores."""
    results = trial.run(Trial.parse(args.name), settings.experiments)
    if args.timings:
        store.write_text(args.timings, results.timings.to_csv(index=False, lineterminator="\n"))
    store.write_text(args.out, results.scores.to_csv(index=False, lineterminator="\n"))
    for (observed, hidden), lines in results.scores.groupby(["observed", "hidden"], sort=False):
        told = f"{observed} observed, {hidden} hidden" if hidden else f"{observed} observed"
        log.info("%s, %s: mean F1 %.3f", args.name, told, lines["f1"].mean())
