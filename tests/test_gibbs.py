"""The sweep against the exact posterior: all two-level partitions of a few pixels, enumerated.

Each comparison takes the total variation between visited and true frequencies, and the same for 2,000 simulated samples
of the truth of the chain's effective size. It fails above their 99.9 % quantile: one false alarm in a thousand per
comparison if seeds were drawn anew; seeds are fixed.
"""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from gibbsite import gibbs, statistics, tiles
from gibbsite.niw import Prior, log_joint
from gibbsite.state import Rules
from gibbsite.statistics import Moments
from gibbsite.tiles import Tile
from handmade_chains import STEP, clusters, prior, rules, state_of, tile
from oracles import two_level_partitions

Partition = frozenset[frozenset[frozenset[int]]]


def moments_of(x: np.ndarray, components: list[list[int]]) -> Moments:
    away = [x[c] - x[c].mean(0) for c in components]
    return Moments(
        np.array([float(len(c)) for c in components]),
        np.array([x[c].mean(0) for c in components]),
        np.array([a.T @ a for a in away]),
    )


def keeps_labels(components: list[list[int]], classes: list[list[int]], known: np.ndarray) -> bool:
    """Whether pixels of one known class share a class, and of different ones do not."""
    named = [{int(known[i]) for c in members for i in components[c]} - {-1} for members in classes]
    return all(len(names) <= 1 for names in named) and sum(map(len, named)) == len(set().union(*named))


def true_posterior(pixels: Tile, given: Prior, is_single: bool) -> dict[Partition, float]:
    x = pixels.feature * STEP
    log_odds = {}
    for components, classes in two_level_partitions(len(x)):
        if is_single and any(len(members) > 1 for members in classes):
            continue
        if not keeps_labels(components, classes, pixels.known):
            continue
        class_of = np.zeros(len(components), int)
        for k, members in enumerate(classes):
            class_of[members] = k
        key = frozenset(frozenset(frozenset(components[c]) for c in members) for members in classes)
        log_odds[key] = log_joint(moments_of(x, components), class_of, given)
    odds = np.exp(np.array(list(log_odds.values())) - max(log_odds.values()))
    return dict(zip(log_odds, odds / odds.sum(), strict=True))


def visit(pixels: Tile, given: Prior, chosen: Rules, sweeps: int) -> tuple[Counter[Partition], np.ndarray]:
    """How often each partition is visited, and the trace of the log joint."""
    n = len(pixels.feature)
    subsets = {
        tuple(pixels.feature[list(members)].astype(int).sum(0)): frozenset(members)
        for size in range(1, n + 1)
        for members in combinations(range(n), size)
    }
    assert len(subsets) == 2**n - 1, "sums must tell subsets apart"
    names, label = np.unique(np.where(pixels.known >= 0, pixels.known, chosen.n_known), return_inverse=True)
    state = state_of(pixels, label, np.arange(len(names)), chosen, given)
    counts: Counter[Partition] = Counter()
    trace = np.empty(sweeps)
    for number in range(sweeps):
        state, info = gibbs.sweep(state, chosen, lambda task: tiles.tally(pixels, task), pixels.part)
        classes: dict[int, set[frozenset[int]]] = {}
        for total, k in zip(state.statistics.total, state.class_of, strict=True):
            classes.setdefault(int(k), set()).add(subsets[tuple(total)])
        counts[frozenset(frozenset(members) for members in classes.values())] += 1
        trace[number] = info.log_joint
    return counts, trace


def effective_size(trace: np.ndarray) -> int:
    """Independent draws the trace is worth, by its autocorrelation up to the first that is not positive."""
    away = trace - trace.mean()
    variance = (away**2).mean()
    total = 1.0
    for lag in range(1, len(trace) // 10):
        correlation = (away[:-lag] * away[lag:]).mean() / variance
        if correlation <= 0:
            break
        total += 2 * correlation
    return max(50, int(len(trace) / total))


def assert_follows(truth: dict[Partition, float], counts: Counter[Partition], size: int) -> None:
    assert set(counts) <= set(truth), "a partition was visited that the labels forbid"
    p = np.array(list(truth.values()))
    seen = np.array([counts[key] for key in truth]) / counts.total()
    found = 0.5 * np.abs(seen - p).sum()
    simulated = np.random.default_rng(0).multinomial(size, p, 2000) / size
    limit = np.quantile(0.5 * np.abs(simulated - p).sum(1), 0.999)
    assert found < limit, f"total variation {found:.4f} above {limit:.4f} for {size} effective draws of {len(p)}"


CASES = {
    "all pixels in the block": ({}, {}, None),
    "a block of two": ({"birth_block": 2}, {"spread": 0.5, "kappa0": 0.8, "gamma": 2.0}, None),
    "a block of one": ({"birth_block": 1}, {}, None),
    "labelled pixels": ({"n_known": 2, "birth_block": 2}, {}, [0, -1, 0, 1, -1]),
    "one component per class": ({"is_single": True, "birth_block": 2}, {"spread": 0.0}, None),
    "one component per class, labelled": (
        {"is_single": True, "n_known": 2, "birth_block": 3},
        {"spread": 0.0},
        [0, -1, 0, 1, -1],
    ),
}


@pytest.mark.parametrize("n_features", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_visited_partitions_follow_the_exact_posterior(case: str, n_features: int) -> None:
    change_rules, change_prior, known = CASES[case]
    pixels = tile(5, n_features)
    if known is not None:
        pixels = Tile(0, pixels.feature, np.array(known, np.int16))
    chosen, given = rules(5, **change_rules), prior(n_features, **change_prior)
    counts, trace = visit(pixels, given, chosen, 1500)
    assert_follows(true_posterior(pixels, given, chosen.is_single), counts, effective_size(trace))


@pytest.mark.statistical
@pytest.mark.parametrize("n_features", [1, 2])
@pytest.mark.parametrize("case", ["all pixels in the block", "a block of two", "a block of one"])
def test_six_pixels_follow_all_2471_partitions(case: str, n_features: int) -> None:
    change_rules, change_prior, _ = CASES[case]
    pixels = tile(6, n_features, seed=11)
    chosen, given = rules(6, **change_rules), prior(n_features, **change_prior)
    truth = true_posterior(pixels, given, False)
    assert len(truth) == 2471
    counts, trace = visit(pixels, given, chosen, 40000)
    assert_follows(truth, counts, effective_size(trace))


@pytest.mark.statistical
@pytest.mark.parametrize("case", CASES)
def test_long_chains_follow_the_exact_posterior(case: str) -> None:
    change_rules, change_prior, known = CASES[case]
    pixels = tile(5, 2, seed=4)
    if known is not None:
        pixels = Tile(0, pixels.feature, np.array(known, np.int16))
    chosen, given = rules(5, **change_rules), prior(2, **change_prior)
    counts, trace = visit(pixels, given, chosen, 30000)
    assert_follows(true_posterior(pixels, given, chosen.is_single), counts, effective_size(trace))


def test_sums_stay_those_of_all_pixels() -> None:
    pixels, label = clusters(700, 3, 4)
    chosen = rules(700, birth_block=64, class_rule="predictive")
    state = state_of(pixels, label, np.arange(4), chosen, prior(3))
    whole = tiles.sum_by_label(pixels, np.zeros(700, np.int64), 1)
    for _ in range(10):
        state, _ = gibbs.sweep(state, chosen, lambda task: tiles.tally(pixels, task), pixels.part)
        np.testing.assert_array_equal(state.statistics.n.sum(), 700)
        np.testing.assert_array_equal(state.statistics.outer.sum(0), whole.outer[0], "pixels were lost or doubled")
        assert (np.diff(state.class_of) >= 0).all(), "components of a class must stand together"


def test_traced_joint_is_that_of_the_state() -> None:
    pixels, label = clusters(300, 2, 3)
    chosen = rules(300, birth_block=50)
    state = state_of(pixels, label, np.arange(3), chosen, prior(2))
    state, info = gibbs.sweep(state, chosen, lambda task: tiles.tally(pixels, task), pixels.part)
    moments = statistics.moments(state.statistics, STEP)
    assert info.log_joint == log_joint(moments, state.class_of, state.prior)
    assert (info.n_classes, info.n_components) == (len(state.class_id), len(state.class_of))
