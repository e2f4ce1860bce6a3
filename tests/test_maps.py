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
