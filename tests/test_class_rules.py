"""The rules by which components choose a class, against their formulas pixel by pixel."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_t

from gibbsite import class_rules, class_splits, kernels, niw
from gibbsite.class_rules import Rule, Seats
from gibbsite.moves import ENOUGH_PINS, pinned_class
from gibbsite.statistics import Moments, Statistics
from gibbsite.tiles import Tile
from handmade_chains import STEP, prior, rules, state_of


def moments_of(groups: list[np.ndarray]) -> Moments:
    mean = np.array([group.mean(0) for group in groups])
    scatter = np.array([(group - group.mean(0)).T @ (group - group.mean(0)) for group in groups])
    return Moments(np.array([float(len(group)) for group in groups]), mean, scatter)


def groups(sizes: tuple[int, ...] = (9, 6, 14, 4), n_features: int = 2) -> list[np.ndarray]:
    generator = np.random.default_rng(1)
    return [generator.normal(size=(n, n_features)) + 2.0 * generator.normal(size=n_features) for n in sizes]


def seated(name: str, moments: Moments, given: niw.Prior, weight: float = 2.0, is_estimated: bool = False) -> Seats:
    """Components 1 and 2 in class 0, component 3 in class 1; class 2 is empty and component 0 stands alone."""
    return class_rules.seat(Rule(name, weight, is_estimated), moments, given, np.array([-1, 0, 0, 1]), 2)


def fits(seats: Seats, n_classes: int = 3) -> np.ndarray:
    """What component 0 makes of the classes."""
    return np.array([seats.log_fit(0, k) for k in range(n_classes)])


def test_predictive_is_exact_for_one_pixel_and_a_bound_for_more() -> None:
    given = prior(2)
    pixels = groups()
    whole = fits(seated("predictive", moments_of(pixels), given))
    alone = fits(seated("predictive", moments_of([pixels[0][:1], *pixels[1:]]), given))
    sums = niw.component_sums(moments_of(pixels), given)
    for k, members in enumerate(([1, 2], [3], [])):
        known = niw.posterior(niw.class_sums(sums[members], np.zeros(len(members), int), 1), given)
        each = [float(niw.log_predictive(x, known, given.spread)[0]) for x in pixels[0]]
        np.testing.assert_allclose(alone[k], each[0])
        assert sum(each) - 8.0 < whole[k] <= sum(each) + 1e-9


def test_evidence_is_the_change_of_the_class_evidence() -> None:
    given, moments = prior(2), moments_of(groups())
    sums = niw.component_sums(moments, given)

    def log_evidence(members: list[int]) -> float:
        return float(niw.log_evidence(niw.class_sums(sums[members], np.zeros(len(members), int), 1), given)[0])

    expected = [
        log_evidence([0, 1, 2]) - log_evidence([1, 2]),
        log_evidence([0, 3]) - log_evidence([3]),
        log_evidence([0]),
    ]
    # The component's own shrinkage is the same in every class and left out.
    shrinkage = 0.5 * 2 * sums.shrink[0]
    np.testing.assert_allclose(fits(seated("evidence", moments, given)) + shrinkage, expected)


def test_reach_is_a_student_t_as_wide_as_the_class_has_shown() -> None:
    given, pixels, weight = prior(2), groups(), 3.0
    moments = moments_of([pixels[0][:1], *pixels[1:]])
    found = fits(seated("reach", moments, given, weight))
    free = given.degrees + 20 - 1
    within = (given.scale + moments.scatter[1] + moments.scatter[2]) / free
    both = np.concatenate(pixels[1:3])
    between = np.cov(np.repeat(moments.mean[1:3], (6, 14), 0).T, bias=True)
    n_effective = 20**2 / (6**2 + 14**2)
    shape = within + (weight * given.spread * within + n_effective * between) / (weight + n_effective)
    np.testing.assert_allclose(found[0], multivariate_t(both.mean(0), shape, free).logpdf(pixels[0][0]))


@pytest.mark.parametrize("is_estimated", [False, True])
def test_a_new_class_lies_where_components_do_unless_the_prior_knows(is_estimated: bool) -> None:
    given, pixels, weight = prior(2), groups(), 3.0
    moments = moments_of([pixels[0][:1], *pixels[1:]])
    found = fits(seated("reach", moments, given, weight, is_estimated))[2]
    free = given.degrees - 1
    place, n_effective = given.scale / free / given.kappa0, 25**2 / (1 + 6**2 + 14**2 + 4**2)
    shown = np.cov(np.repeat(moments.mean, (1, 6, 14, 4), 0).T, bias=True)
    if not is_estimated:
        place = (weight * place + n_effective * shown) / (weight + n_effective)
    shape = given.scale / free * (1.0 + given.spread) + place
    np.testing.assert_allclose(found, multivariate_t(given.mean, shape, free).logpdf(pixels[0][0]))


@pytest.mark.parametrize("name", ["evidence", "predictive", "reach"])
def test_a_component_that_came_and_went_leaves_no_trace(name: str) -> None:
    given, moments = prior(2), moments_of(groups())
    rule = seated(name, moments, given)
    before = fits(rule)
    for class_index in (0, 2):
        rule.change(0, class_index, +1.0)
        rule.change(0, class_index, -1.0)
    np.testing.assert_allclose(fits(rule), before, rtol=1e-9)


def test_weight_makes_reach_forget_what_the_class_has_shown() -> None:
    given, moments = prior(2), moments_of(groups())
    far = [fits(seated("reach", moments, given, weight))[0] for weight in (0.0, 2.0, 1e6)]
    assert len(set(np.round(far, 6))) == 3
    # With all weight on Σ_k/κ1, the means of the components no longer matter, but where their middle is.
    closer = 0.5 * (moments.mean + moments.mean.mean(0))
    both = moments.mean[1:3] * moments.n[1:3, None]
    closer[1:3] = 0.5 * (moments.mean[1:3] + both.sum(0) / moments.n[1:3].sum())
    closer[0] = moments.mean[0]
    np.testing.assert_allclose(fits(seated("reach", replace(moments, mean=closer), given, 1e12))[0], far[2], rtol=1e-4)


def counted(n: list[int], pins: list[list[int]], votes: list[list[int]]) -> Statistics:
    sizes = np.array(n)
    nothing = np.zeros((len(n), 1), np.int64)
    return Statistics(sizes, nothing, nothing[:, :, None], np.array(pins), np.array(votes))


def test_labels_trusted_without_limit_hold_every_component_they_sit_in() -> None:
    sums = counted([100, 50, 1000], [[0, 1], [0, 0], [1, 0]], [[20, 3], [1, 9], [2, 0]])
    np.testing.assert_array_equal(pinned_class(sums, rules(1150, n_known=2)), [1, -1, 0])


def test_most_votes_name_a_component_but_strays_do_not() -> None:
    votes = [[20, 3], [1, 9], [2, 0], [0, 0], [0, 1]]
    # Class 0 has 22 votes in 1100 pixels: 20 would be expected for the third component, which has 2.
    assert ENOUGH_PINS * 22 / 1100 * 1000 > 2
    sums = counted([100, 50, 1000, 30, 10], [[0, 0]] * 5, votes)
    np.testing.assert_array_equal(pinned_class(sums, rules(1190, n_known=2, trust=4.0)), [0, 1, -1, -1, 1])


def test_votes_come_before_those_that_sit_in_a_component() -> None:
    # Those of class 1 have left the second component, which is of class 0 now, and still fit it best.
    sums = counted([100, 60, 100, 10], [[20, 0], [9, 0], [0, 25], [2, 0]], [[20, 0], [9, 10], [0, 15], [0, 0]])
    found = pinned_class(sums, rules(270, n_known=2, trust=4.0))
    np.testing.assert_array_equal(found, [0, 1, 1, 0], err_msg="without votes those that sit there name a component")


def test_a_class_about_to_be_lost_keeps_the_components_its_pixels_sit_in() -> None:
    pins, votes = [[40, 0], [0, 10]], [[20, 7], [20, 3]]
    sums = counted([200, 100], pins, votes)
    np.testing.assert_array_equal(pinned_class(sums, rules(300, n_known=2, trust=4.0)), [0, 1])
    safe = counted([200, 100, 20], [*pins, [0, 9]], [*votes, [0, 12]])
    found = pinned_class(safe, rules(320, n_known=2, trust=4.0))
    np.testing.assert_array_equal(found, [0, 0, 1], err_msg="most votes of class 1 are for its third component")


def test_without_known_classes_nothing_is_pinned() -> None:
    nobody = np.zeros((2, 0), np.int64)
    sums = replace(counted([3, 4], [[0], [0]], [[0], [0]]), n_pinning=nobody, n_votes=nobody)
    np.testing.assert_array_equal(pinned_class(sums, rules(7)), [-1, -1])


def far_apart(n: int) -> Moments:
    """Two groups of pixels far from each other, and a third one like the first."""
    generator = np.random.default_rng(2)
    return moments_of([centre + 0.1 * generator.normal(size=(n, 2)) for centre in (-8.0, 8.0, -8.0)])


def test_an_unlikely_side_has_a_finite_probability_however_many_pixels_speak_against_it() -> None:
    given, moments = prior(2), far_apart(2000)
    seats = class_rules.seat(Rule("evidence"), moments, given, np.array([0, 1, -1]), 2)
    against = seats.log_fit(2, 0) - seats.log_fit(2, 1)
    assert against > 710.0, "e^710 is too large for a number"
    log_q = kernels.part_seats(np.array([2]), np.array([0, 1, 1]), np.zeros(1), seats.given, seats.guests, seats.tables)
    np.testing.assert_allclose(log_q, -against)


def test_a_class_that_splits_does_not_take_the_place_of_a_known_class_without_components() -> None:
    cluster, generator = np.repeat([0, 1], 30), np.random.default_rng(4)
    # So unlike in shape that the evidence parts them at once.
    values = np.where(cluster[:, None] == 0, 0.02, 2.0) * generator.normal(size=(60, 2))
    pixels = Tile(0, np.round(values / STEP).astype(np.int16), np.full(60, -1, np.int16))
    chosen = rules(60, n_known=2, split_every=1)
    state = state_of(pixels, cluster, np.zeros(2, np.int64), chosen, prior(2))
    state = replace(state, class_id=np.arange(2), next_class_id=2)
    for sweep in range(1, 20):
        state, tries = class_splits.split_and_merge(replace(state, sweep=sweep), chosen)
        if tries.split_accepted:
            break
    assert tries.split_accepted
    json.dumps(state.next_class_id)  # as a chain is written
    assert len(state.class_id) == 3
    assert set(state.class_of.tolist()) == {0, 2}


def test_a_class_that_splits_off_has_an_id_that_none_had_before() -> None:
    label, generator = np.repeat(np.arange(6), 20), np.random.default_rng(7)
    values = generator.normal(size=(120, 2)) + 0.5 * generator.normal(size=(6, 2))[label]
    pixels = Tile(0, np.round(values / STEP).astype(np.int16), np.full(120, -1, np.int16))
    chosen = rules(120, split_every=1)
    state = state_of(pixels, label, np.array([0, 0, 0, 1, 1, 2]), chosen, prior(2))
    n_both = 0
    for sweep in range(1, 120):
        after, tries = class_splits.split_and_merge(replace(state, sweep=sweep), chosen)
        new = set(after.class_id.tolist()) - set(state.class_id.tolist())
        assert all(one >= state.next_class_id for one in new)
        assert len(after.class_id) == len(state.class_id) + tries.split_accepted - tries.merge_accepted
        n_both += tries.split_accepted > 0 and tries.merge_accepted > 0
        assert tries.split_accepted == 0 or new or tries.merge_accepted
        state = after
    assert n_both
