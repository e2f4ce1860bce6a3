"""A tile's answer: exact sums, the right odds, and the same for any tiling."""

import functools
import operator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from gibbsite import gibbs, kernels, maps, statistics, streams, tiles
from gibbsite.components import Components, draw_components
from gibbsite.errors import GibbsiteError
from gibbsite.tiles import Pass, Tile
from handmade_chains import STEP, clusters, prior, rules, state_of, tile

N_PIXELS = 1500


@pytest.fixture(scope="module")
def scene() -> tuple[Tile, Pass]:
    pixels, label = clusters(N_PIXELS, 4, 5)
    pixels = replace(pixels, known=np.where(np.arange(N_PIXELS) % 7 == 3, label % 2, -1).astype(np.int16))
    chosen = rules(N_PIXELS, n_known=2, birth_block=200)
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
        (a.anchors.order, b.anchors.order),
        (a.anchors.rank, b.anchors.rank),
        (a.label, b.label),
    ]
    return all(np.array_equal(x, y) for x, y in pairs)


@pytest.mark.parametrize("size", [1, 7, 64, 255, 256, 257, 1000])
def test_answers_add_up_to_the_same_for_any_tile_size(scene: tuple[Tile, Pass], size: int) -> None:
    pixels, task = scene
    parts = [pixels.part(i, min(i + size, N_PIXELS)) for i in range(0, N_PIXELS, size)]
    generator = np.random.default_rng(0)
    answers = [tiles.tally(parts[i], task) for i in generator.permutation(len(parts))]
    assert equal(functools.reduce(operator.add, answers), tiles.tally(pixels, task))


def test_sums_are_those_of_the_naive_loop(scene: tuple[Tile, Pass]) -> None:
    pixels, task = scene
    label = tiles.draw_labels(pixels, task)
    found = tiles.sum_by_label(pixels, label, len(task.components.class_of))
    n, total, outer = oracles.sum_by_label(pixels.feature, label, len(task.components.class_of))
    np.testing.assert_array_equal(found.n, n)
    np.testing.assert_array_equal(found.total, total)
    np.testing.assert_array_equal(found.outer, outer)


def test_sums_are_exact_at_the_ends_of_the_fixed_point_range() -> None:
    feature = np.array([[32767, -32767], [-32767, -32767], [1, 0]], np.int16)
    extreme = Tile(0, np.tile(feature, (5000, 1)), np.full(15000, -1, np.int16))
    sums = tiles.sum_by_label(extreme, np.zeros(15000, np.int64), 1)
    assert sums.outer[0, 0, 0] == 5000 * (2 * 32767**2 + 1)
    assert sums.outer[0, 0, 1] == sums.outer[0, 1, 0] == 0
    assert sums.total[0].tolist() == [5000, -2 * 5000 * 32767]


def test_labelled_pixels_stay_in_their_class(scene: tuple[Tile, Pass]) -> None:
    pixels, task = scene
    label = tiles.draw_labels(pixels, replace(task, anchors=None))
    is_known = pixels.known >= 0
    np.testing.assert_array_equal(task.components.class_of[label[is_known]], pixels.known[is_known])


def test_anchors_stay_and_come_before_all_that_join(scene: tuple[Tile, Pass]) -> None:
    pixels, task = scene
    anchors = task.anchors
    assert anchors is not None
    label = tiles.draw_labels(pixels, task)
    np.testing.assert_array_equal(label[anchors.rank], np.arange(len(anchors.rank)))
    first = tiles.no_anchors(len(anchors.rank))
    outside = pixels.part(task.skip[1], N_PIXELS) if task.skip[0] == 0 else pixels.part(0, task.skip[0])
    chosen = label[outside.first : outside.stop]
    kernels.find_anchors(chosen, outside.first, task.order_key, (0, 0), first.order, first.rank)
    assert (first.order >= anchors.order).all(), "a pixel joined a component whose anchor comes after it"


def test_frequencies_of_drawn_components_are_their_odds() -> None:
    # 40,000 copies of one pixel; the largest of 4 standardised errors exceeds 4.5 once in 40,000 runs.
    n = 40_000
    pixels = Tile(0, np.tile(np.array([[300, -200]], np.int16), (n, 1)), np.full(n, -1, np.int16))
    components = Components(
        class_of=np.array([0, 0, 1, 1]),
        log_weight=np.log([0.1, 0.4, 0.3, 0.2]),
        mean=np.array([[0.2, 0.1], [0.5, -0.5], [0.1, -0.3], [1.0, 1.0]]),
        centre=np.array([[0.3, 0.0], [0.2, 0.2]]),
        whiten=np.array([[[1.5, 0.3], [0, 0.8]], [[1.1, -0.4], [0, 2.0]]]),
        log_tail=-np.inf,
    )
    key = streams.pixel_key(1, 1, streams.Purpose.INDICATORS)
    counts = np.bincount(tiles.draw_labels(pixels, Pass(components, key, STEP)), minlength=4)
    x = pixels.feature[0] * STEP
    odds = np.array(
        [
            np.exp(components.log_weight[c])
            * np.exp(
                oracles.log_gaussian(
                    x, components.mean[c], np.linalg.inv(components.whiten[k].T @ components.whiten[k])
                )
            )
            for c, k in enumerate(components.class_of)
        ]
    )
    p = odds / odds.sum()
    assert (np.abs(counts - n * p) / np.sqrt(n * p * (1 - p))).max() < 4.5


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
    parts = [tiles.sum_by_label(part, chosen, 3) for part, chosen in halves]
    whole = tiles.sum_by_label(pixels, label, 3)
    for name in ("n", "total", "outer", "n_pinning"):
        total = getattr(parts[0] + parts[1], name)
        np.testing.assert_array_equal(total, getattr(whole, name), "tile != sum over its halves")


def test_odds_that_are_not_numbers_end_in_an_error(scene: tuple[Tile, Pass]) -> None:
    pixels, task = scene
    broken = replace(task.components, log_weight=np.full(len(task.components.class_of), np.nan))
    late = replace(task.anchors, order=np.full(len(broken.class_of), tiles.NOBODY))
    with pytest.raises(GibbsiteError, match="fits no component"):
        tiles.tally(pixels, replace(task, components=broken, anchors=late))
