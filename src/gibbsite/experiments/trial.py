"""One trial: a method on a table with one seed, over all its cases."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from gibbsite.classifier import NonExhaustiveClassifier
from gibbsite.experiments import catalogue, data, protocol
from gibbsite.experiments.ablations import VARIANTS, Variant
from gibbsite.experiments.peers import PEERS, SUPERVISED
from gibbsite.experiments.plan import MODELS, Trial
from gibbsite.experiments.protocol import Case, Score, Task
from gibbsite.experiments.table import Floats, Integers, Table
from gibbsite.settings import Experiments

NEARLY = 0.99


@dataclass(frozen=True)
class Answer:
    """What a method says of a task."""

    found: Integers
    """(n_rows) classes"""
    n_components: int | None = None
    sweeps_to_99: float | None = None


@dataclass(frozen=True)
class Results:
    """What a trial found, and how long it took, apart: times differ from run to run."""

    scores: pd.DataFrame
    """One line per case and class."""
    timings: pd.DataFrame
    """One line per case: processor seconds."""


def run(trial: Trial, settings: Experiments) -> Results:
    """The results of a trial."""
    variant = VARIANTS[trial.method] if trial.experiment == "ablations" else VARIANTS["default"]
    table = data.load(trial.table, Path(settings.data), variant.n_features, settings.cells)
    lines, timings = [], []
    for case in _cases(trial, table):
        task = protocol.pose(table, case, trial.repeat, variant.label_share or protocol.LABELLED_SHARE)
        started = time.process_time()
        answer = _solve(trial, task, variant, settings)
        seconds = time.process_time() - started
        facts = _facts(trial, case, table)
        lines += [facts | line for line in _lines(task, answer)]
        timings.append(facts | {"seconds": round(seconds, 2)})
    return Results(pd.DataFrame(lines), pd.DataFrame(timings))


def _cases(trial: Trial, table: Table) -> list[Case]:
    numbers = catalogue.observed_numbers(trial.table)
    if trial.experiment == "cytometry":
        return protocol.first_sample(table)
    if trial.experiment == "discovery":
        return protocol.each_hidden(table)
    if trial.experiment == "ablations":
        return protocol.most_abundant(table, [numbers[len(numbers) // 2]])
    if trial.method in SUPERVISED:
        # Who learns from labels alone has nothing to say without, or with one class only.
        numbers = tuple(n for n in numbers if n >= 2)
    return protocol.most_abundant(table, numbers)


def _solve(trial: Trial, task: Task, variant: Variant, settings: Experiments) -> Answer:
    if trial.method in PEERS:
        return Answer(PEERS[trial.method](task, trial.repeat))
    model = trial.method if trial.method in MODELS else "ai2gmm"
    estimator = {"chains": settings.chains, "sweeps": settings.sweeps} | variant.estimator
    classifier = NonExhaustiveClassifier(model, settings=variant.fit, random_state=trial.repeat, **estimator)
    classifier.fit(task.table.x, task.label)
    reached = float(np.median([sweeps_to_reach(trace) for trace in classifier.trace_]))
    return Answer(classifier.labels_, int(classifier.n_components_.sum()), reached)


def sweeps_to_reach(trace: Floats, share: float = NEARLY) -> int:
    """Sweeps after which the joint has made this share of its rise from the first sweep to the last ten."""
    end = trace[-10:].mean()
    return int(np.argmax(trace >= trace[0] + share * (end - trace[0]))) + 1


def _facts(trial: Trial, case: Case, table: Table) -> dict[str, object]:
    hidden = "" if case.hidden is None else table.names[case.hidden]
    told = {"experiment": trial.experiment, "table": trial.table, "method": trial.method, "repeat": trial.repeat}
    return told | {"observed": len(case.observed), "hidden": hidden}


def _lines(task: Task, answer: Answer) -> Iterator[dict[str, object]]:
    """One line per class that has scored rows."""
    score: Score = protocol.score(task, answer.found)
    whole = {
        "n_classes": score.n_classes,
        "n_components": answer.n_components,
        "n_false": score.n_false,
        "false_share": round(score.false_share, 4),
        "sweeps_to_99": answer.sweeps_to_99,
    }
    for k in np.flatnonzero(score.n_rows):
        own = {"class": task.table.names[k], "is_observed": int(k in task.observed), "n_rows": int(score.n_rows[k])}
        yield own | {"f1": round(float(score.f1[k]), 4)} | whole
