"""Take the best structure of all chains and polish it into a model; say how far the chains can be trusted."""

import argparse
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite import chain, cluster, diagnostics, labels, maps, plan, sampling, streams, versions
from gibbsite.chain import read_chain, read_pins
from gibbsite.components import Components, draw_components
from gibbsite.diagnostics import Agreement, Mixing
from gibbsite.errors import InputError
from gibbsite.gibbs import ReadPixels, ReduceTiles
from gibbsite.maps import Certainty
from gibbsite.model import Model, write_model
from gibbsite.palette import class_colours
from gibbsite.pixels import Pixels, open_pixels, pinned_reader
from gibbsite.sampling import Chain
from gibbsite.settings import Fit, Settings
from gibbsite.state import Rules, State
from gibbsite.statistics import Integers, Statistics
from gibbsite.streams import Purpose
from gibbsite.tiles import Meanwhile, Task, nothing

log = logging.getLogger(__name__)

TRACED = {"log_joint": "log joint", "n_classes": "number of classes", "n_components": "number of components"}
"""What is judged, and how a reader calls it."""
SAMPLE_PIXELS = 20_000
"""At most so many pixels are classified by every chain, to see how alike their maps are."""
SAMPLE_RUNS = 200
"""Runs of neighbours they are made of."""
SAMPLE_DRAWS = 5
"""Draws of the components that classify them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The step's flags."""
    parser.add_argument("--chains", type=Path, nargs="+", required=True, help="chain stores to choose from")
    parser.add_argument("--features", type=Path, nargs="+", required=True, help="feature stores, one per scene")
    parser.add_argument("--labels", type=Path, nargs="+", required=True, help="label stores of the same scenes")
    parser.add_argument("--out", type=Path, required=True, help="model store to write")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Choose, polish, name the classes, judge the chains, write the model."""
    pixels = open_pixels(args.features, args.labels)
    paths = sorted(args.chains)
    chains = [read_chain(path) for path in paths]
    for path, (_, facts) in zip(paths, chains, strict=True):
        _check_match(path, facts, pixels)
    number = max(range(len(chains)), key=lambda i: chains[i][0].log_joint)
    best, facts = chains[number]
    log.info("best structure: chain %d, sweep %d, log joint %.1f", facts["chain"], best.best.sweep, best.log_joint)
    fit = Fit.model_validate(facts["settings"]["fit"])
    sizes = (pixels.n_pixels, pixels.n_features, len(pixels.known))
    rules = plan.chain_rules(fit, plan.chain_seed(settings.seed, 0), sizes, pixels.step)
    read = pinned_reader(pixels, read_pins(paths[number]))
    with cluster.holding_tiles(read, pixels.n_pixels, settings.cluster) as reduce_tiles:
        passes = Passes(reduce_tiles)
        state, draws = sampling.polish(best.best, rules, settings.select.polish_sweeps, passes)
    model = assemble(state, draws, pixels.known, pixels.step, pixels.basis, passes.statistics)
    model = coloured(model, labels.given_colours(pixels.labels))
    log.info("%d known and %d discovered classes", model.n_known, len(model.classes) - model.n_known)
    selected = {
        "chain": facts["chain"],
        "sweep": best.best.sweep,
        "log_joints": [one.log_joint for one, _ in chains],
    }
    judged = diagnose({facts["chain"]: (one, _burn_in(facts)) for one, facts in chains}, rules, pixels.read)
    _tell(judged)
    write_model(
        args.out, model, seed=settings.seed, selected=selected, diagnostics=judged, versions=versions.installed()
    )


def _check_match(path: Path, facts: dict[str, Any], pixels: Pixels) -> None:
    if tuple(facts["known"]) != pixels.known:
        raise InputError(f"{path}: chain of known classes {facts['known']}, but the labels have {list(pixels.known)}")
    if facts["basis"] != pixels.basis:
        raise InputError(f"{path}: chain over features of another basis; run fit anew on these features")


class Passes:
    """Passes over all pixels on their way through; keeps what the pixels answered."""

    def __init__(self, reduce_tiles: ReduceTiles) -> None:
        self._reduce_tiles = reduce_tiles
        self.statistics: list[Statistics] = []

    def __call__(self, task: Task, meanwhile: Meanwhile = nothing) -> Any:
        reply = self._reduce_tiles(task, meanwhile)
        self.statistics.append(reply.statistics)
        return reply


# --- the model


def assemble(
    state: State,
    draws: list[Components],
    known: tuple[str, ...],
    step: float,
    basis: str,
    passes: Sequence[Statistics] = (),
) -> Model:
    """The model with known classes first and discovered ones after them by size, averaged over the polish's passes."""
    n_pixels = count_pixels(state.class_of, len(state.class_id), passes or [state.statistics])
    n_known = len(known)
    discovered = n_known + np.argsort(-n_pixels[n_known:].sum(1), kind="stable")
    order = np.concatenate([np.arange(n_known), discovered])
    code = np.argsort(order)
    by_class = np.argsort(code[state.class_of], kind="stable")
    n_components = np.bincount(state.class_of, minlength=len(order))
    return Model(
        class_of=code[state.class_of][by_class],
        log_weight=np.stack([draw.log_weight[by_class] for draw in draws]),
        mean=np.stack([draw.mean[by_class] for draw in draws]),
        centre=np.stack([draw.centre[order] for draw in draws]),
        whiten=np.stack([draw.whiten[order] for draw in draws]),
        step=step,
        basis=basis,
        classes=_class_table(known, n_pixels[order], n_components[order]),
    )


def _class_table(known: tuple[str, ...], n_pixels: Integers, n_components: Integers) -> list[dict[str, Any]]:
    """The facts of each class, in the order of their code."""
    n_known, n_classes = len(known), len(n_pixels)
    names = [*known, *(f"new-{number}" for number in range(1, n_classes - n_known + 1))]
    colours = class_colours(n_known, n_classes - n_known)
    return [
        {
            "code": position + 1,
            "name": names[position],
            "is_known": position < n_known,
            "colour": colours[position],
            "n_pixels": int(n_pixels[position].sum()),
            "n_classified": int(n_pixels[position, 0]),
            "n_new_component": int(n_pixels[position, 1]) if position < n_known else 0,
            "n_components": int(n_components[position]),
        }
        for position in range(n_classes)
    ]


def coloured(model: Model, given: Mapping[str, str]) -> Model:
    """The model, its known classes in the colours that the labels give them."""
    n_known, n_new = model.n_known, len(model.classes) - model.n_known
    colours = class_colours(n_known, n_new, [given.get(facts["name"]) for facts in model.classes[:n_known]])
    classes = [facts | {"colour": colour} for facts, colour in zip(model.classes, colours, strict=True)]
    return replace(model, classes=classes)


def count_pixels(class_of: Integers, n_classes: int, passes: Sequence[Statistics]) -> Integers:
    """(n_classes, 2) pixels in components that labelled pixels pin, and in others: means over passes, in whole numbers.

    The paper's three scenarios: in a known class the former are classified and the latter a new component of it; in a
    discovered class all are the latter.
    """
    total = np.zeros((n_classes, 2), np.int64)
    for statistics in passes:
        n_known = statistics.n_pinning.shape[1]
        # Only labelled pixels of its own class pin a component to it.
        own = np.arange(n_known) == class_of[:, None]
        is_pinned = (statistics.n_pinning * own).any(1)
        np.add.at(total, (class_of, np.where(is_pinned, 0, 1)), statistics.n)
    mean, rest = np.divmod(total.ravel(), len(passes))
    # Rounding must lose no pixel: those left over go where most was cut off.
    mean[np.argsort(-rest, kind="stable")[: rest.sum() // len(passes)]] += 1
    return mean.reshape(total.shape)


# --- how far the chains can be trusted


def diagnose(chains: dict[int, tuple[Chain, int]], rules: Rules, read: ReadPixels) -> dict[str, Any]:
    """Convergence and agreement of chains (with their burn-in) by number, as a mapping that JSON can hold."""
    after = {number: one.trace[burn_in:] for number, (one, burn_in) in chains.items()}
    traced = {
        name: diagnostics.mixing(
            diagnostics.align([[float(getattr(info, name)) for info in trace] for trace in after.values()])
        )
        for name in TRACED
    }
    feature = sample_pixels(rules, read)
    answers = {number: classify(one.best, rules, feature) for number, (one, _) in chains.items()}
    pairs = {
        (one, other): diagnostics.agreement(
            (answers[one].code - 1, answers[other].code - 1),
            (answers[one].unknown > 0.5, answers[other].unknown > 0.5),
        )
        for one, other in combinations(sorted(answers), 2)
    }
    return {
        "n_draws": sum(map(len, after.values())),
        "traces": {name: _rounded(found) for name, found in traced.items()},
        "moves": diagnostics.acceptance(chain.moves_of([info for trace in after.values() for info in trace])),
        "n_sampled_pixels": len(feature),
        "pairs": [{"chains": list(numbers)} | _rounded(found) for numbers, found in pairs.items()],
        "concerns": diagnostics.concerns({TRACED[name]: found for name, found in traced.items()}, pairs),
    }


def sample_pixels(rules: Rules, read: ReadPixels) -> NDArray[np.int16]:
    """Features of all pixels or, of many, of runs of neighbours, each at a random place of its own stretch."""
    if rules.n_pixels <= SAMPLE_PIXELS:
        return read(0, rules.n_pixels).feature
    length = SAMPLE_PIXELS // SAMPLE_RUNS
    edges = np.linspace(0, rules.n_pixels, SAMPLE_RUNS + 1).astype(np.int64)
    place = _generator(rules).random(SAMPLE_RUNS)
    firsts = edges[:-1] + (place * (np.diff(edges) - length + 1)).astype(np.int64)
    return np.concatenate([read(int(first), int(first) + length).feature for first in firsts])


def classify(state: State, rules: Rules, feature: NDArray[np.int16]) -> Certainty:
    """The classes that a chain's state gives to pixels."""
    generator = _generator(rules)
    draws = [draw_components(state, rules, generator) for _ in range(SAMPLE_DRAWS)]
    return maps.certainty(maps.class_probabilities(feature, draws, rules.step), rules.n_known)


def _generator(rules: Rules) -> np.random.Generator:
    # The polish counts its sweeps from 1.
    return streams.generator(rules.seed, 0, Purpose.POLISH)


def _burn_in(facts: dict[str, Any]) -> int:
    """Sweeps of a chain before its structure may be taken, as `fit` counts them."""
    return plan.n_sweeps(Fit.model_validate(facts["settings"]["fit"]))[0]


def _rounded(found: Mixing | Agreement) -> dict[str, float | None]:
    return {name: None if value is None else round(value, 4) for name, value in asdict(found).items()}


def _tell(judged: dict[str, Any]) -> None:
    """One line on convergence and agreement, and a warning for each concern."""
    parts = []
    for name, spoken in TRACED.items():
        found = judged["traces"][name]
        if found["r_hat"] is not None:
            parts.append(f"{spoken} R-hat {found['r_hat']:.2f}, {found['bulk_size']:.0f} effective draws")
    if judged["pairs"]:
        index = min(pair["rand_index"] for pair in judged["pairs"])
        verdict = min(pair["same_verdict"] for pair in judged["pairs"])
        parts.append(f"least alike chains: adjusted Rand index {index:.2f}, {100 * verdict:.0f} % same verdict")
    log.info("chains: %s", "; ".join(parts) or "too short to judge")
    for concern in judged["concerns"]:
        log.warning("%s", concern)
