"""The exact posterior of a few pixels by enumeration, and the verdict on draws that should follow it.

A comparison has three statistics: the total variation over all partitions, the total variation over (number of
components, number of classes), and the worst standardised error among the shares of draws in which two pixels are
together, in a component or in a class. Each gets its p-value from 20,000 simulated samples of the truth. The verdict is
"wrong" when the smallest lies below FALSE_ALARMS / 3: one false alarm in a thousand comparisons, were seeds drawn anew.
(Seeds are fixed.)

Of independent draws this is exact. Draws of a chain are simulated by samples of their effective size, which differs
between functions of the partition: a pair has its own, the table of sizes takes the smaller one of the two sizes, and
the total variation over all partitions the smallest of all pairs. Total variations are then on the quiet side. An
effective size is itself an estimate, and a poor one where it is small: a chain worth fewer than FEWEST draws is no
comparison, and fails.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations

import numpy as np

import oracles
from gibbsite.diagnostics import effective_size
from gibbsite.niw import Prior
from gibbsite.state import State
from gibbsite.tiles import Tile
from handmade_chains import STEP, Partition

FALSE_ALARMS = 1e-3
"""Per comparison."""
FEWEST = 300
"""Effective draws."""
N_SIMULATED = 20_000


@dataclass(frozen=True)
class Truth:
    """Partitions and their probabilities."""

    partition: list[Partition]
    probability: np.ndarray

    @cached_property
    def sizes(self) -> np.ndarray:
        """(n_partitions, 2) number of components and of classes."""
        return np.array([(sum(map(len, classes)), len(classes)) for classes in self.partition], float)

    @cached_property
    def together(self) -> np.ndarray:
        """(n_partitions, n_pairs) whether two pixels share a component, or a class; pairs that can do both."""
        pixels = sorted(set().union(*(c for members in self.partition[0] for c in members)))
        rows = []
        for classes in self.partition:
            component = {i: c for members in classes for c in members for i in c}
            class_of = {i: members for members in classes for c in members for i in c}
            pairs = list(combinations(pixels, 2))
            rows.append([place[i] is place[j] for place in (component, class_of) for i, j in pairs])
        values = np.array(rows, float)
        return values[:, np.ptp(values, axis=0) > 0]

    def draw(self, n: int, seed: int) -> list[Partition]:
        """Independent draws."""
        chosen = np.random.default_rng(seed).choice(len(self.partition), n, p=self.probability)
        return [self.partition[i] for i in chosen]


def enumerate_partitions(pixels: Tile, given: Prior, is_single: bool = False) -> Truth:
    """The posterior over all two-level partitions that keep the labels, by the oracles alone."""
    candidates = [
        (components, classes)
        for components, classes in oracles.two_level_partitions(len(pixels.feature))
        if not is_single or len(classes) == len(components)
    ]
    return _weigh(pixels, given, candidates, is_single)


def enumerate_classes(pixels: Tile, components: list[list[int]], given: Prior) -> Truth:
    """The posterior over the classes of components that stay as they are."""
    candidates = [(components, classes) for classes in oracles.set_partitions(list(range(len(components))))]
    return _weigh(pixels, given, candidates, False)


def _weigh(pixels: Tile, given: Prior, candidates: Iterable[tuple], is_single: bool) -> Truth:
    x = pixels.feature * STEP

    @cache
    def log_evidence(members: tuple[tuple[int, ...], ...]) -> float:
        return oracles.log_evidence(x, members, given)

    log_odds: dict[Partition, float] = {}
    for components, classes in candidates:
        if keeps_labels(components, classes, pixels.known):
            members = [tuple(tuple(components[c]) for c in one) for one in classes]
            total = oracles.log_seating([len(c) for c in components], given.alpha) + sum(map(log_evidence, members))
            if not is_single:
                total += oracles.log_seating([len(one) for one in classes], given.gamma)
            log_odds[frozenset(frozenset(map(frozenset, one)) for one in members)] = total
    odds = np.exp(np.array(list(log_odds.values())) - max(log_odds.values()))
    return Truth(list(log_odds), odds / odds.sum())


def keeps_labels(components: Sequence[Sequence[int]], classes: Sequence[Sequence[int]], known: np.ndarray) -> bool:
    """Whether pixels of one known class share a class, and of different ones do not."""
    named = [{int(known[i]) for c in members for i in components[c]} - {-1} for members in classes]
    return all(len(names) <= 1 for names in named) and sum(map(len, named)) == len(set().union(*named))


class Reader:
    """Reads partitions out of states, which know components by their sums only."""

    def __init__(self, pixels: Tile) -> None:
        n = len(pixels.feature)
        self._members = [frozenset(m) for size in range(1, n + 1) for m in combinations(range(n), size)]
        is_member = np.array([[i in members for i in range(n)] for members in self._members], np.int64)
        feature = pixels.feature.astype(np.int64)
        square = feature[:, :, None] * feature[:, None, :]
        sums = np.concatenate([is_member @ feature, is_member @ square.reshape(n, -1)], 1)
        self._found = {row.tobytes(): members for row, members in zip(sums, self._members, strict=True)}

    @property
    def is_sound(self) -> bool:
        """Whether sums tell all sets of pixels apart."""
        return len(self._found) == len(self._members)

    def members(self, state: State) -> list[frozenset[int]]:
        """The pixels of each component."""
        sums = np.concatenate([state.statistics.total, state.statistics.outer.reshape(len(state.statistics), -1)], 1)
        return [self._found[row.tobytes()] for row in sums]

    def read(self, state: State) -> Partition:
        """The state's partition."""
        classes: dict[int, set[frozenset[int]]] = {}
        for members, k in zip(self.members(state), state.class_of, strict=True):
            classes.setdefault(int(k), set()).add(members)
        return frozenset(map(frozenset, classes.values()))

    def labels(self, state: State) -> np.ndarray:
        """(n_pixels,) component of each pixel, by the place of its component in the state."""
        members = self.members(state)
        label = np.empty(sum(map(len, members)), np.int64)
        for index, pixels in enumerate(members):
            label[list(pixels)] = index
        return label


@dataclass(frozen=True)
class Verdict:
    """How well draws follow the truth."""

    size: float
    """Effective sample size of the slowest pair."""
    distance: float
    """Total variation over all partitions."""
    p_value: tuple[float, float, float]
    """Of partitions, of sizes, of pairs."""

    def __str__(self) -> str:
        p = " ".join(f"{value:.4f}" for value in self.p_value)
        return f"TV {self.distance:.4f} with {self.size:.0f} effective draws; p of partitions, sizes, pairs: {p}"


def judge(truth: Truth, visited: Sequence[Partition], is_independent: bool = False) -> Verdict:
    """The verdict on draws, independent ones or those of one chain."""
    index = {partition: i for i, partition in enumerate(truth.partition)}
    strangers = set(visited) - set(index)
    assert not strangers, f"a partition was visited that must not be: {strangers.pop()}"
    trace = np.array([index[partition] for partition in visited])
    frequency = np.bincount(trace, minlength=len(index)) / len(trace)
    cell = np.unique(truth.sizes, axis=0, return_inverse=True)[1].ravel()
    pair_size, size_size = (_sizes(values[trace], is_independent) for values in (truth.together, truth.sizes))
    p_value = (
        _judge_cells(truth.probability, frequency, pair_size.min()),
        _judge_cells(np.bincount(cell, truth.probability), np.bincount(cell, frequency), size_size.min()),
        _judge_pairs(truth, frequency, pair_size),
    )
    return Verdict(pair_size.min(), float(_distance(truth.probability, frequency)), p_value)


def _sizes(traces: np.ndarray, is_independent: bool) -> np.ndarray:
    """(n_functions,) effective sample sizes of traces (n_draws, n_functions), never above the number of draws."""
    n = float(len(traces))
    return np.array([n if is_independent else min(n, effective_size(values[None])) for values in traces.T])


def _judge_cells(probability: np.ndarray, frequency: np.ndarray, size: float) -> float:
    """p-value of the total variation over cells."""
    found = float(_distance(probability, frequency))
    return _p_value(found, lambda sample: _distance(probability, sample), probability, size)


def _judge_pairs(truth: Truth, frequency: np.ndarray, size: np.ndarray) -> float:
    """p-value of the worst standardised error of all pairs of pixels."""
    share = truth.probability @ truth.together

    def standardised(sample: np.ndarray) -> np.ndarray:
        # By the larger variance, that of the truth or of the sample: rare pairs are skewed.
        seen = sample @ truth.together
        return np.abs(seen - share) / np.sqrt(np.maximum(share * (1.0 - share), seen * (1.0 - seen)))

    found, fewest = (standardised(frequency) * np.sqrt(size)).max(), int(size.min())

    def worst(samples: np.ndarray) -> np.ndarray:
        return standardised(samples).max(1) * np.sqrt(fewest)

    return _p_value(float(found), worst, truth.probability, fewest)


def assert_follows(truth: Truth, visited: Sequence[Partition], is_independent: bool = False) -> None:
    verdict = judge(truth, visited, is_independent)
    # Seen with `pytest -rP`.
    print(verdict)
    assert min(verdict.p_value) > FALSE_ALARMS / 3, str(verdict)
    assert verdict.size >= FEWEST, f"{verdict}; too few to tell, run longer or start from draws of the truth"


def _distance(probability: np.ndarray, frequency: np.ndarray) -> np.ndarray:
    return 0.5 * np.abs(frequency - probability).sum(-1)


def _p_value(found: float, measure: Callable[[np.ndarray], np.ndarray], probability: np.ndarray, size: float) -> float:
    """Share of simulated samples of the truth that measure as much as was found.

    N_SIMULATED of them, fewer once 50 did: the rest would only sharpen a p-value that is no alarm.
    """
    generator, n_above, n = np.random.default_rng(0), 0, 0
    while n < N_SIMULATED and n_above < 50:
        frequency = generator.multinomial(int(size), probability, 500) / int(size)
        n_above += int((measure(frequency) >= found).sum())
        n += 500
    return (1 + n_above) / (1 + n)
