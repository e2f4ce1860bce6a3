"""The components a chain begins with: k-means++ cells of the pixels, more of them where clusters or labels lie."""

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gibbsite.components import Components
from gibbsite.gibbs import ReadPixels
from gibbsite.state import Rules
from gibbsite.statistics import Floats, Integers

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

SAMPLE_PIXELS = 32768
"""Pixels that k-means++ sees."""
SAMPLE_BLOCKS = 64
"""Runs of neighbours the sample is made of."""
LEAST_CELLS = 8
"""However few pixels there are for so many features: clusters that begin as one cell are hardly ever parted later."""
MOST_CELLS = 256
"""However many clusters there seem to be."""
APART = 6.0
"""Standard deviations, along their longest axis, by which two means of a cell are apart where it holds two clusters:
those of a normal cluster are 2.7 apart at most, of an evenly filled one 3.5. (Along the line between them alone, whole
numbers in one of many columns would make clusters.)"""
DEPTH = 3
"""Halvings of a cell in which clusters are looked for."""
PIXELS_PER_FEATURE = 5
"""That a cluster has at least, no two alike: two means of few pixels in many dimensions are always far apart."""
MOST_ROUNDS = 20
"""Of k-means."""


def sample_pixels(rules: Rules, read_pixels: ReadPixels, generator: np.random.Generator) -> NDArray[np.int16]:
    """Features of all pixels, or of evenly spread runs of neighbours when there are many."""
    if rules.n_pixels <= SAMPLE_PIXELS:
        return read_pixels(0, rules.n_pixels).feature
    length = SAMPLE_PIXELS // SAMPLE_BLOCKS
    stride = rules.n_pixels / SAMPLE_BLOCKS
    firsts = [int((j + u) * (stride - 1)) for j, u in enumerate(generator.random(SAMPLE_BLOCKS))]
    firsts = [min(first, rules.n_pixels - length) for first in firsts]
    return np.concatenate([read_pixels(first, first + length).feature for first in firsts])


def find_cells(sample: Floats, n_cells: tuple[int, int], pins: Floats, generator: np.random.Generator) -> Components:
    """k-means cells as components, each a class of its own, all with the pooled covariance within cells.

    There are as many as `n_cells` says, of all pixels and at most so many more where labels are; and more where
    a cell holds several clusters. Each component is one more to find a class for, and without labels chains from many
    cells end in too many classes. Labels name the components about them, and there small components follow the border
    of a class better.
    """
    # Fewer pixels than features say nothing of a shape: 32 cells of 60 pixels with 90 features ended in 30 classes.
    most = max(LEAST_CELLS, len(sample) // sample.shape[1])
    coarse = _k_means(sample, min(n_cells[0], most), generator)
    cell, centre = part_clusters(sample, coarse.labels_.astype(np.int64), coarse.cluster_centers_)
    if n_cells[1] > 0 and len(pins) > 0:
        n_pins = np.bincount(_nearest(pins, centre), minlength=len(centre))
        cell = divide(sample, cell, n_pins / max(1.0, len(pins) / n_cells[1]), generator)
    return _components(sample, cell)


def part_clusters(sample: Floats, cell: Integers, centre: Floats) -> tuple[Integers, Floats]:
    """(n_sample,) cell of each pixel, and (n_cells, d) centres, after cells of several clusters were divided.

    Sweeps hardly ever part clusters that begin as one cell.
    """
    cell, centres, doubted = cell.copy(), list(centre), deque(range(len(centre)))
    while doubted and len(centres) < MOST_CELLS:
        chosen = doubted.popleft()
        low, high = _halves(sample, np.flatnonzero(cell == chosen))
        if _hold_clusters(sample, low, high):
            cell[high] = len(centres)
            doubted += [chosen, len(centres)]
            centres[chosen] = sample[low].mean(0)
            centres.append(sample[high].mean(0))
    return cell, np.array(centres)


def _halves(sample: Floats, members: Integers) -> tuple[Integers, Integers]:
    """The members that are nearest to either of their two means, which begin along the longest axis."""
    rows, high = sample[members], np.zeros(len(members), np.bool_)
    if len(members) >= 2 * PIXELS_PER_FEATURE * sample.shape[1]:
        away = rows - rows.mean(0)
        high = away @ np.linalg.eigh(away.T @ away)[1][:, -1] > 0.0
    for _ in range(MOST_ROUNDS):
        if high.all() or not high.any():
            break
        ends, before = (rows[~high].mean(0), rows[high].mean(0)), high
        high = (rows - 0.5 * (ends[0] + ends[1])) @ (ends[1] - ends[0]) > 0.0
        if np.array_equal(before, high):
            break
    return members[~high], members[high]


def _hold_clusters(sample: Floats, low: Integers, high: Integers, depth: int = 1) -> bool:
    """Whether two groups of pixels are clusters of their own, or one of them holds such.

    The two means of many clusters are not so far apart, but those of a few of them are.
    """
    least = PIXELS_PER_FEATURE * sample.shape[1]
    if min(len(low), len(high)) < least:
        return False
    means = sample[low].mean(0), sample[high].mean(0)
    away = np.concatenate([sample[low] - means[0], sample[high] - means[1]])
    longest = np.linalg.eigvalsh(away.T @ away / len(away))[-1]
    if np.sum(np.square(means[1] - means[0])) > APART**2 * longest:
        # Values that repeat, as whole numbers do, lie in points: these are no clusters.
        return all(len(np.unique(sample[half], axis=0)) >= least for half in (low, high))
    return depth < DEPTH and any(_hold_clusters(sample, *_halves(sample, half), depth + 1) for half in (low, high))


def _nearest(rows: Floats, centre: Floats) -> Integers:
    """(n_rows,) the centre that is nearest to each row."""
    from sklearn.metrics import pairwise_distances_argmin

    return np.asarray(pairwise_distances_argmin(rows, centre))


def divide(sample: Floats, cell: Integers, n_more: Floats, generator: np.random.Generator) -> Integers:
    """(n_sample,) cell of each pixel, after cells were divided into so many more; none has less than 2 on average."""
    size = np.bincount(cell, minlength=len(n_more))
    n_parts = np.minimum(1 + n_more.astype(np.int64), np.maximum(size // 2, 1))
    first = np.cumsum(n_parts) - n_parts
    out = first[cell]
    for chosen in np.flatnonzero(n_parts > 1):
        mine = np.flatnonzero(cell == chosen)
        out[mine] += _k_means(sample[mine], int(n_parts[chosen]), generator).labels_
    return np.asarray(np.unique(out, return_inverse=True)[1])


def _k_means(sample: Floats, n_cells: int, generator: np.random.Generator) -> "KMeans":
    """k-means with at most so many cells, none of them empty."""
    from sklearn.cluster import KMeans

    n_cells = min(n_cells, len(np.unique(sample, axis=0)))
    return KMeans(n_cells, n_init=1, max_iter=MOST_ROUNDS, random_state=int(generator.integers(2**31))).fit(sample)


def _components(sample: Floats, cell: Integers) -> Components:
    """Cells as components of equal covariance."""
    n = np.bincount(cell)
    total = np.zeros((len(n), sample.shape[1]))
    np.add.at(total, cell, sample)
    mean = total / n[:, None]
    away = sample - mean[cell]
    covariance = away.T @ away / len(sample) + 1e-3 * np.eye(sample.shape[1])
    whiten = np.linalg.cholesky(np.linalg.inv(covariance)).T
    return Components(
        class_of=np.arange(len(n)),
        log_weight=np.log(n / len(sample)),
        mean=mean,
        centre=mean,
        whiten=np.repeat(whiten[None], len(n), 0),
        log_tail=-np.inf,
    )
