"""What the chains of a table say together."""

import numpy as np
import pytest

from gibbsite import NonExhaustiveClassifier, maps
from gibbsite.components import Components
from gibbsite.consensus import Consensus
from handmade_chains import STEP, clusters, prior

PLAIN = prior(2, mean=np.zeros(2), scale=np.eye(2), kappa0=0.1)


def draw(*centres: tuple[float, float]) -> Components:
    """Classes of one round component each."""
    mean = np.array(centres)
    return Components(
        class_of=np.arange(len(mean)),
        log_weight=np.full(len(mean), -np.log(len(mean))),
        mean=mean,
        centre=mean,
        whiten=np.repeat(np.eye(2)[None], len(mean), 0),
        log_tail=-np.inf,
    )


def rows(*values: tuple[float, float]) -> np.ndarray:
    return np.round(np.array(values) / STEP).astype(np.int16)


def test_two_classes_of_a_draw_may_stand_for_one_and_what_stands_for_none_is_left_out() -> None:
    drawn = [draw((0.0, 0.0), (1.0, 0.0), (0.0, 3.0)), draw((0.5, 0.0), (0.0, 3.0), (9.0, 9.0))]
    found = Consensus(drawn, [np.array([0, 0, 1]), np.array([0, 1, -1])], 2)
    some = rows((0.2, 0.1), (0.4, 1.6), (-0.3, 2.5))
    single = [maps.class_probabilities(some, [one], STEP) for one in drawn]
    total = np.c_[single[0][:, :2].sum(1) + single[1][:, 0], single[0][:, 2] + single[1][:, 1]]
    np.testing.assert_allclose(found.probability(some), total / total.sum(1, keepdims=True))
    # The first class has two components in one draw and one in the other: 1.5, rounded to the even number.
    assert found.n_components().tolist() == [2, 1]


def test_classes_move_together_with_what_stands_for_them() -> None:
    drawn = [draw((0.0, 0.0), (4.0, 0.0), (0.0, 4.0))]
    found = Consensus(drawn, [np.array([2, 0, 1])], 3)
    some = rows((1.0, 1.0), (3.0, 0.5))
    before, after = found.probability(some), found.moved(np.array([1, -1, 0])).probability(some)
    np.testing.assert_allclose(after, before[:, [2, 0]] / before[:, [2, 0]].sum(1, keepdims=True))


def sure(winner: np.ndarray, probability: float) -> np.ndarray:
    """Probabilities (n_rows, n_classes) of rows that are of their winner with this one, and else of any."""
    n_classes = winner.max() + 1
    return probability * np.eye(n_classes)[winner] + (1.0 - probability) / n_classes


def test_halves_of_a_cloud_become_one_class_and_clusters_stay_apart() -> None:
    pixels, cluster = clusters(900, 2, 3)
    half = 2 * cluster + (
        pixels.feature[:, 0] > np.array([np.median(pixels.feature[cluster == k, 0]) for k in range(3)])[cluster]
    )
    found = Consensus([draw(*[(0.0, 0.0)] * 6)], [np.arange(6)], 6)
    assert found.joined(pixels.feature, sure(half, 0.9), 0, PLAIN).stands_for[0].tolist() == [0, 0, 1, 1, 2, 2]


def test_known_classes_are_never_joined() -> None:
    cloud = np.random.default_rng(3).normal(size=(600, 2))
    feature, quarter = np.round(cloud / STEP).astype(np.int16), (cloud[:, 0] > 0) + 2 * (cloud[:, 1] > 0)
    found = Consensus([draw(*[(0.0, 0.0)] * 4)], [np.arange(4)], 4)
    joined = [found.joined(feature, sure(quarter, 0.9), n, PLAIN).stands_for[0].tolist() for n in range(5)]
    assert joined == [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert found.joined(feature, sure(quarter, 1.0), 0, PLAIN).n_classes == 4, "no row is in doubt between them"


def test_classes_that_do_not_touch_stay_two_though_one_gaussian_would_fit_them_better() -> None:
    turn = np.repeat(np.arange(8), 60)
    angle = 2 * np.pi * turn / 8
    ring = np.stack([np.cos(angle), np.sin(angle)], 1) * 3 + np.random.default_rng(1).normal(size=(480, 2)) * 0.1
    feature, found = np.round(ring / STEP).astype(np.int16), Consensus([draw(*[(0.0, 0.0)] * 2)], [np.arange(2)], 2)
    assert found.joined(feature, sure(turn % 2, 1.0), 0, PLAIN).n_classes == 2
    assert found.joined(feature, sure(turn % 2, 0.9), 0, PLAIN).n_classes == 1


@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("model", ["i2gmm", "ai2gmm"])
def test_one_cloud_is_one_class(model: str, n_features: int) -> None:
    x = np.random.default_rng(n_features).normal(size=(800, n_features))
    fitted = NonExhaustiveClassifier(model, sweeps=40, chains=2, random_state=1).fit(x)
    assert fitted.classes_.tolist() == [0]
    np.testing.assert_allclose(fitted.predict_proba(x), 1.0)
    # Two of them are two, whatever was made of their parts.
    x[::2] += 6.0
    fitted = NonExhaustiveClassifier(model, sweeps=40, chains=2, random_state=1).fit(x)
    assert fitted.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(fitted.labels_, fitted.predict(x))
