"""The scale of a table's columns: standard deviations, but for values that stray far from all others."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from gibbsite import NonExhaustiveClassifier, column_scale


def test_a_column_without_strays_is_scaled_by_its_standard_deviation() -> None:
    generator = np.random.default_rng(1)
    # The heavy tails of the second are continuous, and the third has a class of 2 % far off: none of it strays.
    table = np.column_stack(
        [
            generator.normal(3.0, 2.0, 5000),
            generator.exponential(size=5000),
            np.where(np.arange(5000) < 100, 500.0, 0.0),
        ]
    )
    table[:, 2] += generator.normal(size=5000)
    scale = column_scale.measure(table)
    assert not scale.places
    np.testing.assert_array_equal(scale.apply(table), (table - table.mean(0)) / table.std(0))


@pytest.mark.parametrize("far", [-9999.0, 1e9])
def test_strays_do_not_stretch_the_scale_and_stay_outside(far: float) -> None:
    generator = np.random.default_rng(2)
    column = generator.normal(5.0, 2.0, 1000)
    column[[7, 90]] = far, 2.0 * far
    scale = column_scale.measure(column[:, None])
    # Clipped to the range of the others, two strays of 1,000 rows still add 2 % to the standard deviation.
    assert list(scale.places) == [0]
    assert abs(scale.deviation[0] - 2.0) < 0.2
    assert abs(scale.mean[0] - 5.0) < 0.2
    scaled = scale.apply(column[:, None])[:, 0]
    assert np.abs(np.delete(scaled, [7, 90])).max() < 5.0
    outside = np.sign(far) * np.array([scaled[7], scaled[90]])
    np.testing.assert_allclose(np.diff(outside), column_scale.GAP)
    np.testing.assert_allclose(outside[0] - (np.sign(far) * np.delete(scaled, [7, 90])).max(), column_scale.GAP)
    # A value that was not there is beyond both, or on the other side, as far off as it is, up to the end.
    more = np.sign(far) * scale.apply(np.array([[3.0 * far], [-far]]))[:, 0]
    assert more[0] > outside[1] + 32.0
    assert more[1] < -32.0


def test_groups_of_strays_stay_as_wide_as_they_are_and_apart_and_no_order_changes() -> None:
    generator = np.random.default_rng(3)
    column = np.concatenate(
        [generator.normal(size=2000), 60.0 + generator.normal(size=9), 90.0 + generator.normal(size=9)]
    )
    scaled = column_scale.measure(column[:, None]).apply(column[:, None])[:, 0]
    assert (np.diff(scaled[np.argsort(column)]) > 0.0).all()
    for group in (slice(0, 2000), slice(2000, 2009), slice(2009, 2018)):
        np.testing.assert_allclose(np.ptp(scaled[group]), np.ptp(column[group]), rtol=0.1)
    assert scaled[2000:2009].min() - scaled[:2000].max() == pytest.approx(column_scale.GAP)
    assert scaled[2009:].min() - scaled[2000:2009].max() == pytest.approx(column_scale.GAP)


@pytest.mark.parametrize("turn", [1.0, -1.0])
def test_the_common_range_ends_at_a_gap_wider_than_itself(turn: float) -> None:
    rows = np.linspace(0.0, 10.0, 400)
    near, gap, beyond = (np.append(rows, value) for value in ([20.0], [20.1], [20.0, 39.0, 60.0]))
    as_given = [turn * near, turn * gap, turn * beyond]
    ends = [max(turn * end for end in column_scale.common_range(column)) for column in as_given]
    # Each value that is reached widens the range: steps of 10, 19 and 21 are no wider than 10, 20 and 39.
    assert ends == [20.0, 10.0, 60.0]


def test_few_rows_and_constant_columns_have_no_strays() -> None:
    assert not column_scale.measure(np.append(np.arange(9.0), 1e6)[:, None]).places
    nearly = np.zeros((500, 1))
    nearly[3] = 1.0
    assert not column_scale.measure(nearly).places
    np.testing.assert_array_equal(column_scale.measure(np.full((50, 2), 0.1)).deviation, 1.0)


@pytest.mark.parametrize("model", ["ai2gmm", "i2gmm", "igmm"])
def test_classes_are_found_beside_a_row_of_fill_values(model: str) -> None:
    for seed in (1, 2, 3):
        generator = np.random.default_rng(seed)
        truth = np.repeat(np.arange(6), 200)
        centre = 10.0 * np.vstack([np.zeros(5), np.eye(5)])
        rows = centre[truth] + generator.normal(size=(1200, 5))
        rows[7] = -9999.0
        label = np.where((truth < 3) & (generator.random(1200) < 0.2), truth, -1)
        label[7] = -1
        found = NonExhaustiveClassifier(model, sweeps=40, chains=2, random_state=seed).fit(rows, label)
        others = np.arange(1200) != 7
        assert adjusted_rand_score(truth[others], found.labels_[others]) > 0.98
        np.testing.assert_array_equal(found.predict(rows), found.labels_)


@pytest.mark.parametrize("model", ["ai2gmm", "i2gmm", "igmm"])
@pytest.mark.parametrize("places", [(60.0, 90.0), (1000.0, 2000.0)])
def test_two_rare_classes_far_off_are_two(model: str, places: tuple[float, float]) -> None:
    generator = np.random.default_rng(4)
    truth = np.repeat(np.arange(6), [500, 500, 500, 500, 10, 10])
    centre = np.vstack([np.zeros(3), 10.0 * np.eye(3), [places[0], 0.0, 0.0], [places[1], 0.0, 0.0]])
    rows = centre[truth] + generator.normal(size=(len(truth), 3))
    found = NonExhaustiveClassifier(model, sweeps=40, chains=2, random_state=1).fit(rows).labels_
    assert adjusted_rand_score(truth[2000:], found[2000:]) == 1.0
    assert adjusted_rand_score(truth, found) > 0.98
