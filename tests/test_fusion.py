"""Components that are better one than two."""

import numpy as np

from gibbsite import fusion, gibbs, niw, statistics
from gibbsite.state import State
from gibbsite.tiles import Tile, tally
from handmade_chains import STEP, clusters, prior, rules, state_of

N_PIXELS = 900
GIVEN = prior(3, spread=0.0)


def cut_up(n_known: int = 0) -> tuple[Tile, np.ndarray, State]:
    """Four clear clusters, each cut into five components at random."""
    pixels, label = clusters(N_PIXELS, 3, 4)
    part = 5 * label + np.random.default_rng(2).integers(0, 5, N_PIXELS)
    chosen = rules(N_PIXELS, is_single=True, birth_block=100, n_known=n_known)
    return pixels, label, state_of(pixels, part, np.arange(20), chosen, GIVEN)


def log_joint(state: State) -> float:
    return niw.log_joint(statistics.moments(state.statistics, STEP), state.class_of, state.prior)


def test_parts_of_a_cluster_become_one_and_clusters_stay_apart() -> None:
    _, label, state = cut_up()
    fused = fusion.fuse(state, rules(N_PIXELS, is_single=True, birth_block=100))
    assert sorted(fused.statistics.n) == sorted(np.bincount(label))
    np.testing.assert_array_equal(fused.statistics.total.sum(0), state.statistics.total.sum(0))
    np.testing.assert_array_equal(fused.statistics.outer.sum(0), state.statistics.outer.sum(0))
    assert log_joint(fused) > log_joint(state)


def test_no_pair_that_is_left_would_be_better_as_one() -> None:
    _, _, state = cut_up()
    chosen = rules(N_PIXELS, is_single=True, birth_block=100)
    fused = fusion.fuse(state, chosen)
    assert log_joint(fusion.fuse(fused, chosen)) == log_joint(fused)
    for first in range(4):
        for second in range(first + 1, 4):
            proposal = fusion.Proposal(first, second, np.zeros(0), 0.0)
            one = fusion.tidy(fusion.splits.merge(fused, proposal), 0)
            assert log_joint(one) < log_joint(fused)


def test_known_classes_stay_two_and_keep_their_ids() -> None:
    _, _, state = cut_up(n_known=2)
    fused = fusion.fuse(state, rules(N_PIXELS, is_single=True, birth_block=100, n_known=2))
    # Components 0 and 1 are parts of one cluster, but known classes.
    assert len(fused.class_of) == 5
    assert fused.class_id[:2].tolist() == [0, 1]


def test_components_are_grouped_by_their_first_and_a_class_of_many_may_be_looked_at_as_one_gaussian() -> None:
    _, _, state = cut_up()
    moments = statistics.moments(state.statistics, STEP)
    for given in (GIVEN, prior(3)):
        first = fusion.group(moments, given, np.zeros(20, bool))
        np.testing.assert_array_equal(first, 5 * (np.arange(20) // 5))


def test_a_chain_goes_on_from_a_fused_state() -> None:
    pixels, _, state = cut_up()
    chosen = rules(N_PIXELS, is_single=True, birth_block=100)
    fused = fusion.fuse(state, chosen)
    for _ in range(3):
        fused, _ = gibbs.sweep(fused, chosen, lambda task, *_: tally(pixels, task), pixels.part)
        assert fused.statistics.n.sum() == N_PIXELS


def test_tight_clusters_that_lie_apart_stay_apart_though_a_vague_prior_would_have_them_one() -> None:
    # Far narrower than the prior expects, so that the joint gains by every pair that becomes one.
    mean = np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.0, 0.3, 0.0], [0.05, 0.0, 0.0]])
    scatter = np.repeat(0.02**2 * 60 * np.eye(3)[None], 4, 0)
    nobody = np.zeros(4, bool)
    many = statistics.Moments(np.full(4, 60.0), mean, scatter)
    np.testing.assert_array_equal(fusion.group(many, GIVEN, nobody), [0, 1, 2, 0])
    everywhere = fusion.group(many, GIVEN, nobody, np.ones((4, 4), bool))
    assert len(np.unique(everywhere)) < 3, "else this test shows nothing"
    few = statistics.Moments(np.full(4, 14.0), mean, scatter * 14 / 60)
    assert len(np.unique(fusion.group(few, GIVEN, nobody))) < 3, "fewer than five pixels per feature are no cluster"
