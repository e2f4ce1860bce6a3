"""The cells chains begin with."""

import numpy as np
import pytest

from gibbsite import NonExhaustiveClassifier, start, start_cells, tiles
from gibbsite.tiles import Tile
from handmade_chains import STEP, prior, rules


def test_cells_are_divided_into_parts_that_share_no_pixel() -> None:
    generator = np.random.default_rng(1)
    sample = generator.normal(size=(300, 2))
    cell = np.repeat([0, 1, 2], 100)
    parts = start_cells.divide(sample, cell, np.array([0.0, 4.9, 1000.0]), generator)
    assert np.unique(parts[cell == 0]).size == 1
    assert np.unique(parts[cell == 1]).size == 5
    assert np.unique(parts[cell == 2]).size == 50, "a cell has at most half as many parts as pixels"
    assert len(np.unique(parts)) == parts.max() + 1 == 56


def test_cells_have_as_many_pixels_as_features_on_average() -> None:
    generator = np.random.default_rng(3)
    feature = np.round(generator.normal(size=(200, 40)) / STEP).astype(np.int16)
    pixels = Tile(0, feature, np.full(200, -1, np.int16))
    reads = (lambda task, *_: tiles.tally(pixels, task), pixels.part)
    state = start.first_state(None, rules(200, birth_block=50), prior(40), (12, 0), reads)
    assert len(state.class_of) <= start_cells.LEAST_CELLS


@pytest.mark.parametrize("model", ["igmm", "i2gmm", "ai2gmm"])
def test_clusters_far_apart_are_not_one_class_though_features_are_as_many_as_their_pixels(model: str) -> None:
    generator = np.random.default_rng(0)
    cluster = np.repeat(np.arange(3), 50)
    values = generator.normal(size=(150, 60)) + 3.0 * cluster[:, None]
    label = NonExhaustiveClassifier(model, sweeps=5, chains=1).fit(values).labels_
    assert len(np.unique(label)) >= 3
    # However a cluster is cut, no class reaches over two of them.
    assert len(set(zip(label.tolist(), cluster.tolist(), strict=True))) == len(np.unique(label))
