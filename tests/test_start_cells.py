"""The cells chains begin with."""

import numpy as np

from gibbsite import start, start_cells, tiles
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
    assert len(state.class_of) <= 5
