"""The scikit-learn front."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import estimator_checks_generator

from gibbsite import NonExhaustiveClassifier
from handmade_chains import STEP, clusters

QUICK = NonExhaustiveClassifier(sweeps=5, settings={"pre_sweeps": 3})
NOT_FOR_US = {
    "check_classifiers_classes": "labels are whole numbers here, because -1 means unlabelled",
    "check_classifiers_train": "it wants as many classes as labels, and we may discover more",
    "check_array_api_input": "needs an environment variable",
}


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_pass() -> None:
    for estimator, check in estimator_checks_generator(QUICK):
        if check.func.__name__ not in NOT_FOR_US:
            check(estimator)


def table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    pixels, cluster = clusters(900, 3, 4, seed=5)
    label = np.where((np.arange(900) % 4 == 0) & (cluster < 2), 10 * cluster + 3, -1)
    return 1e6 * pixels.feature * STEP + 5.0, cluster, label


def test_known_classes_keep_their_ids_and_new_ones_come_above() -> None:
    x, cluster, label = table()
    fitted = NonExhaustiveClassifier(sweeps=30, random_state=3).fit(x, label)
    assert fitted.classes_[:3].tolist() == [3, 13, 14]
    assert fitted.is_known_.tolist() == [True, True] + [False] * (len(fitted.classes_) - 2)
    assert (fitted.labels_[cluster == 0] == 3).mean() > 0.95
    assert (fitted.labels_[cluster == 1] == 13).mean() > 0.95
    assert (fitted.labels_[cluster > 1] > 13).mean() > 0.95
    probability = fitted.predict_proba(x)
    np.testing.assert_allclose(probability.sum(1), 1.0)
    np.testing.assert_array_equal(fitted.classes_[probability.argmax(1)], fitted.predict(x))
    assert [len(trace) for trace in fitted.trace_] == [30] * 4
    assert fitted.log_joint_ == max(max(trace[15:]) for trace in fitted.trace_)


def test_labelled_rows_of_igmm_keep_to_their_class_by_default() -> None:
    generator = np.random.default_rng(4)
    x = np.concatenate([generator.normal(size=(300, 2)) + centre for centre in ([0, 0], [1.5, 0], [8, 8])])
    label = np.full(900, -1)
    label[:100], label[300:400] = 0, 1
    fitted = NonExhaustiveClassifier("igmm", sweeps=40, chains=1, random_state=2).fit(x, label)
    # By the better of two Gaussians 1.5 apart 77 % are told apart.
    assert np.mean(fitted.labels_[100:300] == 0) > 0.6
    assert np.mean(fitted.labels_[400:600] == 1) > 0.6


def test_parameters_may_be_what_scikit_learn_and_numpy_hand_over() -> None:
    x, label = np.random.default_rng(5).normal(size=(60, 2)), np.full(60, -1)
    table = pd.DataFrame(x, columns=["a", "b"])
    plain = NonExhaustiveClassifier(sweeps=4, chains=1, random_state=7).fit(x, label).labels_
    given = NonExhaustiveClassifier(sweeps=np.int64(4), chains=np.int64(1), n_jobs=None, random_state=np.int64(7))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(given.fit(table, label).labels_, plain)
    drawn = [
        NonExhaustiveClassifier(sweeps=4, chains=1, random_state=np.random.RandomState(3)).fit(x, label).labels_
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*drawn)


def test_a_column_that_is_constant_but_for_rounding_decides_nothing() -> None:
    x = np.random.default_rng(6).normal(size=(60, 2)) + 6.0 * (np.arange(60) % 2)[:, None]
    fitted = NonExhaustiveClassifier(sweeps=10, chains=1).fit(np.c_[x, np.full(60, 0.1)])
    np.testing.assert_array_equal(fitted.predict(np.c_[x, np.full(60, 0.1 + 1e-9)]), fitted.labels_)
    with pytest.raises(ValueError, match="column 0 is too large"):
        NonExhaustiveClassifier().fit(x * 1e200)


def test_result_depends_on_the_random_state_alone() -> None:
    x, _, label = table()
    runs = [
        NonExhaustiveClassifier(sweeps=6, chains=2, random_state=seed, n_jobs=jobs).fit(x, label)
        for seed, jobs in ((1, 1), (1, 2), (2, 1))
    ]
    assert runs[0].predict_proba(x).tobytes() == runs[1].predict_proba(x).tobytes()
    assert runs[0].log_joint_ != runs[2].log_joint_


@pytest.mark.parametrize("model", ["igmm", "i2gmm", "ai2gmm"])
def test_without_labels_all_classes_are_discovered(model: str) -> None:
    x, cluster, _ = table()
    fitted = NonExhaustiveClassifier(model, sweeps=20).fit(x)
    assert not fitted.is_known_.any()
    for k in range(4):
        counts = np.bincount(fitted.labels_[cluster == k])
        assert counts.max() / counts.sum() > 0.5


DEGENERATE = {
    "a constant feature": lambda x, y: (np.column_stack([x, np.ones(len(x))]), y),
    "duplicated rows": lambda x, y: (np.repeat(x[:60], 10, 0), np.repeat(y[:60], 10)),
    "fewer rows than features": lambda x, y: (np.tile(x[:20], (1, 10)), y[:20]),
    "one class": lambda x, y: (x, np.where(y == 3, 3, -1)),
    "every row labelled": lambda x, y: (x, np.where(y < 0, 7, y)),
    "a class of one row": lambda x, y: (x, np.where(np.arange(len(y)) == 5, 50, y)),
    "all rows the same": lambda x, y: (np.ones_like(x[:30]), y[:30]),
    "two rows": lambda x, y: (x[:2], y[:2]),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_tables_are_survived(case: str) -> None:
    x, _, label = table()
    rows, labels = DEGENERATE[case](x, label)
    fitted = NonExhaustiveClassifier(sweeps=4, settings={"pre_sweeps": 2}).fit(rows, labels)
    assert np.isfinite(fitted.predict_proba(rows)).all()
    assert np.isfinite(fitted.log_joint_)


def test_bad_values_and_labels_are_refused() -> None:
    x, _, label = table()
    spoilt = x.copy()
    spoilt[7, 2] = np.nan
    with pytest.raises(ValueError, match="NaN in row 7, column 2; fill"):
        QUICK.fit(spoilt, label)
    with pytest.raises(ValueError, match="whole numbers"):
        QUICK.fit(x, np.where(label < 0, -2, label))
    with pytest.raises(ValueError, match="inconsistent"):
        QUICK.fit(x, label[:-1])
    with pytest.raises(ValueError, match=f"nan in row {np.argmin(label)}; give -1"):
        QUICK.fit(x, np.where(label < 0, np.nan, label))
    with pytest.raises(ValueError, match=f"found label {2**63 - 1}, expected at most {2**62}"):
        QUICK.fit(x, np.where(label < 0, -1, 2**63 - 1))
    with pytest.raises(NotFittedError):
        NonExhaustiveClassifier().predict(x)


def test_where_two_classes_are_as_likely_predict_takes_the_one_that_labels_have() -> None:
    # Rows on a coarse grid: half of the draws are sure of one class, half of another.
    generator = np.random.default_rng(3)
    rows = np.round((np.repeat(10.0 * np.eye(4), 100, 0) + generator.normal(size=(400, 4))) / 3)
    for seed in range(4):
        found = NonExhaustiveClassifier(sweeps=20, chains=4, averaged_sweeps=4, random_state=seed).fit(rows)
        top = np.sort(found.predict_proba(rows), axis=1)[:, -2:]
        np.testing.assert_array_equal(found.predict(rows), found.labels_, err_msg=f"{(top[:, 0] == top[:, 1]).sum()}")


@pytest.mark.parametrize(
    ("parameter", "value", "found"),
    [
        ("n_jobs", "a", "n_jobs: found 'a', expected a number of threads"),
        ("averaged_sweeps", -1, "averaged_sweeps: found -1, expected a whole number from 0 on"),
        ("sweeps", 2.5, "sweeps: found 2.5, expected a whole number from 1 on"),
        ("chains", "two", "chains: found 'two', expected"),
        ("settings", [1], r"settings: found \[1\], expected a mapping"),
    ],
)
def test_bad_parameters_are_refused_with_what_was_expected(parameter: str, value: object, found: str) -> None:
    x, _, label = table()
    with pytest.raises(ValueError, match=found):
        NonExhaustiveClassifier(**{parameter: value}).fit(x, label)


def test_more_known_classes_than_can_be_numbered_are_refused() -> None:
    n, twice = 2**15, np.arange(2**16) // 2
    with pytest.raises(ValueError, match=f"found {n} known classes, expected {n - 1} at most"):
        NonExhaustiveClassifier().fit(twice[:, None].astype(np.float64), twice)


def test_probabilities_are_averaged_over_the_last_sweeps_of_all_chains() -> None:
    x, cluster, label = table()
    fitted = [
        NonExhaustiveClassifier(sweeps=20, chains=chains, averaged_sweeps=n, random_state=3).fit(x, label)
        for chains, n in ((1, 1), (1, 8), (1, 100), (3, 8))
    ]
    # The best sweep stands before them; burn-in is never averaged.
    assert [len(one._consensus.draws) for one in fitted] == [2, 9, 12, 27]
    assert all(one.classes_.tolist() == fitted[0].classes_.tolist() for one in fitted)
    for one in fitted:
        probability = one.predict_proba(x)
        np.testing.assert_allclose(probability.sum(1), 1.0)
        assert (one.labels_[cluster == 0] == 3).mean() > 0.95
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(fitted[0].predict_proba(x), fitted[1].predict_proba(x))


def test_classes_are_those_that_some_row_has_by_size_with_their_components() -> None:
    x, _, label = table()
    fitted = NonExhaustiveClassifier(sweeps=20, chains=3, random_state=3).fit(x, label)
    size = np.array([(fitted.labels_ == k).sum() for k in fitted.classes_])
    assert (size[2:] > 0).all()
    assert (np.diff(size[2:]) <= 0).all()
    assert len(fitted.n_components_) == len(fitted.classes_)
    assert (fitted.n_components_ >= 1).all()
    far = fitted.predict_proba(np.full((1, 3), 1e9))
    np.testing.assert_allclose(far.sum(), 1.0)


def test_a_rare_class_is_kept_though_none_of_its_rows_is_among_those_spread_over_the_table(monkeypatch) -> None:
    generator = np.random.default_rng(6)
    x = generator.normal(size=(3000, 3)) + 6.0 * np.eye(3)[generator.integers(0, 3, 3000)]
    rare = 3 * np.arange(10, 40) + 1
    x[rare] = 12.0 + 0.3 * generator.normal(size=(30, 3))
    monkeypatch.setattr("gibbsite.consensus.MATCHED_ROWS", 1000)
    fitted = NonExhaustiveClassifier(sweeps=12, chains=2, averaged_sweeps=4, random_state=2).fit(x)
    assert len(set(fitted.labels_[rare].tolist())) == 1
    assert (fitted.labels_ == fitted.labels_[rare[0]]).sum() == 30


def test_a_class_so_far_out_that_all_others_fall_together_is_told() -> None:
    generator = np.random.default_rng(5)
    x = generator.normal(size=(600, 3)) + np.repeat([[0.0], [8.0]], 300, axis=0)
    x[:30, 1] = 1e4 + generator.normal(size=30)
    with pytest.warns(UserWarning, match="column 1: values far out stretch its scale"):
        NonExhaustiveClassifier(sweeps=2, chains=1).fit(x)
    # What is nearly always 0, and a few outliers, are nothing to warn of: warnings are errors here.
    x[:, 1] = np.arange(600) == 3
    x[8, 2], x[9, 2] = 100.0, 1e7
    NonExhaustiveClassifier(sweeps=2, chains=1).fit(x)
