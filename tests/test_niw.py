"""Laws of the algebra, and the same numbers by another road."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_t

from gibbsite import niw
from gibbsite.niw import Prior
from gibbsite.statistics import Moments
from handmade_chains import prior


def moments_of(groups: list[np.ndarray]) -> Moments:
    away = [group - group.mean(0) for group in groups]
    return Moments(
        np.array([float(len(group)) for group in groups]),
        np.array([group.mean(0) for group in groups]),
        np.array([a.T @ a for a in away]),
    )


def evidence(groups: list[np.ndarray], given: Prior) -> float:
    components = niw.component_sums(moments_of(groups), given)
    sums = niw.class_sums(components, np.zeros(len(groups), int), 1)
    return float(niw.log_evidence(sums, given)[0])


def predictive(x: np.ndarray, groups: list[np.ndarray], given: Prior) -> float:
    components = niw.component_sums(moments_of(groups), given)
    sums = niw.class_sums(components, np.zeros(len(groups), int), 1)
    return float(niw.log_predictive(x, niw.posterior(sums, given), given.spread)[0])


@st.composite
def classes(draw: st.DrawFn) -> tuple[list[np.ndarray], Prior]:
    """A class of a few components of a few pixels, and a prior."""
    n_features = draw(st.integers(1, 4))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    spread = draw(st.sampled_from([0.0, 0.1, 2.0, 50.0]))
    return [3 * generator.normal(size=(n, n_features)) for n in sizes], prior(n_features, spread=spread)


@given(classes())
def test_evidence_is_the_product_of_predictives(case: tuple[list[np.ndarray], Prior]) -> None:
    groups, given_prior = case
    singles = [pixel[None] for group in groups for pixel in group]
    total = evidence(singles[:1], given_prior)
    for i in range(1, len(singles)):
        total += predictive(singles[i][0], singles[:i], given_prior)
    np.testing.assert_allclose(total, evidence(singles, given_prior), rtol=1e-9, atol=1e-8)


@given(classes())
def test_evidence_does_not_depend_on_order(case: tuple[list[np.ndarray], Prior]) -> None:
    groups, given_prior = case
    turned = [group[::-1] for group in groups[::-1]]
    np.testing.assert_allclose(evidence(turned, given_prior), evidence(groups, given_prior), rtol=1e-9)


@given(classes(), st.integers(0, 1000))
def test_evidence_changes_by_the_jacobian_under_affine_maps(case: tuple[list[np.ndarray], Prior], seed: int) -> None:
    groups, given_prior = case
    n_features = groups[0].shape[1]
    generator = np.random.default_rng(seed)
    matrix = generator.normal(size=(n_features, n_features)) + 3 * np.eye(n_features)
    shift = generator.normal(size=n_features)
    mapped = prior(
        n_features,
        spread=given_prior.spread,
        mean=matrix @ given_prior.mean + shift,
        scale=matrix @ given_prior.scale @ matrix.T,
    )
    n_pixels = sum(map(len, groups))
    jacobian = n_pixels * np.log(abs(np.linalg.det(matrix)))
    moved = evidence([group @ matrix.T + shift for group in groups], mapped)
    np.testing.assert_allclose(moved, evidence(groups, given_prior) - jacobian, rtol=1e-7, atol=1e-6)


def test_evidence_of_one_pixel_is_a_student_t() -> None:
    given_prior = prior(3)
    x = np.array([0.4, -1.0, 2.0])
    degrees = given_prior.degrees - 3 + 1
    inflation = 1 + given_prior.spread + 1 / given_prior.kappa0
    expected = multivariate_t(given_prior.mean, given_prior.scale * inflation / degrees, degrees).logpdf(x)
    np.testing.assert_allclose(evidence([x[None]], given_prior), expected, rtol=1e-12)


def test_posterior_is_that_of_direct_simulation() -> None:
    # Weighted draws from the prior: an independent road to the class mean. 1 in 10,000 would fail by chance.
    given_prior = prior(1, spread=0.5)
    groups = [np.array([[0.3], [0.9]]), np.array([[-0.4]])]
    generator = np.random.default_rng(0)
    n = 400_000
    variance = given_prior.scale[0, 0] / generator.chisquare(given_prior.degrees, n)
    mean = given_prior.mean[0] + generator.normal(size=n) * np.sqrt(variance / given_prior.kappa0)
    log_weight = np.zeros(n)
    for group in groups:
        centre = mean + generator.normal(size=n) * np.sqrt(variance * given_prior.spread)
        for pixel in group[:, 0]:
            log_weight += -0.5 * (pixel - centre) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
    weight = np.exp(log_weight)
    error = weight.std() / np.sqrt(n)
    assert abs(weight.mean() - np.exp(evidence(groups, given_prior))) < 4 * error
    components = niw.component_sums(moments_of(groups), given_prior)
    sums = niw.class_sums(components, np.zeros(2, int), 1)
    simulated = (weight * mean).sum() / weight.sum()
    spread = np.sqrt((weight**2 * (mean - simulated) ** 2).sum()) / weight.sum()
    assert abs(simulated - niw.posterior(sums, given_prior).mean[0, 0]) < 4 * spread


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_partition_prior_sums_to_one(n: int) -> None:
    from oracles import two_level_partitions

    total, count = 0.0, 0
    for components, members in two_level_partitions(n):
        class_of = np.zeros(len(components), int)
        for k, chosen in enumerate(members):
            class_of[chosen] = k
        sizes = np.array([float(len(c)) for c in components])
        total += np.exp(niw.log_partition(sizes, class_of, prior(1)))
        count += 1
    assert count == [1, 3, 12, 60, 358, 2471][n - 1]
    np.testing.assert_allclose(total, 1.0, rtol=1e-12)


def test_known_class_without_components_adds_nothing_to_the_joint() -> None:
    groups = [np.random.default_rng(k).normal(size=(3, 2)) for k in range(3)]
    found = [niw.log_joint(moments_of(groups), np.array(class_of), prior(2)) for class_of in ([0, 1, 1], [0, 2, 2])]
    assert np.isfinite(found).all()
    assert found[0] == pytest.approx(found[1]), "an empty class between two others changed the joint"


def test_partition_prior_of_igmm_sums_to_one_over_components_alone() -> None:
    from oracles import set_partitions

    single, total = prior(1, spread=0.0), 0.0
    for components in set_partitions(list(range(5))):
        sizes = np.array([float(len(c)) for c in components])
        total += np.exp(niw.log_partition(sizes, np.arange(len(sizes)), single))
    np.testing.assert_allclose(total, 1.0, rtol=1e-12)
