"""Tables drawn from a known law: the paper's two-layer mixture, and a rare-cell search."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import invwishart

from gibbsite.experiments.catalogue import N_SIMULATED_CLASSES
from gibbsite.experiments.table import Floats, Integers, Table

N_CLASSES, N_COMPONENTS, N_ROWS = N_SIMULATED_CLASSES, 70, 3000
KAPPA0, KAPPA1 = 0.01, 0.3
FEWEST = 5
"""Rows of the smallest class: with fewer nobody could score it."""


@dataclass(frozen=True, eq=False)
class TwoLayers:
    """A draw of the law of the paper's appendix."""

    table: Table
    class_of: Integers
    """(n_components)"""
    size: Integers
    """(n_components) rows"""
    mean: Floats
    """(n_components, 2)"""
    covariance: Floats
    """(n_classes, 2, 2)"""


def two_layers(seed: int) -> TwoLayers:
    """2-D, 10 classes, 70 components, 3000 rows, drawn as the paper's appendix says."""
    generator = np.random.default_rng(seed)
    while True:
        per_class = 1 + generator.multinomial(N_COMPONENTS - N_CLASSES, generator.dirichlet(np.ones(N_CLASSES)))
        class_of = np.repeat(np.arange(N_CLASSES), per_class)
        size = generator.multinomial(N_ROWS, generator.dirichlet(np.ones(N_COMPONENTS)))
        if np.bincount(class_of, weights=size).min() >= FEWEST:
            break
    rows, means, covariances = [], [], []
    for k in range(N_CLASSES):
        covariance = invwishart(4, np.eye(2)).rvs(random_state=generator)
        covariances.append(covariance)
        centre = generator.multivariate_normal(np.zeros(2), covariance / KAPPA0)
        for component in np.flatnonzero(class_of == k):
            means.append(generator.multivariate_normal(centre, covariance / KAPPA1))
            rows.append(generator.multivariate_normal(means[-1], covariance, size[component]))
    table = Table.of(np.concatenate(rows), np.repeat(class_of, size))
    return TwoLayers(table, class_of, size, np.array(means), np.array(covariances))


def rare_cells(far: float, n_cells: int, seed: int = 2) -> Table:
    """Two samples of `n_cells` of one common phenotype; the second also has two rare ones, 0.1 % of it together.

    8 channels. The common phenotype is 6 Gaussians of standard deviation .7 whose centres scatter with 1; the rare
    ones, of standard deviation .5, lie `far` from two of these centres. The class of every cell of the first sample is
    given.
    """
    generator = np.random.default_rng(seed)
    n_channels, n_rare = 8, max(10, n_cells // 2000)
    centre = generator.normal(size=(6, n_channels))
    common = centre[generator.integers(0, 6, 2 * n_cells)] + 0.7 * generator.normal(size=(2 * n_cells, n_channels))
    away = far * np.eye(n_channels)[:2] * np.array([[1.0], [-1.0]])
    rare = [place + 0.5 * generator.normal(size=(n_rare, n_channels)) for place in centre[:2] + away]
    truth = np.repeat([0, 1, 2], [2 * n_cells, n_rare, n_rare])
    is_given = np.arange(len(truth)) < n_cells
    order = generator.permutation(len(truth))
    x = np.concatenate([common, *rare])
    return Table(x[order], truth[order], ("common", "rare 1", "rare 2"), is_given[order])
