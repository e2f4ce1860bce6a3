"""Trials -> the tables of the page. Frames in, frames out; numbers are rounded here, once."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from gibbsite.experiments import catalogue, published
from gibbsite.experiments.ablations import VARIANTS
from gibbsite.experiments.plan import MODELS
from gibbsite.experiments.protocol import FOUND

Frame = pd.DataFrame
CASE = ["table", "method", "repeat", "observed", "hidden"]


def cases(scores: Frame) -> Frame:
    """One line per case: mean F1 over its classes, and what holds for the whole case."""
    whole = ["n_classes", "n_components", "n_false", "false_share", "sweeps_to_99"]
    grouped = scores.assign(hidden=scores["hidden"].fillna("")).groupby(CASE, sort=False)
    return grouped.agg(mean_f1=("f1", "mean"), **{name: (name, "first") for name in whole}).reset_index()


def simulated(scores: Frame) -> Frame:
    """Mean F1 by the number of observed classes, over the simulated tables, beside the authors' program."""
    found = cases(scores)
    lines = []
    for observed in sorted(found["observed"].unique().tolist()):
        program = published.PROGRAM.get(("simulated", observed))
        lines.append({"observed": observed} | _by_model(found[found["observed"] == observed], None, program))
    return _frame(lines)


def benchmarks(scores: Frame) -> Frame:
    """Mean F1 by table and number of observed classes, beside the paper and the authors' program."""
    lines = []
    for (table, observed), mine in cases(scores).groupby(["table", "observed"], sort=False):
        key = (str(table), int(str(observed)))
        facts = {"table": catalogue.title(key[0]), "observed": key[1]}
        lines.append(facts | _by_model(mine, published.PAPER.get(key), published.PROGRAM.get(key)))
    return _frame(lines)


def overall(found: Frame) -> Frame:
    """The mean over all lines of a table of models: ours, the program's, and ours on the same lines."""
    lines = []
    for model in MODELS:
        has_program = found[f"{model}_program"].notna()
        lines.append(
            {
                "model": model,
                "cells": len(found),
                "mean_f1": _round(found[model].mean()),
                "cells_of_program": int(has_program.sum()),
                "mean_f1_there": _round(found.loc[has_program, model].mean()),
                "program": _round(found.loc[has_program, f"{model}_program"].mean()),
            }
        )
    return _frame(lines)


def discovery(scores: Frame) -> Frame:
    """How often a hidden class came out as its own class, by group of tables and method; false discoveries."""
    hidden = scores[scores["class"].astype(str) == scores["hidden"].astype(str)]
    lines = []
    for (group, method), mine in hidden.groupby([_group(hidden["table"]), "method"], sort=False):
        lines.append(
            {
                "tables": group,
                "method": method,
                "hidden": len(mine),
                "found": int((mine["f1"] > FOUND).sum()),
                "mean_f1_of_hidden": _round(mine["f1"].mean()),
                "false_classes_per_case": _round(mine["n_false"].mean(), 2),
                "rows_lost": _round(mine["false_share"].mean()),
            }
        )
    return _frame(lines)


def hidden_classes(scores: Frame) -> Frame:
    """F1 of every hidden class under the three models."""
    hidden = scores[scores["class"].astype(str) == scores["hidden"].astype(str)]
    lines = []
    for (table, name), mine in hidden.groupby(["table", "hidden"], sort=False):
        f1 = {model: _one(mine, model, "f1") for model in MODELS}
        n_rows = int(mine["n_rows"].iloc[0])
        lines.append({"table": catalogue.title(str(table)), "class": name, "rows": n_rows} | f1)
    return _frame(lines)


def ablations(scores: Frame) -> Frame:
    """What one change does to the mean F1 of ai2gmm, paired with the default by table and seed."""
    found = cases(scores)
    pair = ["table", "repeat"]
    default = found[found["method"] == "default"].set_index(pair)["mean_f1"]
    lines = []
    for name in [name for name in VARIANTS if (found["method"] == name).any()]:
        mine = found[found["method"] == name].set_index(pair)
        change = (mine["mean_f1"] - default).dropna()
        error = change.std(ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.nan
        by_table = mine.groupby("table")["mean_f1"].mean()
        facts = {"variant": name, "what": VARIANTS[name].title, "cells": len(mine)}
        told = {"change": _round(change.mean()), "standard_error": _round(error)}
        shape = {"classes": _round(mine["n_classes"].mean(), 1), "sweeps_to_99": mine["sweeps_to_99"].median()}
        lines.append(facts | {catalogue.title(str(t)): _round(v) for t, v in by_table.items()} | told | shape)
    return _frame(lines)


def convergence(scores: Frame) -> Frame:
    """Median over cases and chains of the sweeps after which the joint had made 99 % of its rise."""
    found = cases(scores)
    lines = []
    for group, mine in found.groupby(_group(found["table"]), sort=False):
        lines.append(
            {"tables": group} | {model: mine[mine["method"] == model]["sweeps_to_99"].median() for model in MODELS}
        )
    return _frame(lines)


def cytometry(scores: Frame) -> Frame:
    """F1 of the common class and of each rare one, by search and model, beside the paper's."""
    lines = []
    for (table, method), mine in scores.groupby(["table", "method"], sort=False):
        f1 = {f"f1 {row['class']}": _round(row["f1"]) for _, row in mine.iterrows()}
        paper = published.CYTOMETRY[str(method)]
        n_classes, n_found = int(mine["n_classes"].iloc[0]), int((mine["f1"] > FOUND).sum())
        # Every one, however small: a rare class is smaller than what counts as a false discovery elsewhere.
        lost = _round(mine["false_share"].iloc[0], 5)
        new = {"classes": n_classes, "false_classes": n_classes - n_found, "rows_lost": lost}
        beside = dict(zip(("paper common", "paper rare 1", "paper rare 2"), paper, strict=True))
        lines.append({"search": catalogue.title(str(table)), "model": method} | f1 | new | beside)
    return _frame(lines)


def peers(scores: Mapping[str, Frame]) -> Frame:
    """Every method under the same protocol: mean F1 without, with half and with all classes observed; discovery."""
    others, ours = scores["peers"], scores.get("benchmarks")
    together = [others]
    if ours is not None:
        together.append(ours[ours["table"].isin(others["table"].unique()) & (ours["repeat"] == 1)])
    found = cases(pd.concat(together, ignore_index=True))
    found["shown"] = [_shown(table, n) for table, n in zip(found["table"], found["observed"], strict=True)]
    hidden = discovery(scores["discovery"]) if "discovery" in scores else _frame([])
    lines = []
    for method in [*(m for m in MODELS if (found["method"] == m).any()), *others["method"].unique()]:
        mine = found[found["method"] == method]
        f1 = {f"f1 {shown}": _mean_of(mine, shown, found) for shown in ("none", "half", "all")}
        mine_hidden = hidden[hidden["method"] == method] if len(hidden) else hidden
        told = (
            {"hidden": int(mine_hidden["hidden"].sum()), "found": int(mine_hidden["found"].sum())}
            if len(mine_hidden)
            else {"hidden": None, "found": None}
        )
        lines.append({"method": method} | f1 | told)
    return _frame(lines)


def timings(seconds: Mapping[str, Frame]) -> Frame:
    """Median processor seconds of a fit, by experiment, group of tables and method; the paper's seconds beside them."""
    nothing = pd.DataFrame(columns=["experiment", "table", "method", "seconds"])
    everything = pd.concat(seconds.values(), ignore_index=True) if seconds else nothing
    keys = ["experiment", _group(everything["table"]), "method"]
    found = everything.groupby(keys, sort=False)["seconds"].agg(["median", "max", "count"]).reset_index()
    paper = {
        ("benchmarks", catalogue.title(table), model): 60 * minutes
        for table, taken in published.MINUTES.items()
        for model, minutes in zip(MODELS, taken, strict=True)
    }
    found["paper"] = [paper.get(key) for key in zip(found["experiment"], found["tables"], found["method"], strict=True)]
    return found


def _by_model(mine: Frame, paper: Sequence[float] | None, program: Sequence[float] | None) -> dict[str, object]:
    """Mean and standard deviation of each model, and what others report of it."""
    line: dict[str, object] = {}
    for k, model in enumerate(MODELS):
        f1 = mine[mine["method"] == model]["mean_f1"]
        line |= {model: _round(f1.mean()), f"{model}_sd": _round(f1.std(ddof=1))}
        line |= {f"{model}_paper": paper[k] if paper else None, f"{model}_program": program[k] if program else None}
    return line | {"repeats": int(mine.groupby("method").size().max())}


def _shown(table: str, observed: int) -> str:
    numbers = catalogue.observed_numbers(table)
    return "none" if observed == 0 else "all" if observed == numbers[-1] else "half"


def _mean_of(mine: Frame, shown: str, found: Frame) -> float | None:
    """Mean F1 over all tables, or nothing where the method has not been tried on each of them."""
    here = mine[mine["shown"] == shown]
    wanted = found[found["shown"] == shown]["table"].nunique()
    return _round(here["mean_f1"].mean()) if here["table"].nunique() == wanted else None


def _group(tables: pd.Series) -> pd.Series:
    """Samples of one study, and simulated tables of one law, count together."""
    return tables.map(lambda name: catalogue.title(str(name)).split(" ")[0]).rename("tables")


def _one(mine: Frame, method: str, column: str) -> float | None:
    found = mine[mine["method"] == method][column]
    return _round(found.mean()) if len(found) else None


def _round(value: float, digits: int = 3) -> float | None:
    return round(float(value), digits) if np.isfinite(value) else None


def _frame(lines: Sequence[Mapping[str, object]]) -> Frame:
    return pd.DataFrame(list(lines))
