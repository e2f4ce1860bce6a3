"""Every exact move alone, against the enumerated posterior.

Moves that reach every partition run as a chain. The others start anew from independent draws of the truth, each under
its own seed: an exact move leaves them independent draws of the truth, so the comparison needs no effective size.
Comparisons and their false-alarm rate: `exact_posterior.py`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import oracles
from exact_posterior import Reader, Truth, assert_follows, enumerate_classes, enumerate_partitions
from gibbsite import class_splits, gibbs, kernels, moves, streams, tiles
from gibbsite.components import Components
from gibbsite.niw import Prior
from gibbsite.state import Rules, State
from gibbsite.streams import Purpose
from gibbsite.tiles import Anchors, Answer, Pass, Tile
from handmade_chains import STEP, Partition, prior, rules, state_from, tile

Move = Callable[[State, Rules, Tile], State]

LABELS = np.array([-1, 1, 0, -1, 0, -1], np.int16)
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "free": ({}, {}, False),
    "labelled": ({"n_known": 2}, {"spread": 0.7, "gamma": 1.5}, True),
    "one component per class": ({"is_single": True}, {"spread": 0.0}, False),
    "one component per class, labelled": ({"is_single": True, "n_known": 2}, {"spread": 0.0}, True),
}


def case(setting: str, birth_block: int, n_features: int = 2, n_pixels: int = 5) -> tuple[Tile, Rules, Prior]:
    change_rules, change_prior, has_labels = SETTINGS[setting]
    pixels = tile(n_pixels, n_features, seed=8)
    pixels = replace(pixels, known=LABELS[:n_pixels]) if has_labels else pixels
    return pixels, rules(n_pixels, birth_block=birth_block, **change_rules), prior(n_features, **change_prior)


# --- the moves, each without the others


def sweep(state: State, chosen: Rules, pixels: Tile) -> State:
    return gibbs.sweep(state, chosen, lambda task, *_: tiles.tally(pixels, task), pixels.part)[0]


def keep_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No component changes its class."""
    monkeypatch.setattr(moves, "reassign_classes", lambda state, _: state)


def keep_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pixel is in the block: nothing is born, nothing dies."""
    monkeypatch.setattr(moves, "choose_block", lambda *_: (0, 0))


def change_classes(state: State, chosen: Rules, _: Tile) -> State:
    """Components draw their class anew; pixels stay."""
    return moves.reassign_classes(replace(state, sweep=state.sweep + 1), chosen)


def scan(state: State, chosen: Rules, pixels: Tile) -> State:
    """The block's pixels move; all others stay."""
    label = Reader(pixels).labels(state)

    def stay(task: Pass, *_: object) -> Answer:
        place = np.cumsum(state.is_explicit) - 1
        n_explicit = int(state.is_explicit.sum())
        outside = [pixels.part(0, task.skip[0]), pixels.part(task.skip[1], len(label))]
        first, last = (tiles.answer(part, place[label[part.first : part.stop]], n_explicit, task) for part in outside)
        return first + last

    return gibbs.sweep(state, chosen, stay, pixels.part)[0]


# --- the scan and the pass, choice by choice


def block(seed: int) -> tuple:
    """What the scan takes: a block of pixels in drawn and loose components of drawn and loose classes, two known."""
    generator = np.random.default_rng(seed)
    n_features, n_classes = generator.integers(1, 4), generator.integers(2, 5)
    is_single, n_pixels = bool(generator.integers(2)), int(generator.integers(1, 8))
    given = prior(n_features, spread=0.0 if is_single else generator.uniform(0.1, 4.0))
    n_each = generator.integers(0, 2 if is_single else 3, n_classes)
    class_of = np.repeat(np.arange(n_classes), n_each)
    whiten = np.triu(generator.normal(size=(n_classes, n_features, n_features)), 1)
    whiten += np.exp(0.3 * generator.normal(size=(n_classes, n_features, 1))) * np.eye(n_features)
    weight = generator.dirichlet(np.ones(len(class_of) + 1))
    whitened_mean = (0.0 if is_single else 1.0) * generator.normal(size=(len(class_of), n_features))
    explicit = (
        *(class_of, np.log(weight[:-1]), whitened_mean),
        *(generator.normal(size=(n_classes, n_features)), whiten),
        np.log(np.diagonal(whiten, axis1=1, axis2=2)).sum(1),
    )
    # Every class has a component: those without a drawn one have a loose one.
    loose = np.append(np.flatnonzero(n_each == 0), [] if is_single else generator.integers(0, n_classes, 2)).astype(int)
    places = np.append(np.arange(len(class_of)), len(class_of) + np.arange(len(loose)))
    n_pixels = max(n_pixels, len(loose))
    label = np.append(places[len(class_of) :], generator.choice(places, n_pixels - len(loose)))
    class_of_pixel = np.append(class_of, loose)[label]
    is_labelled = (class_of_pixel < 2) & (generator.random(n_pixels) < 0.4)
    order = generator.permutation(n_pixels)
    return (
        generator.normal(size=(n_pixels, n_features)),
        (np.where(is_labelled, class_of_pixel, -1).astype(np.int16)[order], generator.choice([1.0, 4.0, np.inf])),
        generator.random(n_pixels),
        label[order],
        explicit,
        np.append(loose, np.full(n_pixels, -1)),
        (float(np.log(weight[-1])), given.alpha, given.gamma, is_single),
        (given.mean, given.scale, given.kappa0, given.spread, given.degrees),
    )


@hypothesis.given(st.integers(0, 2**32))
@hypothesis.settings(max_examples=300)
def test_the_scan_chooses_as_the_one_that_computes_everything_anew(seed: int) -> None:
    arguments = block(seed)
    label, loose_class = kernels.scan_block(*arguments)
    expected_label, expected_class = oracles.scan_block(*arguments)
    np.testing.assert_array_equal(label, expected_label)
    used = np.unique(label[label >= len(arguments[4][0])]) - len(arguments[4][0])
    np.testing.assert_array_equal(loose_class[used], expected_class[used])


def test_no_pixel_joins_a_component_whose_anchor_comes_after_it() -> None:
    pixels, chosen, given = case("free", 1)
    truth, n_late = enumerate_partitions(pixels, given), 0
    for number, partition in enumerate(truth.draw(300, 2)):
        fresh = replace(chosen, seed=number)
        task = gibbs.plan_pass(replace(state_from(partition, pixels, fresh, given), sweep=1), fresh)
        if task.anchors is None or len(task.anchors.rank) == 0:
            continue
        own = tiles.no_anchors(5)
        kernels.find_anchors(np.arange(5), 0, task.order_key, (0, 0), own.order, own.rank)
        for part in (pixels.part(0, task.skip[0]), pixels.part(task.skip[1], 5)):
            label = tiles.draw_labels(part, task)
            assert (own.order[part.first : part.stop] >= task.anchors.order[label]).all()
            n_late += int((own.order[part.first : part.stop, None] < task.anchors.order).any(1).sum())
    assert n_late > 100, "hardly any pixel had a component to be kept from"


def test_a_pixel_kept_from_components_draws_among_the_others_by_their_odds() -> None:
    # 40,000 copies of one pixel; the largest of 4 standardised errors exceeds 4.5 once in 40,000 runs.
    n, n_components = 40_000, 4
    pixels = Tile(0, np.tile(np.array([[300, -200]], np.int16), (n, 1)), np.full(n, -1, np.int16))
    components = Components(
        class_of=np.array([0, 0, 1, 1]),
        log_weight=np.log([0.3, 0.3, 0.2, 0.2]),
        mean=np.array([[0.2, 0.1], [0.5, -0.5], [0.1, -0.3], [0.6, 0.2]]),
        centre=np.array([[0.3, 0.0], [0.2, 0.2]]),
        whiten=np.array([[[1.5, 0.3], [0, 0.8]], [[1.1, -0.4], [0, 1.2]]]),
        log_tail=-np.inf,
    )
    # One component is open to all pixels, one to half of them, one to a quarter, one to none.
    order = np.array([0, 2**63, 2**64 - 2, 3 * 2**62], np.uint64)
    keys = [streams.pixel_key(1, 1, purpose) for purpose in (Purpose.INDICATORS, Purpose.ORDER)]
    task = Pass(components, keys[0], STEP, order_key=keys[1], anchors=Anchors(order, np.full(n_components, -1)))
    own = tiles.no_anchors(n)
    kernels.find_anchors(np.arange(n), 0, keys[1], (0, 0), own.order, own.rank)
    is_open = own.order[:, None] >= order
    odds = oracles.component_odds(pixels.feature[0] * STEP, components) * is_open
    p = odds / odds.sum(1, keepdims=True)
    count = np.bincount(tiles.draw_labels(pixels, task), minlength=n_components)
    error = np.sqrt((p * (1 - p)).sum(0))
    assert count[2] == 0
    assert (np.abs(count - p.sum(0))[error > 0] / error[error > 0]).max() < 4.5


# --- chains of one move


def run(state: State, chosen: Rules, pixels: Tile, move: Move, n: int) -> list[Partition]:
    reader, visited = Reader(pixels), []
    for _ in range(n):
        state = move(state, chosen, pixels)
        visited.append(reader.read(state))
    return visited


def check_chain(pixels: Tile, chosen: Rules, given: Prior, n: int) -> None:
    truth = enumerate_partitions(pixels, given, chosen.is_single)
    first = state_from(truth.draw(1, 0)[0], pixels, chosen, given)
    assert_follows(truth, run(first, chosen, pixels, sweep, n))


@pytest.mark.parametrize("setting", ["free", "labelled"])
def test_the_scan_of_a_block_of_all_pixels_alone(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_classes(monkeypatch)
    check_chain(*case(setting, 5), 2500)


@pytest.mark.statistical
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("n_features", [1, 2])
def test_the_scan_of_a_block_of_all_pixels_alone_for_long(
    setting: str, n_features: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_classes(monkeypatch)
    check_chain(*case(setting, 5, n_features), 8000)


COMPONENTS = [[0, 5, 9], [1], [2, 7], [3, 10, 11, 12], [4, 13], [6, 8]]
CLASS_LABELS = np.full(14, -1, np.int16)
CLASS_LABELS[[5, 7]] = 1, 0
CLASS_CASES = [(1, {}, False), (2, {"gamma": 2.5, "spread": 0.6}, True), (3, {"alpha": 3.0}, False), (3, {}, True)]


@pytest.mark.statistical
@pytest.mark.parametrize(("n_features", "change_prior", "has_labels"), CLASS_CASES)
def test_the_class_step_alone_follows_all_classes_of_fixed_components(
    n_features: int, change_prior: dict[str, Any], has_labels: bool
) -> None:
    pixels, chosen, given, truth = class_case(n_features, change_prior, has_labels)
    first = state_from(truth.draw(1, 0)[0], pixels, chosen, given)
    assert_follows(truth, run(first, chosen, pixels, change_classes, 15_000))


def class_case(n_features: int, change_prior: dict[str, Any], has_labels: bool) -> tuple[Tile, Rules, Prior, Truth]:
    pixels = tile(14, n_features, seed=2, scale=1.8)
    pixels = replace(pixels, known=CLASS_LABELS) if has_labels else pixels
    given, chosen = prior(n_features, **change_prior), rules(14, n_known=2 if has_labels else 0)
    truth = enumerate_classes(pixels, COMPONENTS, given)
    assert len(truth.partition) == (151 if has_labels else 203)
    return pixels, chosen, given, truth


# --- one move from independent draws of the truth


def check_step(pixels: Tile, chosen: Rules, given: Prior, truth: Truth, move: Move, n: int) -> None:
    reader, before, after = Reader(pixels), truth.draw(n, 1), []
    for number, first in enumerate(before):
        fresh = replace(chosen, seed=1000 + number)
        after.append(reader.read(move(state_from(first, pixels, fresh, given), fresh, pixels)))
    assert_changes(before, after)
    assert_follows(truth, after, is_independent=True)


def check_partitions(setting: str, birth_block: int, move: Move, n: int) -> None:
    pixels, chosen, given = case(setting, birth_block)
    check_step(pixels, chosen, given, enumerate_partitions(pixels, given, chosen.is_single), move, n)


def assert_changes(before: list[Partition], after: list[Partition]) -> None:
    n_changed = sum(one != other for one, other in zip(before, after, strict=True))
    assert n_changed > len(before) / 20, f"{n_changed} of {len(before)} draws changed: the move does nothing"


@pytest.mark.parametrize(("n_features", "change_prior", "has_labels"), CLASS_CASES)
def test_the_class_step_alone_keeps_the_truth(n_features: int, change_prior: dict[str, Any], has_labels: bool) -> None:
    check_step(*class_case(n_features, change_prior, has_labels), change_classes, 1000)


def part_classes(state: State, chosen: Rules, _: Tile) -> State:
    """Classes split and merge; components stay."""
    return class_splits.split_and_merge(replace(state, sweep=state.sweep + 1), chosen)[0]


@pytest.mark.parametrize(("n_features", "change_prior", "has_labels"), CLASS_CASES)
def test_splits_and_merges_of_classes_alone_keep_the_truth(
    n_features: int, change_prior: dict[str, Any], has_labels: bool
) -> None:
    check_step(*class_case(n_features, change_prior, has_labels), part_classes, 2000)


@pytest.mark.statistical
@pytest.mark.parametrize(("n_features", "change_prior", "has_labels"), CLASS_CASES)
def test_splits_and_merges_of_classes_alone_reach_all_classes(
    n_features: int, change_prior: dict[str, Any], has_labels: bool
) -> None:
    pixels, chosen, given, truth = class_case(n_features, change_prior, has_labels)
    first = state_from(truth.draw(1, 0)[0], pixels, chosen, given)
    assert_follows(truth, run(first, chosen, pixels, part_classes, 20_000))


@pytest.mark.parametrize("setting", ["free", "labelled"])
def test_the_parallel_pass_alone_keeps_the_truth(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_classes(monkeypatch)
    keep_block(monkeypatch)
    check_partitions(setting, 5, sweep, 2000)


@pytest.mark.parametrize("setting", ["free", "labelled"])
def test_the_scan_of_a_part_alone_keeps_the_truth(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_classes(monkeypatch)
    check_partitions(setting, 3, scan, 2000)


@pytest.mark.statistical
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("birth_block", [1, 2])
def test_the_parallel_pass_and_a_small_block_keep_the_truth_for_long(
    setting: str, birth_block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_classes(monkeypatch)
    check_partitions(setting, birth_block, sweep, 8000)


@pytest.mark.statistical
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_parallel_pass_alone_keeps_the_truth_for_long(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_classes(monkeypatch)
    keep_block(monkeypatch)
    check_partitions(setting, 5, sweep, 10_000)


@pytest.mark.statistical
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("birth_block", [2, 3])
def test_the_scan_of_a_part_alone_keeps_the_truth_for_long(
    setting: str, birth_block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_classes(monkeypatch)
    check_partitions(setting, birth_block, scan, 10_000)


@pytest.mark.statistical
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("birth_block", [1, 4])
def test_a_whole_sweep_keeps_the_truth_of_six_pixels(setting: str, birth_block: int) -> None:
    pixels, chosen, given = case(setting, birth_block, n_pixels=6)
    truth = enumerate_partitions(pixels, given, chosen.is_single)
    check_step(pixels, replace(chosen, split_every=1), given, truth, sweep, 10_000)
