"""The sweep against the exact posterior: all two-level partitions of a few pixels, enumerated.

Comparisons and their false-alarm rate: `exact_posterior.py`. Single moves are held against it in test_exact_moves.py,
the sampler as a whole against its own prior in test_exact_geweke.py.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import oracles
from exact_posterior import Reader, assert_follows, enumerate_partitions
from gibbsite import gibbs, hyper, statistics, tiles
from gibbsite.hyper import HyperPrior
from gibbsite.niw import Prior, log_joint
from gibbsite.state import Rules
from gibbsite.tiles import Tile
from handmade_chains import STEP, Partition, clusters, prior, rules, state_from, state_of, tile

PRIORS: dict[str, dict[str, Any]] = {
    "scattered": {},
    "tight": {"spread": 0.5, "kappa0": 0.8, "gamma": 2.0},
    "crowded": {"alpha": 4.0, "gamma": 0.3, "spread": 6.0, "kappa0": 0.05},
}
"""Hyper-parameters: components far from and near to their class, many components."""
SINGLE: dict[str, Any] = {"spread": 0.0}
LABELS = {5: [0, -1, 0, 1, -1], 6: [1, -1, 0, -1, 0, -1]}


def labelled(pixels: Tile) -> Tile:
    return Tile(0, pixels.feature, np.array(LABELS[len(pixels.feature)], np.int16))


def visit(pixels: Tile, given: Prior, chosen: Rules, sweeps: int) -> list[Partition]:
    """The partition after each sweep; the first one has one component per known class and one of all the rest."""
    reader = Reader(pixels)
    assert reader.is_sound
    names, label = np.unique(np.where(pixels.known >= 0, pixels.known, chosen.n_known), return_inverse=True)
    state = state_of(pixels, label, np.arange(len(names)), chosen, given)
    visited = []
    for _ in range(sweeps):
        state, _ = gibbs.sweep(state, chosen, lambda task, *_: tiles.tally(pixels, task), pixels.part)
        visited.append(reader.read(state))
    return visited


def check_two_sweeps(pixels: Tile, given: Prior, chosen: Rules, n: int) -> None:
    """From independent draws of the truth, each under its own seed: no effective size is needed."""
    truth = enumerate_partitions(pixels, given, chosen.is_single)
    reader, visited = Reader(pixels), []
    assert reader.is_sound
    for number, partition in enumerate(truth.draw(n, 1)):
        fresh = replace(chosen, seed=1000 * chosen.seed + number)
        state = state_from(partition, pixels, fresh, given)
        for _ in range(2):
            state, _ = gibbs.sweep(state, fresh, lambda task, *_: tiles.tally(pixels, task), pixels.part)
        visited.append(reader.read(state))
    assert_follows(truth, visited, is_independent=True)


CASES = {
    "all pixels in the block": ({}, PRIORS["scattered"], False),
    "a block of two": ({"birth_block": 2}, PRIORS["tight"], False),
    "a block of one": ({"birth_block": 1}, PRIORS["crowded"], False),
    "labelled pixels": ({"n_known": 2, "birth_block": 2}, PRIORS["scattered"], True),
    "one component per class": ({"is_single": True, "birth_block": 2}, SINGLE, False),
    "one component per class, labelled": ({"is_single": True, "n_known": 2, "birth_block": 3}, SINGLE, True),
}


def case_of(name: str, n_features: int, seed: int) -> tuple[Tile, Prior, Rules]:
    change_rules, change_prior, has_labels = CASES[name]
    pixels = tile(5, n_features, seed=seed)
    pixels = labelled(pixels) if has_labels else pixels
    return pixels, prior(n_features, **change_prior), rules(5, **change_rules)


@pytest.mark.parametrize("n_features", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_two_sweeps_keep_the_exact_posterior(case: str, n_features: int) -> None:
    check_two_sweeps(*case_of(case, n_features, 3), 800)


@pytest.mark.statistical
@pytest.mark.parametrize("n_features", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_two_sweeps_keep_the_exact_posterior_of_many_draws(case: str, n_features: int) -> None:
    check_two_sweeps(*case_of(case, n_features, 4), 5000)


@pytest.mark.statistical
@pytest.mark.parametrize("case", CASES)
def test_a_long_chain_finds_the_exact_posterior(case: str) -> None:
    pixels, given, chosen = case_of(case, 1, 4)
    truth = enumerate_partitions(pixels, given, chosen.is_single)
    assert_follows(truth, visit(pixels, given, chosen, 15_000))


@pytest.mark.statistical
@pytest.mark.parametrize("has_labels", [False, True])
@pytest.mark.parametrize("n_features", [1, 2])
@pytest.mark.parametrize(("change_prior", "birth_block"), [("scattered", 1), ("tight", 6), ("crowded", 3)])
def test_two_sweeps_keep_all_partitions_of_six_pixels(
    change_prior: str, birth_block: int, n_features: int, has_labels: bool
) -> None:
    pixels = tile(6, n_features, seed=11)
    pixels = labelled(pixels) if has_labels else pixels
    chosen = rules(6, seed=6, birth_block=birth_block, n_known=2 if has_labels else 0)
    check_two_sweeps(pixels, prior(n_features, **PRIORS[change_prior]), chosen, 5000)


def test_there_are_358_and_2471_partitions_of_five_and_six_pixels() -> None:
    for n, expected in ((5, 358), (6, 2471)):
        assert len(enumerate_partitions(tile(n, 1), prior(1)).partition) == expected


def test_enumerated_probabilities_are_those_of_the_collapsed_joint() -> None:
    # The truth comes from one matrix t per class and seats taken one by one; the joint of a state from sums.
    pixels, given, chosen = tile(5, 2), prior(2), rules(5)
    truth = enumerate_partitions(pixels, given)
    joint = [gibbs.describe(state_from(one, pixels, chosen, given), chosen).log_joint for one in truth.partition]
    odds = np.exp(np.array(joint) - max(joint))
    np.testing.assert_allclose(odds / odds.sum(), truth.probability, rtol=1e-9)


def test_sums_stay_those_of_all_pixels() -> None:
    pixels, label = clusters(700, 3, 4)
    chosen = rules(700, birth_block=64, class_rule="predictive")
    state = state_of(pixels, label, np.arange(4), chosen, prior(3))
    _, _, whole = oracles.sum_by_label(pixels.feature, np.zeros(700, np.int64), 1)
    for _ in range(10):
        state, _ = gibbs.sweep(state, chosen, lambda task, *_: tiles.tally(pixels, task), pixels.part)
        np.testing.assert_array_equal(state.statistics.n.sum(), 700)
        np.testing.assert_array_equal(state.statistics.outer.sum(0), whole[0], "pixels were lost or doubled")
        assert (np.diff(state.class_of) >= 0).all(), "components of a class must stand together"


def test_traced_joint_is_that_of_the_state() -> None:
    pixels, label = clusters(300, 2, 3)
    chosen = rules(300, birth_block=50)
    state = state_of(pixels, label, np.arange(3), chosen, prior(2))
    state, info = gibbs.sweep(state, chosen, lambda task, *_: tiles.tally(pixels, task), pixels.part)
    moments = statistics.moments(state.statistics, STEP)
    assert info.log_joint == log_joint(moments, state.class_of, state.prior)
    assert (info.n_classes, info.n_components) == (len(state.class_id), len(state.class_of))


def test_a_sweep_of_ai2gmm_begins_with_the_estimates_of_its_hyper_parameters() -> None:
    pixels, label = clusters(300, 2, 3)
    constants = HyperPrior(c1=0.1, c2=4.0, alpha0=1.4, beta0=4.0, alpha1=3.0, beta1=4.0)
    chosen = rules(300, birth_block=50, constants=constants)
    before = state_of(pixels, label, np.arange(3), chosen, prior(2))
    after, _ = gibbs.sweep(before, chosen, lambda task, *_: tiles.tally(pixels, task), pixels.part)
    moments = statistics.moments(before.statistics, STEP)
    expected = hyper.estimate(moments, before.class_of, before.prior, constants)
    assert expected.kappa0 != before.prior.kappa0
    np.testing.assert_array_equal(after.prior.scale, expected.scale)
    assert (after.prior.kappa0, after.prior.spread) == (expected.kappa0, expected.spread)
