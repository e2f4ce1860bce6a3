"""The artefact guard: each rule fires on its own kind of artefact and on nothing that a mineral does."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray
from scipy.ndimage import binary_fill_holes, distance_transform_edt

from gibbsite.artefacts import edges, false_bands, few_columns, spikes
from gibbsite.continuum import Band
from gibbsite.whereabouts import EDGE, Extent, Places, Tally, at_edge, usual_spikes


def places(*masks: NDArray[np.bool_], spiky: NDArray[np.bool_] | None = None, n_rows: int = 50) -> Places:
    """Of a class with these pixels in scenes whose columns are their samples, added some rows at a time."""
    width = max(mask.shape[1] for mask in masks)
    tally, column = Tally.none(1, width), [np.tile(np.arange(mask.shape[1]), (len(mask), 1)) for mask in masks]
    edge, marked = (
        [at_edge(np.ones_like(mask)) for mask in masks],
        spiky if spiky is not None else np.zeros_like(masks[0]),
    )
    for n, mask in enumerate(masks):
        for start in range(0, len(mask), n_rows):
            rows = slice(start, start + n_rows)
            tally.add(mask[rows].astype(int), column[n][rows], edge[n][rows], marked[rows])
    n_lines = np.zeros((2, 2), np.int64)
    for n, mask in enumerate(masks):
        extent = Extent.none(1, mask.shape)
        for start in range(0, len(mask), n_rows):
            rows = slice(start, start + n_rows)
            extent.add(start, mask[rows].astype(int), column[n][rows], tally.needed())
        n_lines += extent.lines.sum(axis=1), extent.samples.sum(axis=1)
    return tally.places(n_lines.max(axis=0))[0]


def test_a_narrow_band_at_two_point_one_alone_is_suspected() -> None:
    reason = false_bands([Band(1.91, 0.05, 0.024), Band(2.11, 0.2, 0.05), Band(2.3, 0.02, 0.08)])
    assert reason is not None
    assert "2.11 µm" in reason


@pytest.mark.parametrize(
    "bands",
    [
        [],
        [Band(2.12, 0.1, 0.15), Band(2.40, 0.03, 0.05)],
        [Band(1.91, 0.1, 0.09)],
        [Band(1.91, 0.1, 0.03), Band(2.31, 0.1, 0.05)],
        [Band(2.17, 0.2, 0.07), Band(2.32, 0.1, 0.05)],
    ],
    ids=["featureless", "monohydrated sulfate", "water", "smectite", "alunite"],
)
def test_bands_of_minerals_are_not_suspected(bands: list[Band]) -> None:
    assert false_bands(bands) is None


def test_a_class_along_two_detector_columns_is_suspected() -> None:
    mask = np.zeros((120, 64), bool)
    mask[5:60:2, 20] = mask[30:110:2, 21] = True
    mask[[3, 90, 100], [50, 9, 33]] = True
    reason = few_columns(places(mask), 64)
    assert reason is not None
    assert "2 of 64 detector columns" in reason


def test_a_small_outcrop_in_few_columns_is_not_suspected() -> None:
    mask = np.zeros((120, 64), bool)
    mask[40:45, 20:24] = True
    assert few_columns(places(mask), 64) is None
    mask[70:73, 30:33] = True
    assert few_columns(places(mask), 64) is None


def test_a_handful_of_pixels_is_not_judged_by_its_place() -> None:
    mask = np.zeros((120, 64), bool)
    mask[5:40:6, 20] = True
    assert mask.sum() < 8
    assert few_columns(places(mask), 64) is None
    assert edges(places(np.zeros_like(mask)), 0.1) is None


def test_a_class_on_the_rim_of_the_scene_is_suspected_and_one_that_touches_it_is_not() -> None:
    mask = np.zeros((120, 64), bool)
    mask[:, :2] = True
    usual = float(at_edge(np.ones_like(mask)).mean())
    reason = edges(places(mask), usual)
    assert reason is not None
    assert "edge of the scene" in reason
    mask[:, :30] = True
    assert edges(places(mask), usual) is None


def test_a_small_outcrop_at_the_edge_is_no_artefact() -> None:
    mask = np.zeros((200, 200), bool)
    mask[:5, 60:67] = True
    assert edges(places(mask), 0.06) is None, "a patch of that size lies at the edge for the most part if it touches it"
    mask[:3, 20:120] = True
    assert edges(places(mask), 0.06) is not None


def test_holes_in_a_scene_have_no_edge() -> None:
    valid = np.ones((30, 40), bool)
    valid[15, 20] = False
    assert not at_edge(valid)[10:20, 10:30].any()
    assert at_edge(valid)[:3].all()


def test_edges_are_where_the_distance_to_the_outside_is_small() -> None:
    valid = np.random.Generator(np.random.Philox(4)).uniform(size=(60, 47)) < 0.97
    valid[:20, :9], valid[40:, 30:] = False, False
    distance = distance_transform_edt(np.pad(binary_fill_holes(valid), 1))[1:-1, 1:-1]
    assert_array_equal(at_edge(valid), (distance <= EDGE) & valid)


def test_a_class_of_despiked_pixels_is_suspected() -> None:
    mask = np.zeros((50, 40), bool)
    mask[10:14, 20:24] = True
    reason = spikes(places(mask, spiky=mask), float(mask.mean()))
    assert reason is not None
    assert "despiked" in reason
    assert spikes(places(mask), 0.0) is None


@pytest.mark.parametrize("n", [1, 2, 19, 20, 21, 1000])
def test_usual_spikes_are_a_quantile_of_the_counts(n: int) -> None:
    values = np.random.Generator(np.random.Philox(n)).poisson(3.0, n)
    assert usual_spikes(np.bincount(values, minlength=50)) == pytest.approx(np.quantile(values, 0.95))
    assert usual_spikes(np.zeros(50, np.int64)) == 0.0


def test_lines_of_two_scenes_are_never_the_same() -> None:
    mask = np.zeros((40, 32), bool)
    mask[5:20, 7] = True
    one, both = places(mask), places(mask, mask)
    assert (one.n_lines, both.n_lines) == (15, 30)
    assert (both.n_columns, both.n_inside, both.n_placed) == (1, 30, 30)


def test_places_do_not_depend_on_blocks() -> None:
    mask = np.random.Generator(np.random.Philox(2)).uniform(size=(60, 47)) < 0.1
    assert places(mask, n_rows=1) == places(mask, n_rows=7) == places(mask, n_rows=60)
    column, line = np.nonzero(mask)[1], np.nonzero(mask)[0]
    count = np.sort(np.bincount(column))[::-1]
    found = places(mask)
    assert found.n_columns == np.searchsorted(np.cumsum(count), 0.8 * mask.sum()) + 1
    assert found.n_lines <= len(np.unique(line))


def test_pixels_of_no_class_and_unknown_columns_count_in_no_column() -> None:
    tally = Tally.none(1, 3)
    position, column = np.array([[0, 1, 1]]), np.array([[700, -1, 2]])
    tally.add(position, column, np.zeros((1, 3), bool), np.zeros((1, 3), bool))
    assert tally.places(np.zeros(2, np.int64))[0] == Places(2, 0, 0, n_placed=1, n_columns=1, n_inside=1)
