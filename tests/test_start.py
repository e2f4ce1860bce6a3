"""Where chains begin: how many components there are, and where."""

import numpy as np
import pytest

from gibbsite import start, tiles
from gibbsite.state import State
from gibbsite.tiles import Tile
from handmade_chains import STEP, clusters, prior, rules

N_PIXELS = 1200


def begin(
    n_cells: tuple[int, int],
    n_labelled: int,
    is_single: bool = False,
    of_known: tuple[int, ...] = (0,),
    is_grouped: bool = False,
) -> tuple[State, np.ndarray]:
    """The first state over four clear clusters, and the mean of each; some rows of those of one class have labels."""
    pixels, label = clusters(N_PIXELS, 3, 4)
    known = np.full(N_PIXELS, -1, np.int16)
    for cluster in of_known:
        known[np.flatnonzero(label == cluster)[:n_labelled]] = 0
    pixels = Tile(0, pixels.feature, known)
    given = prior(3, spread=0.0) if is_single else prior(3)
    kind = {"class_rule": "reach", "is_single": is_single, "is_grouped": is_grouped}
    chosen = rules(N_PIXELS, n_known=int(n_labelled > 0), birth_block=200, **kind)
    learnt = None
    if n_labelled:
        learnt = start.learn(Tile(0, pixels.feature[known >= 0], known[known >= 0]), chosen, given, 0, 0.0)
    reads = (lambda task, *_: tiles.tally(pixels, task), pixels.part)
    state = start.first_state(learnt, chosen, given, n_cells, reads)
    return state, np.stack([pixels.feature[label == k].mean(0) for k in range(4)])


def components_per_cluster(state: State, centre: np.ndarray) -> np.ndarray:
    mean = state.statistics.total / state.statistics.n[:, None]
    nearest = ((mean[:, None] - centre) ** 2).sum(-1).argmin(1)
    return np.bincount(nearest, minlength=len(centre))


def test_components_are_denser_where_labels_are() -> None:
    plain = components_per_cluster(*begin((12, 0), 60))
    dense = components_per_cluster(*begin((12, 100), 60))
    assert dense[0] > 2 * plain[0] + 10
    assert abs(dense[1:].sum() - plain[1:].sum()) <= 3, "cells without labels were divided"


@pytest.mark.parametrize("n_more", [0, 5, 30])
def test_no_more_components_are_added_than_allowed(n_more: int) -> None:
    state, _ = begin((12, n_more), 200)
    # One component of the known class comes from the labelled pixels.
    assert len(state.class_of) <= 12 + n_more + 1


def test_without_labels_the_start_has_the_cells_asked_for() -> None:
    state, _ = begin((12, 100), 0)
    assert len(state.class_of) == 12
    assert state.statistics.n.sum() == N_PIXELS


def test_igmm_divides_no_cell_because_each_would_be_a_class() -> None:
    state, _ = begin((12, 100), 60, is_single=True)
    assert len(state.class_of) <= 13


def test_in_igmm_cells_among_labelled_pixels_begin_in_their_class_whatever_its_shape() -> None:
    # One known class of two clusters is no Gaussian: by the joint the second one would be a class of its own.
    state, _ = begin((12, 0), 60, is_single=True, of_known=(0, 1))
    assert len(state.class_of) == 3
    _, label = clusters(N_PIXELS, 3, 4)
    assert abs(state.statistics.n[0] - (label < 2).sum()) <= 5
    assert len(begin((12, 0), 60, is_single=True)[0].class_of) == 4, "clusters without labels are classes of their own"


def test_groups_of_cells_are_the_clusters_and_keep_their_components() -> None:
    state, centre = begin((12, 0), 0, is_grouped=True)
    mean = state.statistics.total / state.statistics.n[:, None]
    nearest = ((mean[:, None] - centre) ** 2).sum(-1).argmin(1)
    assert len(state.class_id) == 4
    assert len(state.class_of) == 12
    assert len(set(zip(state.class_of.tolist(), nearest.tolist(), strict=True))) == 4


def test_grouped_cells_that_labels_do_not_name_begin_as_new_classes_one_for_each_cluster() -> None:
    state, centre = begin((12, 100), 60, is_grouped=True)
    mean = state.statistics.total / state.statistics.n[:, None]
    nearest = ((mean[:, None] - centre) ** 2).sum(-1).argmin(1)
    # Of four clear clusters the first has labels.
    assert len(state.class_id) == 4
    assert (state.class_of[nearest == 0] == 0).all()
    assert len(set(zip(state.class_of.tolist(), nearest.tolist(), strict=True))) == 4


def test_a_grouped_start_in_which_labels_name_every_cell_has_known_classes_alone() -> None:
    state, _ = begin((4, 0), 60, of_known=(0, 1, 2, 3), is_grouped=True)
    assert state.class_id.tolist() == [0]
    assert state.statistics.n.sum() == N_PIXELS


def labelled_with_strays(n_pixels: int, n_strays: int, off: float, n_features: int = 5) -> Tile:
    """Pixels of two known Gaussian classes, the last of each so many standard deviations off."""
    generator = np.random.default_rng(2)
    values = generator.normal(size=(2, n_pixels, n_features)) * np.linspace(0.2, 0.8, n_features)
    values[:, n_pixels - n_strays :, 1] += off * np.linspace(0.2, 0.8, n_features)[1]
    feature = np.round((values + np.array([[[-2.0]], [[3.0]]])) / STEP).astype(np.int16)
    return Tile(0, feature.reshape(-1, n_features), np.repeat(np.array([0, 1], np.int16), n_pixels))


def learn_single(labelled: Tile) -> start.Learnt:
    n_pixels, n_features = labelled.feature.shape
    chosen = rules(n_pixels, n_known=2, is_single=True)
    return start.learn(labelled, chosen, prior(n_features, spread=0.0), 0, 0.0)


def test_in_igmm_pixels_that_a_gaussian_never_has_do_not_pin_and_all_others_do() -> None:
    labelled = labelled_with_strays(300, 2, off=40.0)
    learnt = learn_single(labelled)
    is_stray = np.arange(600) % 300 >= 298
    np.testing.assert_array_equal(learnt.labelled.known < 0, is_stray)
    assert learnt.pins is not None
    np.testing.assert_array_equal(learnt.pins.apply(labelled).known, learnt.labelled.known)
    np.testing.assert_array_equal(learnt.state.statistics.n, [298, 298], err_msg="strays shape the known classes")


def test_in_igmm_no_label_of_gaussian_classes_is_lost() -> None:
    # The share of a Gaussian's pixels so far off is 1e-8; a class drawn from 300 of them lies a little beside.
    learnt = learn_single(labelled_with_strays(300, 0, off=0.0))
    assert (learnt.labelled.known >= 0).all()


@pytest.mark.parametrize("n_pixels", [1, 2, 3])
def test_in_igmm_a_known_class_of_few_pixels_keeps_some(n_pixels: int) -> None:
    learnt = learn_single(labelled_with_strays(n_pixels, n_pixels // 2, off=300.0))
    assert (np.bincount(learnt.labelled.known[learnt.labelled.known >= 0], minlength=2) > 0).all()
