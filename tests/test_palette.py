"""Class colours: distinct, readable, stable."""

import re

import numpy as np
import pytest

from gibbsite.palette import N_WARM, class_colours, ink, seen_colours


@pytest.mark.parametrize(("n_known", "n_new"), [(0, 0), (1, 0), (0, 1), (7, 3), (40, 25), (300, 20), (2, 150)])
def test_every_class_has_its_own_colour(n_known: int, n_new: int) -> None:
    colours = class_colours(n_known, n_new)
    assert len(colours) == n_known + n_new
    assert len(set(colours)) == len(colours)
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in colours)


def test_more_classes_than_colours_still_get_one_each() -> None:
    assert len(class_colours(900, 700)) == 1600


def test_a_class_keeps_its_colour_when_more_are_discovered() -> None:
    few, many = class_colours(5, 2), class_colours(5, 9)
    assert many[:7] == few
    assert class_colours(6, 2)[:5] == few[:5]


def test_colour_blind_eyes_tell_the_first_classes_apart() -> None:
    """0.02 is about one just noticeable step in OKLab; the closest pair must be some steps apart."""
    seen = seen_colours(class_colours(8, 4))
    distance = np.linalg.norm(seen[:, :, None] - seen[:, None], axis=-1)
    distance[:, np.arange(12), np.arange(12)] = np.inf
    assert distance.min() > 0.05


def test_twenty_discovered_classes_are_told_apart() -> None:
    """Three colours of four are at least four steps from their nearest, to normal eyes; warm ones alone are three."""
    seen = seen_colours(class_colours(6, 20))[0]
    distance = np.linalg.norm(seen[:, None] - seen, axis=-1) + np.diag(np.full(26, np.inf))
    assert np.quantile(distance.min(axis=0), 0.25) > 0.08


def test_the_largest_discovered_classes_are_warm_and_vivid_and_known_ones_are_not() -> None:
    colours = class_colours(20, 20)
    _, a, b = seen_colours(colours[: 20 + N_WARM])[0].T
    chroma, hue = np.hypot(a, b), np.degrees(np.arctan2(b, a))
    is_loud = (chroma > 0.14) & (hue > -36) & (hue < 93)
    assert is_loud.tolist() == [False] * 20 + [True] * N_WARM


@pytest.mark.parametrize("colour", [*class_colours(12, 12), "#ffffff", "#ffff00"])
def test_ink_is_readable_on_white(colour: str) -> None:
    level = np.array([int(ink(colour)[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    light = np.where(level <= 0.04045, level / 12.92, ((level + 0.055) / 1.055) ** 2.4) @ (
        0.2126,
        0.7152,
        0.0722,
    )
    assert 1.05 / (light + 0.05) >= 4.5


def test_ink_leaves_dark_colours_alone() -> None:
    assert ink("#102030") == "#102030"


GIVEN = [None, "#0a8020", "#b41ec8", None, "#0a8020"]


def test_known_classes_keep_the_colour_they_were_given_once() -> None:
    colours = class_colours(5, 3, GIVEN)
    assert colours[1:3] == ["#0a8020", "#b41ec8"]
    assert colours[4] != "#0a8020"
    assert len(set(colours)) == 8


def test_no_other_class_comes_near_a_colour_that_was_given() -> None:
    """Not even when it is the palette's own: the first colour of known classes, given to the third."""
    own = class_colours(1, 0)[0]
    for given in (GIVEN, [None, None, own], ["#ff0000", "#00ff00", "#0000ff", "#ffff00"]):
        colours = class_colours(12, 12, given)
        seen = seen_colours(colours)
        distance = np.linalg.norm(seen[:, :, None] - seen[:, None], axis=-1).min(axis=0)
        kept = [colours.index(colour) for colour in set(given) - {None}]
        distance[np.arange(24), np.arange(24)] = np.inf
        others = [index for index in range(24) if index not in kept]
        assert distance[np.ix_(kept, others)].min() > 0.05
        assert len(set(colours)) == 24


def test_colours_given_leave_discovered_classes_theirs_when_more_come() -> None:
    assert class_colours(5, 9, GIVEN)[:8] == class_colours(5, 3, GIVEN)
    assert class_colours(6, 4, [None] * 6) == class_colours(6, 4)


def test_very_many_given_colours_still_leave_one_for_every_class() -> None:
    given = [
        f"#{red:02x}{green:02x}{blue:02x}"
        for red in range(0, 256, 51)
        for green in range(0, 256, 51)
        for blue in (0, 90, 180, 255)
    ]
    colours = class_colours(len(given) + 2, 5, given)
    assert colours[: len(given)] == given
    assert len(colours) == len(given) + 7
