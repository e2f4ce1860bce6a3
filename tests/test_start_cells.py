"""The cells chains begin with."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

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


def test_cells_are_parted_into_the_clusters_they_hold_and_no_further() -> None:
    generator = np.random.default_rng(4)
    corner = np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0], [9.0, 30.0, 0.0], [0.0, 0.0, 12.0]])
    cluster = np.repeat(np.arange(4), 80)
    sample = corner[cluster] + generator.normal(size=(320, 3))
    cell, centre = start_cells.part_clusters(sample, np.zeros(320, np.int64), sample.mean(0, keepdims=True))
    assert len(set(zip(cell.tolist(), cluster.tolist(), strict=True))) == len(centre) == 4
    for number in range(4):
        np.testing.assert_allclose(centre[number], sample[cell == number].mean(0))


@pytest.mark.parametrize(
    "kind",
    [
        "normal",
        "even",
        "two that overlap",
        "whole numbers",
        "grey levels",
        "rows that repeat",
        "few rows of many features",
        "a few far off",
        "all the same",
    ],
)
def test_a_cell_without_two_clusters_stays_whole(kind: str) -> None:
    for seed in range(20):
        generator = np.random.default_rng(seed)
        sample = {
            "normal": generator.normal(size=(2000, 3)),
            "even": generator.random((2000, 3)),
            "two that overlap": generator.normal(size=(2000, 3)) + 4.0 * (np.arange(2000) % 2)[:, None] * [1, 0, 0],
            "whole numbers": np.round(3.0 * generator.normal(size=(2000, 3)) * [1.0, 1.0, 0.2]),
            "grey levels": np.round(generator.normal(50.0, 1.0, (2000, 1))),
            "rows that repeat": generator.normal(size=(20, 3))[generator.integers(0, 20, 2000)],
            "few rows of many features": generator.normal(size=(60, 40)),
            "a few far off": generator.normal(size=(2000, 3)) + 50.0 * (np.arange(2000) < 10)[:, None],
            "all the same": np.full((2000, 3), 0.1),
        }[kind]
        cell, centre = start_cells.part_clusters(sample, np.zeros(len(sample), np.int64), sample[:1])
        assert cell.max() == 0, f"seed {seed}: {np.bincount(cell)}"
        assert len(centre) == 1


@pytest.mark.parametrize("seed", [1, 2])
def test_more_clusters_than_cells_are_found(seed: int) -> None:
    generator = np.random.default_rng(seed)
    corner: list[np.ndarray] = []
    while len(corner) < 60:
        candidate = generator.uniform(-30.0, 30.0, 3)
        if all(np.linalg.norm(candidate - other) > 8.0 for other in corner):
            corner.append(candidate)
    cluster = generator.permutation(np.repeat(np.arange(60), 80))
    values = np.array(corner)[cluster] + generator.normal(size=(len(cluster), 3))
    found = NonExhaustiveClassifier(sweeps=40, chains=2, random_state=seed).fit(values)
    assert adjusted_rand_score(cluster, found.labels_) > 0.95
