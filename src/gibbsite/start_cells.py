"""The components a chain begins with: k-means++ cells of the pixels, more of them where labels lie."""

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

    Where labelled pixels lie they are divided further (`n_cells`: of all, and at most so many more). Each component is
    one more to find a class for, and without labels chains from many cells end in too many classes. Labels name the
    components about them, and there small components follow the border of a class better.
    """
    # Fewer pixels than features say nothing of a shape: 32 cells of 60 pixels with 90 features ended in 30 classes.
    most = max(LEAST_CELLS, len(sample) // sample.shape[1])
    coarse = _k_means(sample, min(n_cells[0], most), generator)
    cell = coarse.labels_.astype(np.int64)
    if n_cells[1] > 0 and len(pins) > 0:
        n_pins = np.bincount(coarse.predict(pins), minlength=len(coarse.cluster_centers_))
        cell = divide(sample, cell, n_pins / max(1.0, len(pins) / n_cells[1]), generator)
    return _components(sample, cell)


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
    return KMeans(n_cells, n_init=1, max_iter=20, random_state=int(generator.integers(2**31))).fit(sample)


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
