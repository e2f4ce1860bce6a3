"""The order of rows: one that says something is undone, one that says nothing is left alone."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from gibbsite import NonExhaustiveClassifier
from gibbsite.row_order import sampling_order


def blobs(sizes: list[int], n_features: int, apart: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows sorted by class, and their classes: round clusters about points of a sphere."""
    generator = np.random.default_rng(seed)
    centre = generator.normal(size=(len(sizes), n_features))
    centre *= apart / np.linalg.norm(centre, axis=1, keepdims=True)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    return centre[truth] + generator.normal(size=(len(truth), n_features)), truth


@pytest.mark.parametrize("n_rows", [2, 40, 1000])
def test_rows_in_no_order_stay_as_they_are(n_rows: int) -> None:
    # 300 tables of 4 columns: at 6 standard deviations a false alarm has odds of about one in a million.
    for seed in range(100):
        generator = np.random.default_rng(seed)
        bits = generator.random((n_rows, 1)) < 0.1
        drawn = generator.standard_normal((n_rows, 2)), generator.standard_cauchy((n_rows, 1)).clip(-9, 9), bits
        feature = np.hstack([*drawn[:2], drawn[2] * 3.0])
        np.testing.assert_array_equal(sampling_order((1000 * feature).astype(np.int16), seed), np.arange(n_rows))


def test_sorted_rows_are_shuffled_by_the_seed_alone_though_one_column_tells() -> None:
    feature = np.random.default_rng(1).integers(-999, 999, (500, 3)).astype(np.int16)
    feature[:, 1] = np.arange(500) // 50
    order = sampling_order(feature, 7)
    np.testing.assert_array_equal(np.sort(order), np.arange(500))
    assert (np.diff(order) != 1).mean() > 0.9
    np.testing.assert_array_equal(order, sampling_order(feature, 7))
    assert not np.array_equal(order, sampling_order(feature, 8))


def test_constant_columns_have_no_order() -> None:
    np.testing.assert_array_equal(sampling_order(np.ones((100, 2), np.int16), 0), np.arange(100))


@pytest.mark.parametrize("seed", [1, 5, 9])
def test_classes_of_a_sorted_table_are_found_though_each_fills_a_block_of_births(seed: int) -> None:
    # As they come, two of the classes are one in each of these tables.
    truth = np.repeat(np.arange(8), 200)
    centre = 6.0 * np.vstack([np.eye(4), -np.eye(4)])
    rows = centre[truth] + np.random.default_rng(seed).normal(size=(1600, 4))
    label = np.where((truth < 4) & (np.arange(len(truth)) % 10 == 0), truth, -1)
    found = NonExhaustiveClassifier(sweeps=40, chains=2, random_state=seed).fit(rows, label)
    assert adjusted_rand_score(truth, found.labels_) > 0.98
    np.testing.assert_array_equal(found.predict(rows), found.labels_)


@pytest.mark.parametrize("seed", [1, 2])
def test_rare_classes_of_a_large_sorted_table_are_found(seed: int) -> None:
    rows, truth = blobs([60_000, 50_000, 800, 600, 400, 300], 6, 9.0, seed)
    found = NonExhaustiveClassifier(sweeps=15, chains=1, averaged_sweeps=3).fit(rows)
    majority = [np.bincount(found.labels_[truth == k]).argmax() for k in range(6)]
    assert len(set(majority)) == 6, majority
