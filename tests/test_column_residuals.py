"""Columns that others nearly tell: residuals in their place, and classes found all the same."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import adjusted_rand_score

from gibbsite import NonExhaustiveClassifier
from gibbsite.column_residuals import find_axes, project


def standard(table: np.ndarray) -> np.ndarray:
    return (table - table.mean(0)) / np.where(table.std(0) > 0, table.std(0), 1.0)


def test_columns_that_say_enough_of_their_own_stay_as_they_are() -> None:
    generator = np.random.default_rng(1)
    table = generator.normal(size=(500, 4))
    table[:, 3] += 4.0 * table[:, 0]
    assert np.corrcoef(table[:, 0], table[:, 3])[0, 1] > 0.95
    assert find_axes(standard(table)) is None


def test_copies_sums_and_constants_are_left_out() -> None:
    generator = np.random.default_rng(2)
    table = generator.normal(size=(300, 3)) * [1.0, 5.0, 0.2] + 7.0
    wide = np.column_stack([np.full(300, 2.0), table, 3.0 - table[:, 1], table.sum(1)])
    axes = find_axes(standard(wide))
    assert axes is not None
    assert axes.shape == (6, 3)
    assert np.linalg.matrix_rank(standard(wide) @ axes) == 3
    assert (np.sort(axes, axis=0)[:-1] == 0.0).all(), "a column that is kept is changed"


def test_what_a_near_copy_says_of_its_own_becomes_a_column_of_variance_1() -> None:
    generator = np.random.default_rng(3)
    table = generator.normal(size=(4000, 3))
    bit = generator.choice([-1.0, 1.0], 4000)
    wide = standard(np.column_stack([table, table[:, 0] - 0.5 * table[:, 1] + 0.03 * bit]))
    axes = find_axes(wide)
    assert axes is not None
    found = wide @ axes
    np.testing.assert_allclose(np.corrcoef(found.T), np.eye(4), atol=0.1)
    np.testing.assert_allclose(found.std(0), 1.0, atol=1e-9)
    assert abs(np.corrcoef(found[:, 3], bit)[0, 1]) > 0.99


def test_rounding_and_a_few_wrong_rows_are_left_out() -> None:
    generator = np.random.default_rng(6)
    parts = np.round(1.5 * generator.normal(size=(1000, 5)) + 20.0, 1)
    total = np.round(parts.sum(1))
    wrong = np.where(np.arange(1000) < 8, 20.0, parts[:, 0])
    for told in (total, wrong):
        axes = find_axes(standard(np.column_stack([parts, told])))
        assert axes is not None
        assert axes.shape == (6, 5)


def test_what_rounding_leaves_of_a_constant_displaces_nothing() -> None:
    column = np.random.default_rng(7).normal(size=(500, 2))
    axes = find_axes(np.column_stack([1e-4 * column[:, 0], standard(column)]))
    assert axes is not None
    assert_array_equal(axes, np.eye(3)[:, 1:])


def test_axes_do_not_depend_on_the_order_of_rows_or_of_memory() -> None:
    generator = np.random.default_rng(8)
    rows = standard(generator.normal(size=(400, 6)) @ generator.normal(size=(6, 12)))
    axes = find_axes(rows)
    for other in (np.asfortranarray(rows), rows[::-1], rows[generator.permutation(400)]):
        np.testing.assert_allclose(find_axes(other), axes, atol=1e-9)
    assert axes is not None
    whole = project(rows, axes)
    assert_array_equal(project(np.asfortranarray(rows), axes), whole)
    assert_array_equal(np.concatenate([project(rows[i : i + 1], axes) for i in range(400)]), whole)


def test_values_far_out_do_not_touch_the_other_columns_of_their_row() -> None:
    generator = np.random.default_rng(9)
    rows = generator.normal(size=(200, 3))
    rows = np.column_stack([rows, rows[:, 0]])
    found = NonExhaustiveClassifier(sweeps=5, chains=1).fit(1e-3 * rows)
    far = 1e-3 * rows[:1]
    far[0, 1] = 1.7e308
    near, beyond = found._quantise(1e-3 * rows[:1]), found._quantise(far)
    assert near.shape == (1, 3)
    assert (near[0] != beyond[0]).sum() == 1
    assert beyond.max() == 32767


def test_few_rows_do_not_tell_what_is_told() -> None:
    assert find_axes(np.random.default_rng(4).normal(size=(30, 16))) is None


@pytest.mark.parametrize("model", ["ai2gmm", "i2gmm", "igmm"])
@pytest.mark.parametrize("kind", ["copies", "combinations", "differences"])
def test_classes_are_found_whatever_columns_tell_of_each_other(model: str, kind: str) -> None:
    generator = np.random.default_rng(5)
    n_classes = 2 if kind == "differences" else 4
    truth = np.arange(1000) % n_classes
    rows = 8.0 * np.vstack([np.zeros(3), np.eye(3)])[truth] + generator.normal(size=(1000, 3))
    if kind == "differences":
        # Two columns that are alike but for a tenth of their standard deviation, and that is what tells the classes.
        rows = generator.normal(size=(1000, 3))
        rows = np.column_stack([rows, rows[:, 0] + 0.1 * truth + 0.02 * generator.normal(size=1000)])
    elif kind == "copies":
        rows = np.hstack([rows, 2.0 * rows, 1.0 - rows])
    else:
        rows = rows @ generator.normal(size=(3, 12))
    label = np.where((truth < n_classes // 2) & (np.arange(1000) // n_classes % 5 == 0), truth, -1)
    found = NonExhaustiveClassifier(model, random_state=1).fit(rows, label)
    assert adjusted_rand_score(truth, found.labels_) > 0.9
    assert_array_equal(found.predict(rows), found.labels_)
    assert_array_equal(found.predict(rows[7:8]), found.labels_[7:8])
