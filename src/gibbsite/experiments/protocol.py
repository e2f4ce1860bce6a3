"""The paper's protocol: show some classes in part, let a method label the rest, score it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gibbsite.evaluate import UNMATCHED, class_scores
from gibbsite.experiments.table import Integers, Table

NO_LABEL = -1
NOTHING = -2
"""What a method may call rows that it puts into no class."""
LABELLED_SHARE = 0.2
FOUND = 0.5
"""F1 above which an unseen class counts as found."""
LEAST_SHARE = 0.01
"""Of the scored rows: smaller new classes are not counted as false discoveries; the rows in them are."""


@dataclass(frozen=True)
class Case:
    """Which classes of a table a method is shown."""

    observed: tuple[int, ...]
    hidden: int | None = None
    """The one class that is not shown, when classes are hidden in turn."""


@dataclass(frozen=True, eq=False)
class Task:
    """What a method gets to see, and what it is scored with."""

    table: Table
    """Rows in the order of the seed."""
    label: Integers
    """(n_rows) class of the labelled rows, -1 of all others"""
    observed: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Score:
    """How well the rows without label were classified."""

    f1: NDArray[np.float64]
    """(n_classes) NaN for classes without scored rows."""
    n_rows: Integers
    """(n_classes) scored"""
    n_classes: int
    """That hold scored rows."""
    n_false: int
    """New classes with at least 1 % of the scored rows that stand for no unseen class found."""
    false_share: float
    """Share of the observed classes' scored rows that ended in new classes, or in none."""


def most_abundant(table: Table, numbers: Sequence[int]) -> list[Case]:
    """A case for each number of observed classes, the most abundant ones."""
    return [Case(tuple(table.by_size[:n].tolist())) for n in numbers]


def each_hidden(table: Table) -> list[Case]:
    """A case for each class: it is hidden, all others are observed."""
    everything = range(len(table.names))
    return [Case(tuple(k for k in everything if k != hidden), hidden) for hidden in everything]


def first_sample(table: Table) -> list[Case]:
    """The one case of a table whose given rows are a sample of their own."""
    return [Case(tuple(np.unique(table.truth[table.is_given]).tolist()))]


def pose(table: Table, case: Case, seed: int, share: float = LABELLED_SHARE) -> Task:
    """The task of a case: rows in the seed's order, every fifth (or so) of each observed class labelled."""
    order = np.random.default_rng(seed).permutation(len(table.truth))
    is_given = None if table.is_given is None else table.is_given[order]
    table = Table(table.x[order], table.truth[order], table.names, is_given)
    label = np.full(len(order), NO_LABEL)
    for k in case.observed:
        rows = np.flatnonzero(table.truth == k)
        label[rows[:: round(1 / share)] if is_given is None else rows[is_given[rows]]] = k
    return Task(table, label, case.observed)


def score(task: Task, found: Integers) -> Score:
    """The paper's F1 of each class over the rows without label; known classes keep their label in what was found."""
    rows = task.label == NO_LABEL
    truth, found = task.table.truth[rows], found[rows]
    observed = np.array(task.observed, np.int64)
    classes = np.union1d(observed, found)
    counts = np.zeros((len(task.table.names), len(classes)), np.int64)
    np.add.at(counts, (truth, np.searchsorted(classes, found)), 1)
    column = np.array([np.searchsorted(classes, k) if k in observed else UNMATCHED for k in range(len(counts))])
    # What was put into no class stands for none.
    is_new = ~np.isin(classes, observed) & (classes != NOTHING)
    scores = class_scores(counts, column, ~is_new)
    unseen = np.flatnonzero(column == UNMATCHED)
    stands_for = {int(scores.matched[k]) for k in unseen if np.nan_to_num(scores.f1[k]) > FOUND}
    size = counts.sum(0)
    large = np.flatnonzero(is_new & (size >= LEAST_SHARE * size.sum()))
    of_observed = counts[observed]
    lost = of_observed[:, ~np.isin(classes, observed)].sum()
    return Score(
        f1=scores.f1,
        n_rows=counts.sum(1),
        n_classes=int((size > 0).sum()),
        n_false=len(set(large.tolist()) - stands_for),
        false_share=float(lost / max(1, of_observed.sum())),
    )
