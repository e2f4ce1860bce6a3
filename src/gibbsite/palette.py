"""Class colours: cool or muted for known classes, warm and vivid for the first discovered ones.

The candidates are the Glasbey sets of colorcet. They are taken one by one, each time the one farthest from
all taken before, where "far" is the smallest OKLab distance seen by normal, deuteranopic and protanopic
eyes. A longer list starts with the shorter one, so a class keeps its colour when more are discovered after
it. Warm colours alone would look alike soon, so from the ninth discovered class on any colour is taken.
"""

from collections.abc import Sequence
from functools import cache
from itertools import cycle, islice

import colorcet
import numpy as np
from numpy.typing import NDArray

LIGHTNESS = (0.42, 0.80)
"""OKLab lightness of all class colours: visible as a thin line on white paper, and not taken for black."""

MIN_CHROMA = 0.045
"""OKLab chroma; greyer colours are taken for shading or missing data."""

VIVID_CHROMA = 0.145
"""Warm colours of at least this chroma are for discovered classes, below `MUTED_CHROMA` for known ones."""

MUTED_CHROMA = 0.10

WARM_HUE = (-35.0, 92.0)
"""OKLab hue angle, degrees, from magenta over red and orange to yellow."""

TOO_NEAR = 0.05
"""OKLab distance from a colour that was given; about 0.02 is just noticeable."""

N_WARM = 8
"""So many discovered classes have warm colours, the largest ones."""

RAMP = tuple(colorcet.CET_L20[index] for index in (0, 64, 128, 191, 255))
"""Colours for numbers, evenly from low to high; lightness rises all the way, so that every eye sees the order."""

_TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
"""Linear sRGB to cone responses: Ottosson (2020), OKLab."""

_TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
"""Cube roots of cone responses to lightness, green-red and blue-yellow: Ottosson (2020)."""

_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
"""Of linear red, green and blue (IEC 61966-2-1)."""

_EYES = np.array(
    [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    ]
)
"""What normal, deuteranopic and protanopic eyes see of linear sRGB: Machado et al. (2009), severity 1."""

_WEIGHT = np.array([1.0, 2.5, 2.5])
"""Of each eye's distances. Dichromats' are smaller throughout: unweighted, they alone would choose."""


def class_colours(n_known: int, n_new: int, given: Sequence[str | None] = ()) -> list[str]:
    """Colours `#rrggbb`, first of the known classes, then of the discovered ones.

    Known classes keep the colour they were given (None: none); when two were given the same, the first keeps it. All
    differ up to some 470 classes; a kind that runs out goes on from the far end of the other's list.
    """
    kept = {colour: index for index, colour in reversed(list(enumerate(given))) if colour is not None}
    known, new = _apart(_order(True), tuple(kept)), _apart(_order(False), tuple(kept))
    colours = list(islice(cycle(known + new[::-1]), n_known)) + list(islice(cycle(new + known[::-1]), n_new))
    for colour, index in kept.items():
        colours[index] = colour
    return colours


def ink(colour: str) -> str:
    """The colour, darkened as far as text on white needs it (contrast of 4.5 to 1, WCAG 2.2)."""
    level = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], dtype=float)
    while 1.05 / (_luminance(level) + 0.05) < 4.5:
        level *= 0.97
    return "#" + "".join(f"{int(value):02x}" for value in level)


def shades(colour: str, n: int) -> list[str]:
    """So many shades of a colour, from darker to lighter; a single one is the colour itself."""
    if n == 1:
        return [colour]
    level = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], dtype=float)
    mixed = [
        level * (1 + share) if share < 0 else level + (255 - level) * share for share in np.linspace(-0.45, 0.5, n)
    ]
    return ["#" + "".join(f"{round(value):02x}" for value in one) for one in mixed]


def seen_colours(colours: list[str]) -> NDArray[np.float64]:
    """OKLab of the colours as seen by the three eyes, (eye, colour, lightness a b)."""
    level = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in colours])
    seen = np.clip(np.einsum("eij,cj->eci", _EYES, _linear(level)), 0.0, 1.0)
    oklab: NDArray[np.float64] = np.cbrt(seen @ _TO_CONES.T) @ _TO_OKLAB.T
    return oklab


def _linear(level: NDArray[np.number]) -> NDArray[np.float64]:
    """Linear light of sRGB levels 0 to 255."""
    share = level / 255.0
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def _luminance(level: NDArray[np.number]) -> float:
    return float(_LUMINANCE @ _linear(level))


def _distances(seen: NDArray[np.float64], index: int) -> NDArray[np.float64]:
    """Distance of every colour from one, to the eye that tells them apart least, (colour)."""
    # Hue and chroma count double: OKLab differences follow the eye better so than evenly.
    distance = np.linalg.norm((seen - seen[:, index : index + 1]) * (1.0, 2.0, 2.0), axis=-1)
    nearest: NDArray[np.float64] = (_WEIGHT[:, None] * distance).min(axis=0)
    return nearest


@cache
def _apart(colours: tuple[str, ...], kept: tuple[str, ...]) -> tuple[str, ...]:
    """The colours that no eye takes for one of those kept; all of them when none is left."""
    if not kept:
        return colours
    distance = np.linalg.norm(seen_colours(list(colours))[:, :, None] - seen_colours(list(kept))[:, None], axis=-1)
    is_apart = distance.min(axis=(0, 2)) > TOO_NEAR
    return tuple(colour for colour, apart in zip(colours, is_apart, strict=True) if apart) or colours


@cache
def _order(is_known: bool) -> tuple[str, ...]:
    """All candidates of one kind, best first.

    Known and discovered take turns in one run over both sets, so the two lists keep away from each other.
    """
    cool, warm = _candidates()
    colours = cool + warm
    seen = seen_colours(colours)
    kind = {True: set(range(len(cool))), False: set(range(len(cool), len(colours)))}
    free = set(range(len(colours)))
    taken: dict[bool, list[str]] = {True: [], False: []}
    nearest = np.full(len(colours), np.inf)
    turn = True
    while free:
        own = free & kind[turn] if turn or len(taken[False]) < N_WARM else set()
        best = max(sorted(own or free), key=lambda index: nearest[index])
        free.remove(best)
        taken[turn].append(colours[best])
        nearest = np.minimum(nearest, _distances(seen, best))
        turn = not turn
    return tuple(taken[is_known])


def _candidates() -> tuple[list[str], list[str]]:
    """Colours for known and for discovered classes, neither too light, too dark nor too grey, each once."""
    colours = list(dict.fromkeys(colorcet.b_glasbey_bw_minc_20 + colorcet.glasbey_cool + colorcet.glasbey_warm))
    light, a, b = seen_colours(colours)[0].T
    chroma, hue = np.hypot(a, b), np.degrees(np.arctan2(b, a))
    is_warm = (hue >= WARM_HUE[0]) & (hue <= WARM_HUE[1])
    is_fit = (light >= LIGHTNESS[0]) & (light <= LIGHTNESS[1]) & (chroma >= MIN_CHROMA)
    for_known = is_fit & (~is_warm | (chroma < MUTED_CHROMA))
    for_new = is_fit & is_warm & (chroma >= VIVID_CHROMA)
    return [colours[i] for i in np.flatnonzero(for_known)], [colours[i] for i in np.flatnonzero(for_new)]
