"""Small tables and states for tests of the sampler."""

from typing import Any

import numpy as np

from gibbsite import start, tiles
from gibbsite.niw import Prior
from gibbsite.state import Rules, State
from gibbsite.tiles import Tile

STEP = 2.0**-10

Partition = frozenset[frozenset[frozenset[int]]]
"""Classes of components of pixels."""


def prior(n_features: int, **changes: Any) -> Prior:
    """A prior without any symmetry."""
    generator = np.random.default_rng(7)
    root = generator.normal(size=(n_features, n_features))
    values: dict[str, Any] = {
        "mean": 0.2 + 0.1 * np.arange(n_features),
        "scale": 0.7 * np.eye(n_features) + 0.05 * root @ root.T,
        "kappa0": 0.3,
        "spread": 2.0,
        "degrees": n_features + 2.0,
        "alpha": 1.3,
        "gamma": 0.7,
    }
    return Prior(**(values | changes))


def rules(n_pixels: int, **changes: Any) -> Rules:
    """Rules of an i2gmm chain without known classes."""
    values: dict[str, Any] = {
        "seed": 5,
        "step": STEP,
        "n_known": 0,
        "n_pixels": n_pixels,
        "constants": None,
        "is_single": False,
        "class_rule": "evidence",
        "birth_block": n_pixels,
    }
    return Rules(**(values | changes))


def tile(n_pixels: int, n_features: int, seed: int = 3, scale: float = 1.2) -> Tile:
    """Gaussian pixels, unlabelled."""
    values = np.random.default_rng(seed).normal(size=(n_pixels, n_features)) * scale
    return Tile(0, np.round(values / STEP).astype(np.int16), np.full(n_pixels, -1, np.int16))


def clusters(n_pixels: int, n_features: int, n_clusters: int, seed: int = 1) -> tuple[Tile, np.ndarray]:
    """Pixels of well separated Gaussians of uneven size, and their cluster."""
    generator = np.random.default_rng(seed)
    label = generator.choice(n_clusters, n_pixels, p=generator.dirichlet(np.full(n_clusters, 3.0)))
    centre = 4.0 * generator.normal(size=(n_clusters, n_features))
    values = centre[label] + 0.5 * generator.normal(size=(n_pixels, n_features))
    return Tile(0, np.round(values / STEP).astype(np.int16), np.full(n_pixels, -1, np.int16)), label


def state_of(pixels: Tile, label: np.ndarray, class_of: np.ndarray, chosen: Rules, given: Prior) -> State:
    """The state in which pixels have these components and components these classes."""
    task = start.first_pass(None, chosen)
    reply = tiles.answer(pixels, label.astype(np.int64), len(class_of), task)
    return start.state_of(reply, class_of, int(class_of.max()) + 1, given)


def state_from(partition: Partition, pixels: Tile, chosen: Rules, given: Prior) -> State:
    """The state of a partition; a class with labelled pixels is the known class they name."""
    named = {frozenset(members): max(int(pixels.known[i]) for c in members for i in c) for members in partition}
    new = sorted((members for members in partition if named[members] < 0), key=lambda one: min(map(min, one)))
    index = {members: k for members, k in named.items() if k >= 0}
    index |= {members: chosen.n_known + k for k, members in enumerate(new)}
    label, class_of = np.empty(len(pixels.feature), np.int64), []
    for members, k in sorted(index.items(), key=lambda item: item[1]):
        for component in sorted(members, key=min):
            label[list(component)] = len(class_of)
            class_of.append(k)
    return state_of(pixels, label, np.array(class_of), chosen, given)
