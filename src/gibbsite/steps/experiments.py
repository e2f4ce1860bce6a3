"""Write tables, figures and page of the paper's experiments from their trials."""

import argparse
import logging
from pathlib import Path

import pandas as pd

from gibbsite import store
from gibbsite.errors import InputError
from gibbsite.experiments import catalogue, checksums, crism, page, plan, sections, summary
from gibbsite.settings import Settings

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this step's flags."""
    parser.add_argument(
        "--scores", type=Path, nargs="*", default=[], metavar="CSV",
        help="scores of all trials of an experiment; the file has the experiment's name",
    )  # fmt: skip
    parser.add_argument(
        "--timings", type=Path, nargs="*", default=[], metavar="CSV", help="processor seconds of the same trials"
    )
    parser.add_argument(
        "--crism", type=Path, nargs="*", default=[], metavar="DIR",
        help="folders of the models of the experiment on CRISM, each called as its model",
    )  # fmt: skip
    parser.add_argument(
        "--out-dir", type=Path, required=True, metavar="DIR",
        help="folder for experiments.html, tables, figures, timings.csv and SHA256SUMS",
    )  # fmt: skip


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Write everything; times apart from what a rerun gives again."""
    scores = {path.stem: _read(path) for path in args.scores}
    mapped = {folder.name: crism.read(folder) for folder in args.crism}
    out = args.out_dir
    for part in ("tables", "figures"):
        # The workflow expects both, also when no experiment has a figure.
        (out / part).mkdir(parents=True, exist_ok=True)
    told = [sections.SECTIONS[name](scores, out) for name in sections.SECTIONS if name in scores]
    told += [sections.of_crism(mapped, out)] if mapped else []
    missing = [catalogue.title(name) for name in plan.missing_tables(settings.experiments)]
    store.write_text(out / checksums.PAGE, page.render(told, missing, out))
    seconds = summary.timings({path.stem: _read(path) for path in args.timings})
    store.write_text(out / "timings.csv", seconds.to_csv(index=False, lineterminator="\n", float_format="%.2f"))
    store.write_text(out / checksums.NAME, checksums.sums(out))
    log.info("wrote %s", out / checksums.PAGE)
    if missing:
        log.info("left out, because their files are not in %s: %s", settings.experiments.data, ", ".join(missing))


def _read(path: Path) -> pd.DataFrame:
    if path.stem not in plan.EXPERIMENTS:
        raise InputError(f"{path}: no experiment is called {path.stem!r}; there are {', '.join(plan.EXPERIMENTS)}")
    try:
        # Names of classes may be numbers, or look like gaps.
        return pd.read_csv(path, dtype={"class": str, "hidden": str, "method": str}, keep_default_na=False,
                           na_values={"n_components": "", "sweeps_to_99": ""})  # fmt: skip
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as CSV ({' '.join(str(error).split())}); run the trials") from None
