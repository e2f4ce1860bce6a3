"""Gains of the detector columns, from the ratios of neighbours in a pass over the whole scene."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels, lit
from gibbsite.blocks import padded
from gibbsite.clean import stripes
from gibbsite.corrections import Corrections
from gibbsite.kernels import LANES
from gibbsite.sources import Lines, Source
from gibbsite.threads import in_order

SOME_LINES = 8
"""Lines, or a little more, that are read at once: no other lines are looked at, and so few stay in the cache."""
SOME_BANDS = 16
"""Bands whose medians a thread finds at once."""

Strip = Callable[[int], Lines]
Keys = NDArray[np.uint16]


def column_gains(source: Source, corrections: Corrections) -> NDArray[np.float32] | None:
    """Gains (n_bands, n_columns) of the detector columns; None where no two neighbours are known."""
    pair = stripes.neighbour_columns(source.column, source.valid)
    if pair.max() < 0:
        return None
    n_lines, n_bands, n_columns = len(pair), len(corrections.band), int(source.column.max()) + 1
    is_level = lit.is_level(source)
    place = stripes.line_places(n_lines) if is_level else stripes.places(pair)
    # Room for whole strips, and for whole registers of keys.
    room = math.lcm(LANES, kernels.SOME_KEYS)
    keys = np.zeros((int(place.max()) + 1, n_bands, -(-n_columns // room) * room), np.uint16)

    def keep(rows: slice) -> None:
        strip = lit.strips(source, corrections, rows)
        if is_level:
            _keep_level(strip, pair.shape[1], place[rows], keys)
        else:
            _keep(strip, source.column[rows], (place[rows], pair[rows]), keys)

    def gains(first: int) -> NDArray[np.float32]:
        ratio = kernels.median_keys(keys, first, min(first + SOME_BANDS, n_bands))[:, :n_columns]
        return stripes.column_gains(ratio).astype(np.float32)

    step = source.whole_chunks(SOME_LINES)
    for _ in in_order(keep, (slice(start, min(start + step, n_lines)) for start in range(0, n_lines, step))):
        pass
    return np.concatenate(list(in_order(gains, range(0, n_bands, SOME_BANDS))))


def _keep_level(strip: Strip, width: int, place: NDArray[np.int32], keys: Keys) -> None:
    """Put the ratios of neighbours in some lines into the keys, where samples are columns."""
    here = strip(0)
    for start in range(0, width, LANES):
        # The last pixel of a strip has its neighbour in the next.
        following = strip(start + LANES) if start + LANES < width else np.full_like(here, np.nan)
        kernels.keep_level_ratios(here, following, place, start, keys)
        here = following


def _keep(
    strip: Strip, column: NDArray[np.int16], where: tuple[NDArray[np.int32], NDArray[np.integer]], keys: Keys
) -> None:
    """The same for columns that run aslant over a map; `where` is place and pair."""
    # Where columns fall from left to right, the right pixel belongs to the lower one.
    turn = np.diff(column, axis=1, append=0) < 0
    # The last pixel of a strip is the first of the next, so that no pair is cut.
    for start in range(0, column.shape[1], LANES - 1):
        here = slice(start, start + LANES)
        place, pair, turned = (padded(some, here, -1) for some in (*where, turn))
        kernels.keep_ratios(strip(start), place, pair, turned, keys)
