"""Mixtures of classes: found again with their shares, and nothing else taken for one."""

import numpy as np
import pytest

from gibbsite.mixtures import LEAST_SHARE, NEAR, nearest_mixtures
from gibbsite.model import Model

ENDS = 4.0 * np.eye(5)[:4]
"""Four known classes in five features, far from each other and not on one line or plane."""
SPREAD = 0.5


def nearest(*more: np.ndarray):
    return nearest_mixtures(np.vstack([ENDS, *more]), SPREAD, len(ENDS))[len(ENDS) :]


@pytest.mark.parametrize(
    "shares", [{0: 1.0}, {0: 0.7, 2: 0.3}, {1: 0.5, 3: 0.5}, {0: 0.5, 1: 0.3, 2: 0.2}, {1: 0.4, 2: 0.35, 3: 0.25}]
)
def test_a_mixture_is_found_again_with_its_shares(shares):
    noise = 0.02 * np.random.default_rng(1).normal(size=5)
    (found,) = nearest(sum(share * ENDS[k] for k, share in shares.items()) + noise)
    assert found.is_near
    assert [index for index, _ in found.parts] == list(shares), "the largest first"
    assert [share for _, share in found.parts] == pytest.approx(list(shares.values()), abs=0.02)
    assert sum(share for _, share in found.parts) == pytest.approx(1.0)
    assert found.apart == pytest.approx(0.0, abs=0.05)


def test_what_lies_off_all_of_them_is_no_mixture():
    off = np.array([0.0, 0.0, 0.0, 0.0, 3.0])
    (found,) = nearest(0.5 * ENDS[0] + 0.5 * ENDS[1] + off)
    assert not found.is_near
    assert found.apart == pytest.approx(3.0 / np.sqrt(5) / SPREAD, rel=0.02), "of an average feature, in spreads"


def test_what_lies_beyond_an_end_is_no_mixture():
    (found,) = nearest(2.0 * ENDS[0] - ENDS[1])
    assert not found.is_near


def test_a_discovery_may_be_part_of_smaller_mixtures_but_a_mixture_is_of_none():
    new = np.array([0.0, 0.0, 0.0, 0.0, 5.0])
    between = 0.5 * ENDS[0] + 0.5 * ENDS[1]
    found = nearest(new, between, 0.6 * new + 0.4 * ENDS[3], 0.5 * between + 0.5 * ENDS[2])
    assert [one.is_near for one in found] == [False, True, True, True]
    assert found[2].parts == ((4, pytest.approx(0.6, abs=0.01)), (3, pytest.approx(0.4, abs=0.01)))
    assert {index for index, _ in found[3].parts} == {0, 1, 2}, "not the class between the first two"


def test_a_trace_of_something_is_no_part():
    (found,) = nearest((1 - LEAST_SHARE / 2) * ENDS[0] + LEAST_SHARE / 2 * ENDS[1])
    assert found.parts == ((0, 1.0),)


def test_without_known_classes_the_largest_stands_alone():
    first, second = np.zeros(3), np.array([9.0, 0.0, 0.0])
    found = nearest_mixtures(np.array([first, second, 0.5 * second]), 1.0, 0)
    assert found[0] is None
    assert not found[1].is_near
    assert dict(found[2].parts) == {0: pytest.approx(0.5), 1: pytest.approx(0.5)}


def test_a_known_class_without_pixels_is_no_part_and_equal_ones_do_no_harm():
    mean = np.vstack([np.full(5, np.nan), ENDS[0], ENDS[0], ENDS[1], 0.5 * (ENDS[0] + ENDS[1])])
    found = nearest_mixtures(mean, SPREAD, 4)[4]
    assert found.is_near
    assert {index for index, _ in found.parts} in ({1, 3}, {2, 3})


def test_only_discovered_classes_are_asked():
    assert nearest_mixtures(ENDS, SPREAD, 4) == [None] * 4
    assert nearest_mixtures(np.zeros((1, 3)), SPREAD, 0) == [None]


@pytest.mark.parametrize("n_features", [1, 2, 10, 30])
def test_random_mixtures_of_random_classes_are_near_and_no_shares_are_out_of_range(n_features):
    random = np.random.default_rng(n_features)
    for _ in range(50):
        ends = 5.0 * random.normal(size=(random.integers(2, 12), n_features))
        parts = random.choice(len(ends), 2, replace=False)
        share = random.uniform(0.2, 0.8)
        mean = share * ends[parts[0]] + (1 - share) * ends[parts[1]]
        found = nearest_mixtures(np.vstack([ends, mean]), 1.0, len(ends))[-1]
        assert found.apart <= 1e-6 or (found.is_near and len(found.parts) == 1) or n_features == 1
        shares = [share for _, share in found.parts]
        assert found.apart <= NEAR
        assert sum(shares) == pytest.approx(1.0)
        assert min(shares) >= LEAST_SHARE


def test_moments_of_a_model_are_those_of_pixels_drawn_from_it():
    random = np.random.default_rng(3)
    n_draws, n_features, class_of = 3, 2, np.array([0, 0, 2])
    spread = random.normal(size=(3, n_features, n_features)) + 2 * np.eye(n_features)
    covariance = spread @ spread.swapaxes(1, 2)
    whiten = np.linalg.cholesky(np.linalg.inv(covariance)).swapaxes(1, 2)
    mean, log_weight = 3.0 * random.normal(size=(3, n_features)), np.log([0.2, 0.5, 0.3]) - 900.0
    alike = [np.tile(array, (n_draws,) + (1,) * array.ndim) for array in (log_weight, mean, np.zeros((3, 2)), whiten)]
    model = Model(class_of, *alike, step=1.0, basis="", classes=[{"is_known": True}] * 3)
    found_mean, found_variance = model.moments()
    component = random.choice(3, 400_000, p=[0.2, 0.5, 0.3])
    noise = np.linalg.cholesky(covariance)[class_of[component]] @ random.normal(size=(len(component), n_features, 1))
    pixel = mean[component] + noise[..., 0]
    for index in (0, 2):
        own = pixel[class_of[component] == index]
        assert found_mean[index] == pytest.approx(own.mean(0), abs=0.05)
        assert found_variance[index] == pytest.approx(own.var(0).mean(), rel=0.02)
    assert np.isnan(found_mean[1]).all()
    assert np.isnan(found_variance[1])
