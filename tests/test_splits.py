"""Splits and merges of components: alone and with all other moves against the enumerated posterior, and their sums.

Comparisons and their false-alarm rate: `exact_posterior.py`.
"""

from dataclasses import replace

import numpy as np
import pytest

from exact_posterior import Reader, assert_follows, enumerate_partitions
from gibbsite import gibbs, niw, splits, statistics, tiles
from gibbsite.splits import Proposal, Tries
from gibbsite.state import Rules, State, tidy
from gibbsite.tiles import Tile
from handmade_chains import STEP, clusters, prior, rules, state_from, state_of, tile

LABELS = np.array([-1, 1, 0, -1, 0], np.int16)


def split_only(state: State, chosen: Rules, pixels: Tile, reader: Reader) -> tuple[State, Tries]:
    """One round of proposals; no pixel chooses anew."""
    label = reader.labels(state)
    state = replace(state, sweep=state.sweep + 1)
    task = gibbs.plan_pass(state, chosen)
    nobody = (pixels.part(0, 0), np.zeros(0, np.int64))
    state, tries = splits.split_and_merge(state, chosen, task, lambda again: again.part(pixels, label), nobody)
    return tidy(state, chosen.n_known), tries


@pytest.mark.parametrize("has_labels", [False, True])
@pytest.mark.parametrize("n_features", [1, 2])
def test_splits_and_merges_leave_the_posterior_as_it_is(n_features: int, has_labels: bool) -> None:
    pixels = tile(5, n_features, seed=8)
    chosen, given = rules(5, n_known=2 if has_labels else 0), prior(n_features, alpha=0.8)
    if has_labels:
        pixels = replace(pixels, known=LABELS)
    truth = enumerate_partitions(pixels, given)
    reader, visited, accepted = Reader(pixels), [], 0
    for number, partition in enumerate(truth.draw(2000, seed=1)):
        own = replace(chosen, seed=1000 + number)
        state, tries = split_only(state_from(partition, pixels, own, given), own, pixels, reader)
        visited.append(reader.read(state))
        accepted += tries.split_accepted + tries.merge_accepted
    assert accepted > 200
    assert_follows(truth, visited, is_independent=True)


@pytest.mark.statistical
@pytest.mark.parametrize("birth_block", [1, 2, 5])
@pytest.mark.parametrize("n_features", [1, 2])
def test_two_sweeps_with_splits_keep_the_posterior(n_features: int, birth_block: int) -> None:
    pixels, given = tile(5, n_features, seed=4), prior(n_features)
    chosen = rules(5, birth_block=birth_block, split_every=1)
    truth = enumerate_partitions(pixels, given)
    reader, visited = Reader(pixels), []
    for number, partition in enumerate(truth.draw(4000, seed=2)):
        own = replace(chosen, seed=1000 + number)
        state = state_from(partition, pixels, own, given)
        for _ in range(2):
            state, _ = gibbs.sweep(state, own, lambda task, *_: tiles.tally(pixels, task), pixels.part)
        visited.append(reader.read(state))
    assert_follows(truth, visited, is_independent=True)


def proposal(state: State, pair: list[int]) -> Proposal:
    seen = splits.view(state, rules(1))
    direction, threshold = splits.launch(seen, np.array(pair), [0.9, 0.8, 0.5])
    return Proposal(pair[0], pair[1] if len(pair) > 1 else -1, direction, threshold)


def example() -> tuple[Tile, np.ndarray, Rules, State]:
    pixels, label = clusters(700, 3, 4)
    pixels = replace(pixels, known=np.where(np.arange(700) % 9 == 0, 0, -1).astype(np.int16))
    chosen = rules(700, birth_block=90, n_known=1)
    return pixels, label, chosen, state_of(pixels, label, np.array([0, 0, 0, 1]), chosen, prior(3))


def test_a_split_then_its_merge_give_the_sums_back() -> None:
    pixels, label, chosen, state = example()
    state = replace(state, statistics=replace(state.statistics, n_votes=np.array([[3], [31], [0], [2]])))
    one = proposal(state, [1])
    parts = splits.replay(state, chosen, gibbs.plan_pass(state, chosen), [one]).part(pixels, label)
    task = gibbs.plan_pass(state, chosen)
    halves = splits.split(state, one, 0, parts)
    votes, share = halves.statistics.n_votes[[1, 4], 0], halves.statistics.n[[1, 4]] / state.statistics.n[1]
    np.testing.assert_allclose(votes, 31 * share, atol=1.0, err_msg="votes are not shared by size")
    assert 0 < halves.statistics.n[-1] < state.statistics.n[1]
    back = tidy(splits.merge(halves, Proposal(1, 4, one.direction, one.threshold)), 1)
    for name in ("n", "total", "outer", "n_pinning", "n_votes"):
        np.testing.assert_array_equal(getattr(back.statistics, name), getattr(state.statistics, name), err_msg=name)
    np.testing.assert_array_equal(back.class_of, state.class_of)
    again = tiles.answer(pixels, label, 4, task)
    np.testing.assert_array_equal(back.anchors.rank, again.anchors.rank)
    np.testing.assert_array_equal(back.block_label, again.label - 1)


def test_the_ratio_is_the_change_of_the_joint_and_of_the_proposals() -> None:
    pixels, label, chosen, state = example()
    one = proposal(state, [1])
    parts = splits.replay(state, chosen, gibbs.plan_pass(state, chosen), [one]).part(pixels, label)
    halves = splits.split(state, one, 0, parts)
    given = state.prior

    def log_joint(of: State) -> float:
        return niw.log_joint(statistics.moments(of.statistics, STEP), of.class_of, given)

    members = np.array([0, 1, 2, 4])
    backward = splits.log_pair(splits.view(halves, chosen), members, np.array([1, 4]))
    expected = log_joint(halves) - log_joint(state) + backward - (np.log(1 / 3) - 12.0)
    np.testing.assert_allclose(splits.log_ratio(state, halves, chosen, (1, 4), -12.0), expected, rtol=1e-9)


def test_sides_do_not_depend_on_tiles() -> None:
    pixels, label, chosen, state = example()
    again = splits.replay(state, chosen, gibbs.plan_pass(state, chosen), [proposal(state, [1]), proposal(state, [3])])
    whole = again.part(pixels, label)
    cut = [pixels.part(a, b) for a, b in ((0, 13), (13, 400), (400, 700))]
    pieces = [again.part(part, label[part.first : part.stop]) for part in cut]
    total = pieces[2] + pieces[0] + pieces[1]
    np.testing.assert_array_equal(total.statistics.outer, whole.statistics.outer)
    np.testing.assert_array_equal(total.log_q, whole.log_q)
    np.testing.assert_array_equal(total.anchors.rank, whole.anchors.rank)
    np.testing.assert_array_equal(total.side, whole.side)


def test_two_clusters_in_one_component_are_split_within_a_few_sweeps() -> None:
    pixels, label = clusters(2000, 8, 2, seed=3)
    chosen = rules(2000, birth_block=64, split_every=1)
    state = state_of(pixels, np.zeros(2000, int), np.array([0]), chosen, prior(8))
    accepted = 0
    for _ in range(30):
        state, info = gibbs.sweep(state, chosen, lambda task, *_: tiles.tally(pixels, task), pixels.part)
        accepted += info.split_accepted
    assert accepted > 0
    np.testing.assert_array_equal(np.sort(state.statistics.n)[-2:], np.sort(np.bincount(label)))
