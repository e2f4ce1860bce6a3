"""The artefact guard: each rule fires on its own kind of artefact and on nothing that a mineral does."""

import numpy as np
import pytest
from numpy.typing import NDArray

from gibbsite.artefacts import Places, at_edge, edges, false_bands, few_columns, spikes, spiky
from gibbsite.continuum import Band
from gibbsite.interpretation import joined, places_of


def places(mask: NDArray[np.bool_]) -> Places:
    column = np.tile(np.arange(mask.shape[1]), (mask.shape[0], 1))
    layers = {"column": column, "is_at_edge": at_edge(np.ones_like(mask)), "is_spiky": np.zeros_like(mask)}
    return places_of(mask.astype(int), layers, 1)[0]


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


def test_holes_in_a_scene_have_no_edge() -> None:
    valid = np.ones((30, 40), bool)
    valid[15, 20] = False
    assert not at_edge(valid)[10:20, 10:30].any()
    assert at_edge(valid)[:3].all()


def test_a_class_of_despiked_pixels_is_suspected() -> None:
    n_despiked = np.zeros((50, 40), int)
    mask = np.zeros((50, 40), bool)
    mask[10:14, 20:24] = True
    n_despiked[mask] = 9
    marked = spiky(n_despiked, np.ones_like(mask))
    assert (marked == mask).all()
    layers = {"column": np.full(mask.shape, -1), "is_at_edge": np.zeros_like(mask), "is_spiky": marked}
    (own,) = places_of(mask.astype(int), layers, 1)
    reason = spikes(own, float(marked.mean()))
    assert reason is not None
    assert "despiked" in reason
    assert spikes(places(mask), 0.0) is None


def test_lines_of_two_scenes_are_never_the_same() -> None:
    mask = np.zeros((6, 5), bool)
    mask[2, 1] = mask[4, 3] = True
    both = joined([places(mask), places(mask)])
    assert len(np.unique(both.line)) == 4
    assert both.column.tolist() == [1, 3, 1, 3]
