"""The serial sampler beside the benchmarks against the enumerated posterior: a yardstick must be straight.

Comparisons and their false-alarm rate: `exact_posterior.py`.
"""

import importlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from exact_posterior import assert_follows, enumerate_partitions
from gibbsite.experiments import protocol
from gibbsite.experiments.table import Table
from handmade_chains import STEP, Partition, clusters, prior, tile


@pytest.fixture(scope="module")
def serial() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
        yield importlib.import_module("serial")


@pytest.mark.parametrize("has_labels", [False, True])
@pytest.mark.parametrize("n_features", [1, 2])
def test_two_sweeps_of_the_serial_sampler_keep_the_exact_posterior(
    n_features: int, has_labels: bool, serial: ModuleType
) -> None:
    pixels, given = tile(5, n_features), prior(n_features)
    if has_labels:
        pixels = replace(pixels, known=np.array([0, -1, 0, 1, -1], np.int16))
    scheme = serial.Scheme(pixels.feature * STEP, pixels.known, "evidence", is_paper=False)
    truth, visited = enumerate_partitions(pixels, given), []
    for seed, partition in enumerate(truth.draw(800, 1)):
        seats, generator = seats_of(partition, serial), np.random.default_rng(seed)
        for _ in range(2):
            seats = scheme.scan(seats, given, generator)
            seats = scheme.change_classes(seats, given, generator, fresh=seats.class_of.max() + 1)
        visited.append(partition_of(seats.label, seats.class_of))
    assert_follows(truth, visited, is_independent=True)


def seats_of(partition: Partition, serial: ModuleType) -> Any:
    label, class_of = np.empty(5, np.int64), []
    for k, members in enumerate(partition):
        for component in members:
            label[list(component)] = len(class_of)
            class_of.append(k)
    return serial.Seats(label, np.array(class_of))


def partition_of(label: np.ndarray, class_of: np.ndarray) -> Partition:
    members = [frozenset(np.flatnonzero(label == c).tolist()) for c in range(len(class_of))]
    return frozenset(frozenset(members[c] for c in np.flatnonzero(class_of == k)) for k in np.unique(class_of))


def test_the_serial_sampler_finds_separate_clusters(serial: ModuleType) -> None:
    pixels, label = clusters(300, 2, 3)
    given = np.where((label == 0) & (np.arange(300) % 5 == 0), 0, -1)
    fit = serial.Fit(model="ai2gmm", class_rule="predictive", sweeps=10)
    found, *_ = serial.run(pixels.feature * STEP, given, fit, True, 1)
    table = Table(pixels.feature * STEP, label, ("first", "second", "third"))
    assert protocol.score(protocol.Task(table, given, (0,)), found).f1.mean() > 0.95
