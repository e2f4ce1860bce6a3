"""Convergence and agreement: known cases, and the same numbers sum by sum."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracles
from gibbsite import diagnostics
from gibbsite.diagnostics import Agreement, Limits, Mixing


def autoregressive(n_chains: int, n_draws: int, phi: float, seed: int = 0) -> np.ndarray:
    """Stationary chains x_t = φ x_{t−1} + noise of variance 1, worth (1 − φ)/(1 + φ) of their draws."""
    generator = np.random.default_rng(seed)
    values = np.empty((n_chains, n_draws))
    values[:, 0] = generator.normal(size=n_chains)
    for t in range(1, n_draws):
        values[:, t] = phi * values[:, t - 1] + np.sqrt(1 - phi**2) * generator.normal(size=n_chains)
    return values


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.9, -0.5])
def test_effective_size_of_autoregressive_chains_is_the_known_one(phi: float) -> None:
    # Over 50 seeds the estimate scattered by 2 to 9 % (φ = 0.9); the limit is four to five times that.
    found = diagnostics.bulk_size(autoregressive(4, 5000, phi))
    np.testing.assert_allclose(found, 20_000 * (1 - phi) / (1 + phi), rtol=0.4 if phi == 0.9 else 0.2)


@pytest.mark.parametrize("phi", [0.0, 0.7])
def test_chains_of_one_distribution_have_r_hat_near_one(phi: float) -> None:
    # Over 200 seeds it lay between .9997 and 1.013.
    assert 0.999 < diagnostics.r_hat(autoregressive(4, 2000, phi)) < 1.02


def test_a_shifted_chain_is_seen() -> None:
    values = autoregressive(4, 1000, 0.0)
    values[2] += 1.0
    assert diagnostics.r_hat(values) > 1.05
    # Independent within chains, yet hardly worth more than the chains' number: their places differ.
    assert diagnostics.bulk_size(values) < 100


def test_a_wider_chain_of_the_same_mean_is_seen() -> None:
    values = autoregressive(4, 1000, 0.0)
    values[1] *= 4.0
    assert oracles.potential_scale(oracles.normal_scores(values[:, ::10].tolist())) < 1.01, "not by its place"
    assert diagnostics.r_hat(values) > 1.05


def test_a_single_chain_that_drifts_is_seen() -> None:
    values = autoregressive(1, 1000, 0.0)
    assert diagnostics.r_hat(values) < 1.05
    assert diagnostics.r_hat(values + np.linspace(0, 2, 1000)) > 1.05


def test_r_hat_of_two_values_is_that_worked_out_by_hand() -> None:
    # Eight zeros and eight ones have the scores ∓s. The halves' means are −s/2, −s/2, s/2, s/2, of variance s²/3; in
    # each half the variance is s². Distances to the median are all equal.
    values = np.array([[0, 0, 0, 1, 0, 0, 0, 1], [0, 1, 1, 1, 0, 1, 1, 1]], float)
    np.testing.assert_allclose(diagnostics.r_hat(values), np.sqrt(3 / 4 + 1 / 3))


TRACES = st.tuples(st.integers(1, 4), st.integers(4, 41), st.integers(0, 10**6), st.sampled_from([0.0, 0.9, -0.8]))


@given(TRACES, st.booleans())
def test_r_hat_and_sizes_are_those_of_the_sums_written_out(case: tuple[int, int, int, float], is_whole: bool) -> None:
    n_chains, n_draws, seed, phi = case
    values = autoregressive(n_chains, n_draws, phi, seed)
    # Whole numbers, as counts of classes are, have ties.
    values = np.round(values) + np.arange(n_draws) % 2 if is_whole else values
    assume(np.ptp(values) > 0)
    expected = min(oracles.r_hat(values.tolist()), diagnostics.HIGHEST_R_HAT)
    np.testing.assert_allclose(diagnostics.r_hat(values), expected, rtol=1e-9)
    scores = oracles.normal_scores(oracles.split(values.tolist()))
    # The one odd draw may lie in the middle, which the halves leave out.
    assume(np.ptp(scores) > 0)
    np.testing.assert_allclose(diagnostics.bulk_size(values), oracles.effective_size(scores), rtol=1e-9)
    np.testing.assert_allclose(
        diagnostics.effective_size(values), oracles.effective_size(values.tolist()), rtol=1e-9, atol=1e-9
    )


@given(st.integers(0, 1000))
def test_only_the_order_of_values_matters(seed: int) -> None:
    values = autoregressive(3, 50, 0.5, seed)
    assert diagnostics.bulk_size(np.exp(3 * values)) == diagnostics.bulk_size(values)
    # Folding measures distances, so R-hat keeps to changes of scale and sign.
    np.testing.assert_allclose(diagnostics.r_hat(-2 * values), diagnostics.r_hat(values), rtol=1e-9)


def test_chains_that_stand_still_agree_or_not() -> None:
    same, different = np.full((3, 20), 7.0), np.repeat([[7.0], [8.0]], 20, 1)
    assert diagnostics.mixing(same) == Mixing(1.0, 60.0)
    found = diagnostics.mixing(different)
    assert found.r_hat == diagnostics.HIGHEST_R_HAT
    assert found.bulk_size is not None
    assert found.bulk_size < 4


def test_too_few_draws_say_nothing() -> None:
    assert diagnostics.mixing(np.zeros((2, 3))) == Mixing(None, None)
    assert diagnostics.mixing(np.empty((2, 0))) == Mixing(None, None)


def test_traces_of_uneven_length_keep_their_last_draws() -> None:
    np.testing.assert_array_equal(diagnostics.align([[1, 2, 3], [4, 5]]), [[2, 3], [4, 5]])


def test_agreement_is_one_for_renamed_classes_and_none_by_chance() -> None:
    generator = np.random.default_rng(3)
    code = generator.integers(0, 4, 4000)
    is_unknown = code > 1
    renamed = np.array([2, 0, 3, 1])[code]
    assert diagnostics.agreement((code, renamed), (is_unknown, is_unknown)) == Agreement(1.0, 1.0)
    shuffled = generator.permutation(code)
    found = diagnostics.agreement((code, shuffled), (is_unknown, shuffled > 1))
    # The index of 4,000 unrelated pixels scatters by about 4e-4 about 0, the share of equal verdicts by .008 about ½.
    assert abs(found.rand_index) < 0.01
    assert abs(found.same_verdict - 0.5) < 0.05


def test_acceptance_adds_up_over_sweeps_and_chains() -> None:
    counts = {"split": ([[3, 2], [1, 0]], [[1, 0], [1, 0]]), "merge": (np.zeros(0), np.zeros(0))}
    assert diagnostics.acceptance(counts) == {
        "split": {"proposed": 6, "accepted": 2},
        "merge": {"proposed": 0, "accepted": 0},
    }


def test_concerns_name_what_is_wrong_and_nothing_else() -> None:
    good, pair = Mixing(1.01, 400.0), Agreement(0.95, 0.99)
    assert diagnostics.concerns({"log joint": good}, {(1, 2): pair}) == []
    found = diagnostics.concerns(
        {"log joint": Mixing(1.31, 12.4), "number of classes": Mixing(1.02, 99.0), "third": Mixing(None, None)},
        {(1, 2): pair, (1, 3): Agreement(0.41, 0.9)},
    )
    wanted = [
        "too few sweeps after burn-in",
        "R-hat of log joint 1.31, want 1.05 or less",
        "12 for the log joint, 99 for the number of classes, want 100",
        "adjusted Rand index of 1 and 3 (0.41), want 0.8 or more",
    ]
    assert len(found) == len(wanted)
    for sentence, part in zip(found, wanted, strict=True):
        assert part in sentence


def test_limits_are_those_of_the_documentation() -> None:
    assert Limits() == Limits(r_hat=1.05, bulk_size=100.0, rand_index=0.8)
    edge = Mixing(1.05, 100.0)
    assert diagnostics.concerns({"log joint": edge}, {(1, 2): Agreement(0.8, 1.0)}) == []


def test_longer_memory_is_worth_less() -> None:
    sizes = [diagnostics.bulk_size(autoregressive(4, 2000, phi)) for phi in (0.0, 0.5, 0.8, 0.95)]
    assert all(long < short for short, long in pairwise(sizes))
