"""Take the best structure of all chains and polish it into a model."""

import argparse
import logging
from pathlib import Path
from typing import Any

import numpy as np

from gibbsite import cluster, plan, sampling
from gibbsite.chain import read_chain, read_pins
from gibbsite.components import Components
from gibbsite.errors import InputError
from gibbsite.model import Model, write_model
from gibbsite.palette import class_colours
from gibbsite.pixels import Pixels, open_pixels, pinned_reader
from gibbsite.settings import Fit, Settings
from gibbsite.state import State

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The step's flags."""
    parser.add_argument("--chains", type=Path, nargs="+", required=True, help="chain stores to choose from")
    parser.add_argument("--features", type=Path, nargs="+", required=True, help="feature stores, one per scene")
    parser.add_argument("--labels", type=Path, nargs="+", required=True, help="label stores of the same scenes")
    parser.add_argument("--out", type=Path, required=True, help="model store to write")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Choose, polish, name the classes, write the model."""
    pixels = open_pixels(args.features, args.labels)
    paths = sorted(args.chains)
    chains = [read_chain(path) for path in paths]
    for path, (_, facts) in zip(paths, chains, strict=True):
        _check_match(path, facts, pixels)
    number = max(range(len(chains)), key=lambda i: chains[i][0].log_joint)
    best, facts = chains[number]
    read = pinned_reader(pixels, read_pins(paths[number]))
    log.info("best structure: chain %d, sweep %d, log joint %.1f", facts["chain"], best.best.sweep, best.log_joint)
    fit = Fit.model_validate(facts["settings"]["fit"])
    sizes = (pixels.n_pixels, pixels.n_features, len(pixels.known))
    rules = plan.chain_rules(fit, plan.chain_seed(settings.seed, 0), sizes, pixels.step)
    with cluster.holding_tiles(read, pixels.n_pixels, settings.cluster) as reduce_tiles:
        state, draws = sampling.polish(best.best, rules, settings.select.polish_sweeps, reduce_tiles)
    model = assemble(state, draws, pixels.known, pixels.step, pixels.basis)
    log.info("%d known and %d discovered classes", model.n_known, len(model.classes) - model.n_known)
    traces = {
        "chain": facts["chain"],
        "sweep": best.best.sweep,
        "log_joints": [one.log_joint for one, _ in chains],
    }
    write_model(args.out, model, selected=traces)


def _check_match(path: Path, facts: dict[str, Any], pixels: Pixels) -> None:
    if tuple(facts["known"]) != pixels.known:
        raise InputError(f"{path}: chain of known classes {facts['known']}, but the labels have {list(pixels.known)}")
    if facts["basis"] != pixels.basis:
        raise InputError(f"{path}: chain over features of another basis; run fit anew on these features")


def assemble(state: State, draws: list[Components], known: tuple[str, ...], step: float, basis: str) -> Model:
    """The model with known classes first and discovered ones after them by size."""
    n_classes, n_known = len(state.class_id), len(known)
    n_pixels = np.bincount(state.class_of, weights=state.statistics.n, minlength=n_classes).astype(int)
    discovered = n_known + np.argsort(-n_pixels[n_known:], kind="stable")
    order = np.concatenate([np.arange(n_known), discovered])
    code = np.argsort(order)
    by_class = np.argsort(code[state.class_of], kind="stable")
    n_components = np.bincount(state.class_of, minlength=n_classes)
    names = [*known, *(f"new-{number}" for number in range(1, n_classes - n_known + 1))]
    colours = class_colours(n_known, n_classes - n_known)
    classes = [
        {
            "code": position + 1,
            "name": names[position],
            "is_known": position < n_known,
            "colour": colours[position],
            "n_pixels": int(n_pixels[index]),
            "n_components": int(n_components[index]),
        }
        for position, index in enumerate(order)
    ]
    return Model(
        class_of=code[state.class_of][by_class],
        log_weight=np.stack([draw.log_weight[by_class] for draw in draws]),
        mean=np.stack([draw.mean[by_class] for draw in draws]),
        centre=np.stack([draw.centre[order] for draw in draws]),
        whiten=np.stack([draw.whiten[order] for draw in draws]),
        step=step,
        basis=basis,
        classes=classes,
    )
