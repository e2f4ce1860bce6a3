"""What happens where the pixels are: a tile and a pass go in, sums come out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels, statistics
from gibbsite.components import Components
from gibbsite.statistics import Statistics


@dataclass(frozen=True)
class Tile:
    """Pixels of consecutive rank."""

    first: int
    """Rank of the first pixel, counted over all scenes."""
    feature: NDArray[np.int16]
    """(n_pixels, n_features) fixed point."""
    known: NDArray[np.int16]
    """(n_pixels,) known class of a labelled pixel that pins, -1 otherwise."""


@dataclass(frozen=True)
class Pass:
    """One pass over all pixels: what every tile is told."""

    components: Components
    """The drawn components."""
    key: np.uint64
    """Under which pixels draw their random number."""
    step: float
    """Fixed-point step of the features."""
    skip: tuple[int, int] = (0, 0)
    """Ranks [start, stop) that take no part."""


def tally(tile: Tile, task: Pass) -> Statistics:
    """A tile's answer: a pure function of its pixels, the drawn components and the key."""
    parts = [_tally(part, task) for part in _without(tile, task.skip)]
    out = statistics.zeros(len(task.components.class_of), tile.feature.shape[1])
    return sum(parts, start=out)


def _without(tile: Tile, skip: tuple[int, int]) -> list[Tile]:
    """The tile less the ranks to skip, as at most two tiles."""
    stop = tile.first + len(tile.feature)
    if skip[0] >= skip[1]:
        return [tile]
    ranges = [(tile.first, min(stop, skip[0])), (max(tile.first, skip[1]), stop)]
    return [
        Tile(a, tile.feature[a - tile.first : b - tile.first], tile.known[a - tile.first : b - tile.first])
        for a, b in ranges
        if a < b
    ]


def _tally(tile: Tile, task: Pass) -> Statistics:
    uniform = np.empty(len(tile.feature))
    kernels.uniforms(task.key, tile.first, uniform)
    label = np.empty(len(tile.feature), np.int64)
    step = np.float32(task.step)
    kernels.indicate(tile.feature, tile.known, uniform, step, task.components.lanes(), label)
    return sum_by_label(tile, label, len(task.components.class_of))


def sum_by_label(tile: Tile, label: NDArray[np.int64], n_components: int) -> Statistics:
    """The statistics of a tile's pixels under these labels."""
    n_features = tile.feature.shape[1]
    n = np.zeros(n_components, np.int64)
    n_pinning = np.zeros(n_components, np.int64)
    total = np.zeros((n_components, n_features))
    outer = np.zeros((n_components, n_features, n_features))
    kernels.add_up(tile.feature, tile.known, label, n, total, outer, n_pinning)
    upper = outer.astype(np.int64)
    lower = np.tril(np.swapaxes(upper, 1, 2), -1)
    return Statistics(n, total.astype(np.int64), upper + lower, n_pinning)
