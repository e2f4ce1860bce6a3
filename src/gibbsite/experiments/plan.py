"""Which trials the experiments consist of. Light: the workflow reads it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from gibbsite.errors import InputError
from gibbsite.experiments import catalogue
from gibbsite.experiments.ablations import VARIANTS
from gibbsite.settings.experiments import Experiments, Peer

MODELS = ("igmm", "i2gmm", "ai2gmm")
EXPERIMENTS = ("simulated", "benchmarks", "peers", "discovery", "ablations", "cytometry")
WIDE = ("salinas", "satimage")
"""Tables with many more columns than the principal components that are kept of them."""


@dataclass(frozen=True, order=True)
class Trial:
    """One method on one table with one seed."""

    experiment: str
    table: str
    method: str
    repeat: int

    @property
    def name(self) -> str:
        """Path of its results, without ending."""
        return f"{self.experiment}/{self.table}/{self.method}/{self.repeat}"

    @classmethod
    def parse(cls, name: str) -> "Trial":
        """The trial called so."""
        parts = name.split("/")
        if len(parts) != 4 or parts[0] not in EXPERIMENTS or not parts[3].isdigit():
            raise InputError(
                f"found {name!r}; expected EXPERIMENT/TABLE/METHOD/REPEAT such as benchmarks/salinas/ai2gmm/1, the "
                f"experiment one of {', '.join(EXPERIMENTS)}"
            )
        methods = VARIANTS if parts[0] == "ablations" else (*MODELS, *get_args(Peer))
        if parts[2] not in methods:
            raise InputError(f"{name}: no method is called {parts[2]!r}; {parts[0]} has {', '.join(methods)}")
        return cls(parts[0], parts[1], parts[2], int(parts[3]))


def trials(settings: Experiments) -> list[Trial]:
    """All trials whose tables are at hand."""
    folder = Path(settings.data)
    # A table may be named twice, as gvhd and gvhd-1; its trials are done and counted once.
    return [trial for trial in dict.fromkeys(_wanted(settings)) if catalogue.is_at_hand(trial.table, folder)]


def missing_tables(settings: Experiments) -> list[str]:
    """Tables that the settings ask for and that are not at hand."""
    wanted = dict.fromkeys(trial.table for trial in _wanted(settings))
    return [table for table in wanted if not catalogue.is_at_hand(table, Path(settings.data))]


def _wanted(settings: Experiments) -> Iterator[Trial]:
    repeats = range(1, settings.repeats + 1)
    for number in range(1, settings.simulated + 1):
        # Every simulated table is a repeat of its own.
        yield from (Trial("simulated", f"simulated-{number}", model, number) for model in MODELS)
    for table in catalogue.each(settings.benchmarks):
        yield from (Trial("benchmarks", table, model, n) for model in MODELS for n in repeats)
    for table in catalogue.each(settings.peer_tables):
        yield from (Trial("peers", table, peer, 1) for peer in settings.peers)
    for table in catalogue.each(settings.discovery):
        yield from (Trial("discovery", table, method, 1) for method in (*MODELS, *settings.peers))
    for table in settings.ablations:
        yield from (Trial("ablations", table, variant, n) for variant in variants_of(table) for n in repeats)
    for table in settings.cytometry:
        yield from (Trial("cytometry", table, model, 1) for model in MODELS)


def variants_of(table: str) -> list[str]:
    """The variants that make a difference on a table."""
    return [name for name in VARIANTS if VARIANTS[name].n_features is None or table in WIDE]
