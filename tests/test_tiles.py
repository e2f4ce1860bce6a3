"""A tile's answer: exact sums, the right odds, and the same for any tiling."""

import functools
import operator
import os
import pickle
import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

import oracles
from gibbsite import gibbs, kernels, maps, start, statistics, streams, tiles
from gibbsite.components import Components, draw_components
from gibbsite.errors import GibbsiteError
from gibbsite.tiles import Pass, Tile
from handmade_chains import STEP, clusters, prior, rules, state_of, tile

N_PIXELS = 1500


@pytest.fixture(scope="module")
def scene() -> tuple[Tile, Pass]:
    pixels, label = clusters(N_PIXELS, 4, 5)
    pixels = replace(pixels, known=np.where(np.arange(N_PIXELS) % 7 == 3, label % 2, -1).astype(np.int16))
    chosen = rules(N_PIXELS, n_known=2, birth_block=200, trust=4.0)
    # Labelled pixels must sit in components of their own class.
    component = np.where(pixels.known >= 0, pixels.known, 2 + label)
    state = state_of(pixels, component, np.array([0, 1, 2, 2, 3, 4, 4]), chosen, prior(4))
    return pixels, gibbs.plan_pass(replace(state, sweep=1), chosen)


def equal(a: tiles.Answer, b: tiles.Answer) -> bool:
    pairs = [
        (a.statistics.n, b.statistics.n),
        (a.statistics.total, b.statistics.total),
        (a.statistics.outer, b.statistics.outer),
        (a.statistics.n_pinning, b.statistics.n_pinning),
        (a.statistics.n_votes, b.statistics.n_votes),
        (a.anchors.order, b.anchors.order),
        (a.anchors.rank, b.anchors.rank),
        (a.label, b.label),
    ]
    return all(np.array_equal(x, y) for x, y in pairs)


def test_a_pass_and_its_answer_are_the_same_after_a_journey(scene: tuple[Tile, Pass]) -> None:
    pixels, task = scene
    expected = tiles.tally(pixels, task)
    arrived = pickle.loads(pickle.dumps(task))
    assert equal(tiles.tally(pixels, arrived), expected)
    for answer in (expected, replace(expected, statistics=expected.statistics[:0])):
        arrived = pickle.loads(pickle.dumps(answer))
        assert equal(arrived, answer)
        assert arrived.statistics.outer.flags.c_contiguous


@pytest.mark.parametrize("size", [1, 7, 64, 255, 256, 257, 1000])
def test_answers_add_up_to_the_same_for_any_tile_size(scene: tuple[Tile, Pass], size: int) -> None:
    pixels, task = scene
    parts = [pixels.part(i, min(i + size, N_PIXELS)) for i in range(0, N_PIXELS, size)]
    generator = np.random.default_rng(0)
    answers = [tiles.tally(parts[i], task) for i in generator.permutation(len(parts))]
    assert equal(functools.reduce(operator.add, answers), tiles.tally(pixels, task))


def test_sums_are_those_of_the_naive_loop(scene: tuple[Tile, Pass]) -> None:
    pixels, task = scene
    label = tiles.draw_labels(pixels, replace(task, anchors=None))
    assert_sums_are_naive(pixels, label, len(task.components.class_of))


def assert_sums_are_naive(pixels: Tile, label: np.ndarray, n_components: int) -> None:
    found = tiles.sum_by_label(pixels, label, n_components, 2)
    n, total, outer = oracles.sum_by_label(pixels.feature, label, n_components)
    np.testing.assert_array_equal(found.n, n)
    np.testing.assert_array_equal(found.total, total)
    np.testing.assert_array_equal(found.outer, outer)
    pinning = [[((label == c) & (pixels.known == k)).sum() for k in range(2)] for c in range(n_components)]
    np.testing.assert_array_equal(found.n_pinning, pinning)


@pytest.mark.parametrize("n_features", [1, 2, 7, 8, 9, 15, 16, 23, 40])
def test_sums_are_naive_for_any_number_of_features(n_features: int) -> None:
    # More pixels of one component than are multiplied at a time, components of one pixel, and of none.
    generator = np.random.default_rng(n_features)
    feature = generator.integers(-32767, 32768, (400, n_features)).astype(np.int16)
    known = generator.integers(-1, 2, 400).astype(np.int16)
    label = np.where(generator.random(400) < 0.6, 3, generator.integers(0, 70, 400))
    label[label == 5] = 6
    assert_sums_are_naive(Tile(0, feature, known), label, 75)


def test_sums_are_naive_for_more_pixels_than_are_sorted_at_a_time() -> None:
    pixels = tile(40_000, 3)
    assert_sums_are_naive(pixels, np.random.default_rng(0).integers(0, 4, 40_000), 4)


def test_sums_are_exact_at_the_ends_of_the_fixed_point_range() -> None:
    feature = np.array([[32767, -32767], [-32767, -32767], [1, 0]], np.int16)
    extreme = Tile(0, np.tile(feature, (5000, 1)), np.full(15000, -1, np.int16))
    sums = tiles.sum_by_label(extreme, np.zeros(15000, np.int64), 1, 0)
    assert sums.outer[0, 0, 0] == 5000 * (2 * 32767**2 + 1)
    assert sums.outer[0, 0, 1] == sums.outer[0, 1, 0] == 0
    assert sums.total[0].tolist() == [5000, -2 * 5000 * 32767]


def test_labelled_pixels_stay_in_their_class(scene: tuple[Tile, Pass]) -> None:
    pixels, task = scene
    label = tiles.draw_labels(pixels, replace(task, anchors=None, trust=np.inf))
    is_known = pixels.known >= 0
    np.testing.assert_array_equal(task.components.class_of[label[is_known]], pixels.known[is_known])


def test_anchors_stay_and_come_before_all_that_join(scene: tuple[Tile, Pass]) -> None:
    pixels, task = scene
    anchors = task.anchors
    assert anchors is not None
    first = tiles.no_anchors(len(anchors.rank))
    for part in tiles.outside(pixels, task.skip):
        label = tiles.draw_labels(part, task)
        is_here = (anchors.rank >= part.first) & (anchors.rank < part.stop)
        np.testing.assert_array_equal(label[anchors.rank[is_here] - part.first], np.flatnonzero(is_here))
        kernels.find_anchors(label, part.first, task.order_key, (0, 0), first.order, first.rank)
    np.testing.assert_array_equal(first.order, anchors.order, "a pixel joined a component before its anchor")
    np.testing.assert_array_equal(first.rank, anchors.rank)


KEY = streams.pixel_key(1, 1, streams.Purpose.INDICATORS)
ORDER_KEY = streams.pixel_key(1, 1, streams.Purpose.ORDER)


def random_components(n_features: int, n_classes: int, n_components: int, width: float = 1.0) -> Components:
    """Components of lopsided classes, about `width` wide and a few times as far from each other."""
    generator = np.random.default_rng(n_features)
    root = np.triu(generator.normal(size=(n_classes, n_features, n_features)) * 0.3, 1)
    whiten = (root + np.eye(n_features) * generator.uniform(0.5, 2.0, (n_classes, 1, n_features))) / width
    centre = generator.normal(size=(n_classes, n_features))
    class_of = np.sort(generator.permutation(np.arange(n_components) % n_classes))
    mean = centre[class_of] + 1.5 * width * generator.normal(size=(n_components, n_features))
    log_weight = np.log(generator.dirichlet(np.ones(n_components)))
    return Components(class_of, log_weight, mean, centre, whiten, -np.inf)


@pytest.mark.parametrize(
    ("n_features", "n_classes", "n_components", "width"),
    [
        (1, 1, 1, 1.0),
        (1, 2, 5, 1.0),
        (2, 3, 3, 1.0),
        (7, 4, 29, 1.0),
        (13, 2, 17, 0.1),
        (20, 12, 60, 0.05),
        (31, 7, 90, 1.0),
    ],
)
def test_labels_are_those_of_a_naive_draw_save_where_rounding_decides(
    n_features: int, n_classes: int, n_components: int, width: float
) -> None:
    components = random_components(n_features, n_classes, n_components, width)
    generator = np.random.default_rng(3)
    values = components.mean[generator.integers(0, n_components, 300)]
    values = values + 3.0 * width * generator.normal(size=values.shape)
    # Some pixels lie at the ends of the range, far from everything.
    values[::17] *= 30.0
    feature = np.clip(np.round(values / STEP), -32767, 32767).astype(np.int16)
    pixels = Tile(2**40 + 5, feature, np.full(300, -1, np.int16))
    label = tiles.draw_labels(pixels, Pass(components, KEY, STEP))
    n_different = 0
    for i, x in enumerate(feature * STEP):
        u = ((oracles.splitmix(int(KEY), pixels.first + i) >> 41) + 0.5) / 2**23
        odds = oracles.component_odds(x, components)
        running = np.cumsum(odds) / odds.sum()
        expected = np.searchsorted(running, u, side="right")
        is_close = abs(running[min(label[i], expected)] - u) < 0.01
        assert label[i] == expected or is_close, f"pixel {i} drew {label[i]} of {running} with {u}"
        n_different += label[i] != expected
    assert n_different <= 3


def test_labels_do_not_depend_on_the_layout_of_the_features() -> None:
    pixels, task = tile(500, 5), Pass(random_components(5, 3, 8), KEY, STEP)
    turned = replace(pixels, feature=np.asfortranarray(pixels.feature))
    np.testing.assert_array_equal(tiles.draw_labels(turned, task), tiles.draw_labels(pixels, task))
    assert equal(tiles.tally(turned, task), tiles.tally(pixels, task))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="asks LLVM for an older processor of the same kind")
def test_labels_do_not_depend_on_the_length_of_vectors() -> None:
    # The same draw on a processor of 2013, which has no AVX-512: other vectors, other instructions.
    script = """
from test_tiles import KEY, STEP, Pass, random_components, tile, tiles
pixels, task = tile(700, 6), Pass(random_components(6, 3, 20), KEY, STEP)
print(tiles.draw_labels(pixels, task).tolist(), tiles.tally(pixels, task).statistics.outer.tolist())
"""
    older = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+bmi,+bmi2,+popcnt,+lzcnt,+sse4.2"}
    here = str(Path(__file__).parent)
    run = [
        subprocess.run(
            [sys.executable, "-c", script], env=os.environ | extra, cwd=here, capture_output=True, check=True
        )
        for extra in (older, {})
    ]
    assert run[0].stdout == run[1].stdout
    assert len(run[0].stdout) > 2000


ODDS_COMPONENTS = Components(
    class_of=np.array([0, 0, 1, 1]),
    log_weight=np.log([0.1, 0.4, 0.3, 0.2]),
    mean=np.array([[0.2, 0.1], [0.5, -0.5], [0.1, -0.3], [1.0, 1.0]]),
    centre=np.array([[0.3, 0.0], [0.2, 0.2]]),
    whiten=np.array([[[1.5, 0.3], [0, 0.8]], [[1.1, -0.4], [0, 2.0]]]),
    log_tail=-np.inf,
)


def assert_frequencies(label: np.ndarray, odds: np.ndarray) -> None:
    """The largest of 4 standardised errors exceeds 4.5 once in 40,000 runs."""
    p = odds / odds.sum()
    error = np.abs(np.bincount(label, minlength=4) - len(label) * p)
    # A component that is never drawn, or always, has no error at all.
    assert (error <= 4.5 * np.sqrt(len(label) * p * (1 - p)) + 1e-9).all()


def copies(n: int, known: int = -1) -> Tile:
    return Tile(0, np.tile(np.array([[300, -200]], np.int16), (n, 1)), np.full(n, known, np.int16))


def test_frequencies_of_drawn_components_are_their_odds() -> None:
    pixels = copies(40_000)
    odds = oracles.component_odds(pixels.feature[0] * STEP, ODDS_COMPONENTS)
    assert_frequencies(tiles.draw_labels(pixels, Pass(ODDS_COMPONENTS, KEY, STEP)), odds)


@pytest.mark.parametrize("handicap", [0.0, 200.0])
def test_labelled_pixels_draw_by_the_odds_within_their_class_however_unlikely_it_is(handicap: float) -> None:
    components = replace(ODDS_COMPONENTS, log_weight=ODDS_COMPONENTS.log_weight + handicap * np.array([1, 1, 0, 0]))
    pixels = copies(40_000, known=1)
    pixels.known[::2] = -1
    label = tiles.draw_labels(pixels, Pass(components, KEY, STEP))
    odds = oracles.component_odds(pixels.feature[0] * STEP, components)
    assert_frequencies(label[::2], odds)
    assert_frequencies(label[1::2], np.where(components.class_of == 1, odds, 0.0))


@pytest.mark.parametrize("trust", [0.0, 1.5])
def test_labelled_pixels_draw_other_classes_by_the_odds_that_their_label_is_wrong(trust: float) -> None:
    pixels = copies(40_000, known=1)
    pixels.known[::2] = -1
    label = tiles.draw_labels(pixels, Pass(ODDS_COMPONENTS, KEY, STEP, trust=trust))
    odds = oracles.component_odds(pixels.feature[0] * STEP, ODDS_COMPONENTS)
    assert_frequencies(label[::2], odds)
    assert_frequencies(label[1::2], np.where(ODDS_COMPONENTS.class_of == 1, odds, np.exp(-trust) * odds))


@pytest.mark.parametrize("handicap", [0.0, 200.0])
def test_refused_pixels_draw_by_the_odds_of_what_is_open_however_unlikely_it_is(handicap: float) -> None:
    components = replace(ODDS_COMPONENTS, log_weight=ODDS_COMPONENTS.log_weight + handicap * np.array([0, 1, 0, 0]))
    pixels = copies(40_000)
    anchors = tiles.Anchors(np.array([0, 2**63, 0, 2**62], np.uint64), np.full(4, -1))
    label = tiles.draw_labels(pixels, Pass(components, KEY, STEP, order_key=ORDER_KEY, anchors=anchors))
    order = np.array([oracles.splitmix(int(ORDER_KEY), i) for i in range(len(label))], np.uint64)
    odds = oracles.component_odds(pixels.feature[0] * STEP, components)
    assert_frequencies(label[order >= 2**63], odds)
    odds[1] = 0.0
    assert_frequencies(label[(order >= 2**62) & (order < 2**63)], odds)
    odds[3] = 0.0
    assert_frequencies(label[order < 2**62], odds)


def test_log_densities_within_a_class_are_those_of_the_naive_sum() -> None:
    components = random_components(6, 4, 19)
    pixels = tile(200, 6)
    class_index = np.arange(200) % 4
    found = np.empty(200)
    kernels.log_density(kernels.lay_out(pixels.feature), class_index, np.float32(STEP), components.lanes(), found)
    expected = np.empty(200)
    for i, x in enumerate(pixels.feature * STEP):
        terms = [
            components.log_weight[c]
            + oracles.log_gaussian(x, components.mean[c], np.linalg.inv(components.whiten[k].T @ components.whiten[k]))
            for c, k in enumerate(components.class_of)
            if k == class_index[i]
        ]
        expected[i] = logsumexp(terms)
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-5, atol=1e-3)


def test_labelled_pixels_vote_for_the_component_of_the_highest_odds_whatever_its_class(
    scene: tuple[Tile, Pass],
) -> None:
    pixels, task = scene
    found = tiles.tally(pixels, task).statistics
    expected = np.zeros_like(found.n_votes)
    for x, known in zip(pixels.feature * STEP, pixels.known, strict=True):
        if known >= 0:
            expected[oracles.component_odds(x, task.components).argmax(), known] += 1
    np.testing.assert_array_equal(found.n_votes, expected)
    assert found.n_votes.sum() == (pixels.known >= 0).sum(), "pixels of the block vote as well"
    is_other = task.components.class_of[:, None] != np.arange(2)
    assert found.n_votes[is_other].any(), "nobody votes for another class: the test says nothing"
    bound = tiles.tally(pixels, replace(task, trust=np.inf, is_voting=False)).statistics
    assert not bound.n_pinning[is_other].any(), "labelled pixels keep to their class"
    assert not bound.n_votes.any()


def test_votes_are_asked_for_where_labels_may_be_wrong_and_not_in_the_first_pass(scene: tuple[Tile, Pass]) -> None:
    _, task = scene
    assert task.is_voting
    assert not start.first_pass(task.components, rules(N_PIXELS, n_known=2, trust=4.0)).is_voting, "nobody reads them"


def test_without_components_nobody_votes(scene: tuple[Tile, Pass]) -> None:
    pixels, task = scene
    none = Components(np.zeros(0, np.int64), *np.zeros((1, 0)), *np.zeros((2, 0, 4)), np.zeros((0, 4, 4)), 0.0)
    assert tiles.count_votes(pixels, replace(task, components=none)).shape == (0, 2)


def test_class_probabilities_are_those_of_the_naive_sum(scene: tuple[Tile, Pass]) -> None:
    pixels, task = scene
    few = pixels.feature[:300]
    found = maps.class_probabilities(few, [task.components], STEP)
    expected = oracles.class_probabilities(few * STEP, task.components)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    sure = maps.certainty(found, 2)
    np.testing.assert_array_equal(sure.code, 1 + expected.argmax(1))
    np.testing.assert_allclose(sure.unknown, expected[:, 2:].sum(1), atol=1e-4)
    assert (sure.entropy >= 0).all()
    assert sure.entropy.max() <= np.log2(found.shape[1])


def test_component_probabilities_add_up_to_those_of_the_classes(scene: tuple[Tile, Pass]) -> None:
    pixels, task = scene
    few, components = pixels.feature[:300], task.components
    by_component = maps.component_probabilities(few, [components], STEP)
    expected = np.stack([oracles.component_odds(one * STEP, components) for one in few])
    np.testing.assert_allclose(by_component, expected / expected.sum(1, keepdims=True), atol=2e-5)
    by_class = maps.sum_by_class(by_component, components.class_of, len(components.centre))
    np.testing.assert_allclose(by_class, maps.class_probabilities(few, [components], STEP), atol=1e-6)
    code = maps.certainty(by_class, 2).code
    chosen = maps.likeliest_component(by_component, components.class_of, code).astype(int) - 1
    np.testing.assert_array_equal(components.class_of[chosen], code - 1, err_msg="a component of another class")
    best = [max(row[components.class_of == k - 1]) for row, k in zip(by_component, code, strict=True)]
    np.testing.assert_array_equal(by_component[np.arange(len(few)), chosen], best)


def test_a_class_without_components_has_no_probability() -> None:
    by_component = np.array([[0.25, 0.5, 0.25], [1.0, 0.0, 0.0]])
    found = maps.sum_by_class(by_component, np.array([0, 2, 2]), 4)
    np.testing.assert_array_equal(found, [[0.25, 0.0, 0.75, 0.0], [1.0, 0.0, 0.0, 0.0]])


@given(st.integers(0, 2**63), st.integers(0, 2**40), st.integers(1, 400))
def test_uniforms_depend_on_rank_alone(key: int, first: int, n: int) -> None:
    whole, part = np.empty(n), np.empty(n - n // 2)
    kernels.uniforms(np.uint64(key), first, whole)
    kernels.uniforms(np.uint64(key), first + n // 2, part)
    np.testing.assert_array_equal(whole[n // 2 :], part)
    assert ((whole >= 0) & (whole < 1)).all()


def test_uniforms_are_uniform_and_unrelated_between_sweeps() -> None:
    # Chi-square on 1,000 cells and two correlations, at 5 standard deviations: 1 false alarm in 500,000.
    n = 1_000_000
    one, other = np.empty(n), np.empty(n)
    kernels.uniforms(streams.pixel_key(1, 1, streams.Purpose.INDICATORS), 0, one)
    kernels.uniforms(streams.pixel_key(1, 2, streams.Purpose.INDICATORS), 0, other)
    counts = np.bincount((one * 1000).astype(int), minlength=1000)
    chi_square = ((counts - n / 1000) ** 2 / (n / 1000)).sum()
    assert abs(chi_square - 999) < 5 * np.sqrt(2 * 999)
    for pair in ((one, other), (one[1:], one[:-1])):
        assert abs(np.corrcoef(*pair)[0, 1]) < 5 / np.sqrt(n)


def test_drawn_parameters_have_the_posterior_mean() -> None:
    # 4,000 draws; each of the standardised errors exceeds 5 once in a million.
    pixels, label = clusters(200, 2, 3)
    chosen, given_prior = rules(200, birth_block=1), prior(2)
    state = state_of(pixels, label, np.array([0, 0, 1]), chosen, given_prior)
    draws = [draw_components(state, chosen, np.random.default_rng(i)) for i in range(4000)]
    from gibbsite import niw

    moments = statistics.moments(state.statistics, STEP)
    known = niw.posterior(niw.class_sums(niw.component_sums(moments, given_prior), state.class_of, 2), given_prior)
    precision = np.array([draw.whiten.swapaxes(1, 2) @ draw.whiten for draw in draws])
    expected = known.degrees[:, None, None] * np.linalg.inv(known.scale)
    assert (np.abs(precision.mean(0) - expected) / (precision.std(0) / np.sqrt(4000))).max() < 5
    centre = np.array([draw.centre for draw in draws])
    assert (np.abs(centre.mean(0) - known.mean) / (centre.std(0) / np.sqrt(4000))).max() < 5
    weight = np.exp([draw.log_weight for draw in draws])
    expected_weight = moments.n / (moments.n.sum() + given_prior.alpha)
    assert (np.abs(weight.mean(0) - expected_weight) / (weight.std(0) / np.sqrt(4000))).max() < 5


@given(st.integers(1, 60), st.integers(1, 5), st.integers(0, 100))
def test_statistics_of_a_tile_are_the_sum_over_its_halves(n: int, n_features: int, seed: int) -> None:
    pixels = tile(n, n_features, seed)
    label = np.random.default_rng(seed).integers(0, 3, n)
    cut = n // 3
    halves = [(pixels.part(0, cut), label[:cut]), (pixels.part(cut, n), label[cut:])]
    parts = [tiles.sum_by_label(part, chosen, 3, 0) for part, chosen in halves]
    whole = tiles.sum_by_label(pixels, label, 3, 0)
    for name in ("n", "total", "outer", "n_pinning"):
        total = getattr(parts[0] + parts[1], name)
        np.testing.assert_array_equal(total, getattr(whole, name), "tile != sum over its halves")


@pytest.mark.parametrize("n_broken", [1, 7])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_odds_that_are_not_numbers_end_in_an_error(scene: tuple[Tile, Pass], n_broken: int, value: float) -> None:
    pixels, task = scene
    weight = task.components.log_weight.copy()
    weight[-n_broken:] = value
    broken = replace(task.components, log_weight=weight)
    for anchors in (task.anchors, None):
        with pytest.raises(GibbsiteError, match="fits no component"):
            tiles.tally(pixels, replace(task, components=broken, anchors=anchors))
