"""Mixtures of classes: found again with their shares, and nothing else taken for one."""

import numpy as np
import pytest

from gibbsite.mixtures import LEAST_SHARE, NEAR, nearest_mixtures
from gibbsite.model import Model

ENDS = 4.0 * np.eye(5)[:4]
"""Four known classes in five features, far from each other and not on one line or plane."""
SPREAD = 0.5


def nearest(*more: np.ndarray):
    mean = np.vstack([ENDS, *more])
    return nearest_mixtures(mean, np.full(len(mean), SPREAD**2), len(ENDS))[len(ENDS) :]


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
    assert found.apart < 0.2


def test_what_lies_off_all_of_them_is_no_mixture():
    off = np.array([0.0, 0.0, 0.0, 0.0, 3.0])
    (found,) = nearest(0.5 * ENDS[0] + 0.5 * ENDS[1] + off)
    assert not found.is_near
    assert found.apart == pytest.approx(3.0 / SPREAD), "in standard deviations of a feature"


@pytest.mark.parametrize("n_more", [0, 50])
def test_features_that_tell_nothing_change_nothing(n_more):
    mean = np.pad(np.vstack([ENDS, 0.5 * ENDS[0] + 0.5 * ENDS[1] + 0.65 * NEAR * np.eye(5)[4]]), ((0, 0), (0, n_more)))
    (found,) = nearest_mixtures(mean, np.full(5, SPREAD**2), 4)[4:]
    assert found.apart == pytest.approx(0.65 * NEAR / SPREAD)
    assert not found.is_near


def test_what_lies_beyond_an_end_is_no_mixture():
    (found,) = nearest(2.0 * ENDS[0] - ENDS[1])
    assert not found.is_near


def test_near_is_as_far_as_the_parts_spread_not_as_the_ground_around_them():
    mean = np.array([[0.0, 0.0, 0.0], [100.0, 0.0, 0.0], [100.0, 20.0, 0.0], [100.0, 10.0, 15.0]])
    (found,) = nearest_mixtures(mean, np.array([100.0, 0.09, 0.09, 0.09]), 3)[3:]
    assert not found.is_near


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_the_order_of_the_classes_does_not_matter(order):
    ends = np.array([np.zeros(10), 80.0 * np.eye(10)[0]])
    for share in (0.02, 0.08, 0.1, 0.12, 0.5):
        mean = (1 - share) * ends[0] + share * ends[1]
        (found,) = nearest_mixtures(np.vstack([ends[order], mean]), np.ones(3), 2)[2:]
        told = {order[index]: part for index, part in found.parts}
        assert told == (pytest.approx({0: 1 - share, 1: share}) if share >= LEAST_SHARE else {0: 1.0})


def test_a_class_is_told_as_near_whenever_some_mixture_is():
    # The nearest class alone is not near, and the pair hardly nearer.
    first, second = np.zeros(2), np.array([30.0, 0.0])
    mean = np.array([2.5, 0.95 * NEAR])
    assert np.linalg.norm(mean) > NEAR
    (found,) = nearest_mixtures(np.array([first, second, mean]), np.ones(3), 2)[2:]
    assert found.is_near == (len(found.parts) == 2)
    mean = np.array([3.5, 0.9 * NEAR])
    (found,) = nearest_mixtures(np.array([first, second, mean]), np.ones(3), 2)[2:]
    assert found.is_near
    assert found.apart == pytest.approx(0.9 * NEAR)


def test_a_discovery_may_be_part_of_smaller_mixtures_but_a_mixture_is_of_none():
    new = np.array([0.0, 0.0, 0.0, 0.0, 5.0])
    between = 0.5 * ENDS[0] + 0.5 * ENDS[1]
    found = nearest(new, between, 0.6 * new + 0.4 * ENDS[3], 0.5 * between + 0.5 * ENDS[2])
    assert [one.is_near for one in found] == [False, True, True, True]
    assert found[2].parts == ((4, pytest.approx(0.6, abs=0.01)), (3, pytest.approx(0.4, abs=0.01)))
    assert {index for index, _ in found[3].parts} == {0, 1, 2}, "not the class between the first two"


def test_without_known_classes_the_largest_stands_alone():
    first, second = np.zeros(3), np.array([9.0, 0.0, 0.0])
    found = nearest_mixtures(np.array([first, second, 0.5 * second]), np.ones(3), 0)
    assert found[0] is None
    assert not found[1].is_near
    assert dict(found[2].parts) == {0: pytest.approx(0.5), 1: pytest.approx(0.5)}


def test_a_known_class_without_components_is_no_part_and_equal_ones_do_no_harm():
    mean = np.vstack([np.full(5, np.nan), ENDS[0], ENDS[0], ENDS[1], 0.5 * (ENDS[0] + ENDS[1])])
    found = nearest_mixtures(mean, np.array([np.nan, 0.25, 0.25, 0.25, 0.25]), 4)[4]
    assert found.is_near
    assert {index for index, _ in found.parts} in ({1, 3}, {2, 3})


def test_only_discovered_classes_are_asked_and_no_spread_is_no_error():
    assert nearest_mixtures(ENDS, np.ones(4), 4) == [None] * 4
    assert nearest_mixtures(np.zeros((1, 3)), np.ones(1), 0) == [None]
    assert nearest_mixtures(np.zeros((2, 3)), np.zeros(2), 1)[1].apart == 0.0


@pytest.mark.parametrize("n_features", [2, 4, 10, 30])
@pytest.mark.parametrize("n_parts", [2, 3])
def test_random_mixtures_of_random_classes_are_near(n_features, n_parts):
    random = np.random.default_rng(n_features)
    for _ in range(100):
        ends = 5.0 * random.normal(size=(random.integers(n_parts, 13), n_features))
        share = random.dirichlet(np.full(n_parts, 4.0))
        mean = share @ ends[random.choice(len(ends), n_parts, replace=False)]
        found = nearest_mixtures(np.vstack([ends, mean]), np.full(len(ends) + 1, 0.04), len(ends))[-1]
        told = [part for _, part in found.parts]
        assert sum(told) == pytest.approx(1.0)
        assert min(told) >= LEAST_SHARE
        assert found.is_near or share.min() < LEAST_SHARE


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
