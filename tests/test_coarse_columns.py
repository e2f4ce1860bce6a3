"""Columns of few values: spread over their step where chains see them, and as they are everywhere else."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from gibbsite import NonExhaustiveClassifier, coarse_columns


def test_values_stay_within_half_a_step_and_fill_it() -> None:
    generator = np.random.default_rng(2)
    table = np.column_stack([generator.integers(0, 4, 4000) * 2.5, generator.random(4000) < 0.1])
    moved = coarse_columns.spread(table, 5) - table
    for column, step in enumerate((2.5, 1.0)):
        # Of 4000 even draws the extremes are within 1 % of the ends, but for odds of 1e-17.
        assert -0.5 * step <= moved[:, column].min() < -0.49 * step
        assert 0.49 * step < moved[:, column].max() < 0.5 * step
    np.testing.assert_array_equal(coarse_columns.spread(table, 5) - table, moved)
    assert not np.array_equal(coarse_columns.spread(table, 6) - table, moved)


def test_columns_that_are_not_coarse_stay_as_they_are() -> None:
    generator = np.random.default_rng(3)
    many = generator.integers(0, 1000, 500) / 10
    late = np.append(np.zeros(300), np.arange(200.0))
    table = np.column_stack([generator.normal(size=500), np.full(500, 7.0), many, late])
    assert coarse_columns.spread(table, 1) is table
    few_rows = np.arange(8.0).reshape(4, 2)
    assert coarse_columns.spread(few_rows, 1) is few_rows


@pytest.mark.parametrize("model", ["ai2gmm", "i2gmm"])
@pytest.mark.parametrize("kind", ["a bit that tells nothing", "rounded to two standard deviations"])
@pytest.mark.parametrize("seed", [1, 2])
def test_classes_are_found_whatever_coarse_columns_there_are(model: str, kind: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, 5, 1000)
    rows = 12.0 * np.vstack([np.zeros(4), np.eye(4)])[truth] + generator.normal(size=(1000, 4))
    rows = np.round(rows / 2) if kind[0] == "r" else np.column_stack([rows, generator.random(1000) < 0.3])
    label = np.where((truth < 2) & (generator.random(1000) < 0.15), truth, -1)
    found = NonExhaustiveClassifier(model, sweeps=40, chains=2, random_state=seed).fit(rows, label)
    assert adjusted_rand_score(truth, found.labels_) > 0.98
    np.testing.assert_array_equal(found.predict(rows), found.labels_)
