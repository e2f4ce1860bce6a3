"""From draws to maps: which classes are the same in two answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibbsite import maps


@given(st.integers(0, 3), st.integers(0, 4), st.integers(0, 1000))
def test_classes_in_another_order_are_found_again(n_known: int, n_new: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    n_classes = n_known + n_new
    if n_classes == 0:
        return
    label = np.append(np.arange(n_classes), generator.integers(0, n_classes, 50))
    reference = 0.9 * np.eye(n_classes)[label] + 0.1 / n_classes
    order = np.append(np.arange(n_known), n_known + generator.permutation(n_new)).astype(int)
    np.testing.assert_array_equal(maps.match_classes(reference[:, order], reference, n_known), order)


def test_a_class_without_partner_stands_for_none() -> None:
    reference = np.eye(2)[[0, 0, 0, 1, 1]]
    # Discovered class 1 of the reference falls apart; the larger part is it.
    parts = np.eye(3)[[0, 0, 0, 1, 2]] + np.array([0.0, 0.0, 0.1])
    assert maps.match_classes(parts, reference, 1).tolist() == [0, -1, 1]


@pytest.mark.parametrize(("n_shared", "partner"), [(3, 1), (1, -1)])
def test_a_pair_shares_a_tenth_of_the_smaller_class(n_shared: int, partner: int) -> None:
    reference = np.eye(2)[np.repeat([0, 1], [100, 20])]
    # The reference's second class has 20 rows; the other answer's second class a few of them, and 30 of the first.
    other = np.eye(2)[np.repeat([0, 1, 0], [70, 30 + n_shared, 20 - n_shared])]
    assert maps.match_classes(other, reference, 0).tolist() == [0, partner]


def test_a_known_class_stands_for_itself_whatever_its_pixels() -> None:
    reference = np.eye(3)[[0, 0, 1, 1, 2]]
    swapped = np.eye(3)[[1, 1, 0, 0, 2]]
    assert maps.match_classes(swapped, reference, 2).tolist() == [0, 1, 2]
    assert maps.match_classes(swapped, reference[:, :2], 2).tolist() == [0, 1, -1]


def answer(*label: int) -> np.ndarray:
    """Certain probabilities: 30 pixels of each label."""
    return np.eye(max(label) + 1)[np.repeat(label, 30)]


def test_what_most_answers_tell_apart_is_told_apart_though_the_first_does_not() -> None:
    two_in_one = answer(0, 1, 1, 2)
    apart = [answer(0, 1, 2, 3), answer(0, 3, 1, 2), answer(0, 2, 3, 1)]
    found, mean = maps.common_classes([two_in_one, *apart], 1)
    winner = mean.argmax(1)[::30]
    assert winner[0] == 0
    assert len(set(winner.tolist())) == 4
    np.testing.assert_allclose(mean.sum(1), 1.0)
    # Each class of each answer stands for the one its pixels are in.
    for probability, stands_for in zip(apart, found[1:], strict=True):
        np.testing.assert_array_equal(stands_for[probability.argmax(1)[::30]], winner)


def test_what_one_answer_alone_tells_apart_is_not() -> None:
    _, mean = maps.common_classes([answer(0, 1, 2), *[answer(0, 1, 1)] * 3], 0)
    assert mean.argmax(1)[::30].tolist() == [0, 1, 1]


def test_common_classes_of_one_answer_are_its_own() -> None:
    found, mean = maps.common_classes([answer(0, 1, 2)], 1)
    assert [one.tolist() for one in found] == [[0, 1, 2]]
    np.testing.assert_array_equal(mean, answer(0, 1, 2))
