"""Geweke's test of the whole sweep: the sampler against its own prior.

Two roads to the joint distribution of partition, parameters and pixels. *Marginal*: all of it drawn from the model, by
the oracles and scipy alone. *Successive*: a chain that alternates a sweep of the sampler, a draw of the parameters
(`draw_components`) and new pixels given parameters and partition. If every step is exact both have the same
distribution, whatever the function looked at (Geweke 2004).

Each function is turned into its rank among the marginal draws, so that heavy tails do no harm, and compared in place
(mean rank) and spread (mean squared distance to the middle rank). A difference is standardised by the effective sample
size of the chain. The limit is that of FALSE_ALARMS for all comparisons of a test together: one false alarm in a
thousand tests, were seeds drawn anew. (Seeds are fixed.)
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import invwishart, norm, rankdata

import oracles
from exact_posterior import FALSE_ALARMS, keeps_labels
from gibbsite import gibbs, moves, tiles
from gibbsite.components import draw_components
from gibbsite.diagnostics import effective_size
from gibbsite.niw import Prior
from gibbsite.state import Rules
from gibbsite.tiles import Tile
from handmade_chains import STEP, prior, rules, state_of


@dataclass(frozen=True)
class World:
    """One draw of everything."""

    label: np.ndarray
    """(n_pixels,) component."""
    class_of: np.ndarray
    """(n_components,) class."""
    mean: np.ndarray
    """(n_components, n_features) μ_l."""
    centre: np.ndarray
    """(n_classes, n_features) μ_k."""
    covariance: np.ndarray
    """(n_classes, n_features, n_features) Σ_k."""
    pixels: Tile


@dataclass(frozen=True)
class Model:
    """What is tested."""

    prior: Prior
    rules: Rules
    known: np.ndarray
    """(n_pixels,) known class or -1."""

    def draw(self, generator: np.random.Generator) -> World:
        """Everything from the prior, given that the labels are kept."""
        given, n_features = self.prior, len(self.prior.mean)
        label, class_of = self._draw_partition(generator)
        n_classes = class_of.max() + 1
        covariance = invwishart(given.degrees, given.scale).rvs(n_classes, random_state=generator)
        covariance = covariance.reshape(n_classes, n_features, n_features)
        centre = given.mean + _noise(covariance / given.kappa0, generator)
        mean = centre[class_of] + _noise(covariance[class_of] * given.spread, generator)
        pixels = self._draw_pixels(mean[label], covariance[class_of[label]], generator)
        return World(label, class_of, mean, centre, covariance, pixels)

    def _draw_pixels(self, mean: np.ndarray, covariance: np.ndarray, generator: np.random.Generator) -> Tile:
        x = mean + _noise(covariance, generator)
        return Tile(0, np.round(x / STEP).astype(np.int16), self.known)

    def _draw_partition(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        while True:
            label = oracles.draw_groups(len(self.known), self.prior.alpha, generator)
            n_components = label.max() + 1
            class_of = np.arange(n_components)
            if not self.rules.is_single:
                class_of = oracles.draw_groups(n_components, self.prior.gamma, generator)
            components = [list(np.flatnonzero(label == c)) for c in range(n_components)]
            classes = [list(np.flatnonzero(class_of == k)) for k in range(class_of.max() + 1)]
            if keeps_labels(components, classes, self.known):
                return label, class_of

    def step(self, world: World, number: int) -> World:
        """A sweep, the parameters given its partition, and pixels given both."""
        chosen = replace(self.rules, seed=number)
        generator = np.random.default_rng([7, number])
        pixels = world.pixels
        state = state_of(pixels, *self._by_class(world), chosen, self.prior)
        state, _ = gibbs.sweep(state, chosen, lambda task, *_: tiles.tally(pixels, task), pixels.part)
        label, class_of = state.block_label, state.class_of
        drawn = draw_components(state, chosen, generator)
        covariance = np.linalg.inv(np.swapaxes(drawn.whiten, 1, 2) @ drawn.whiten)
        pixels = self._draw_pixels(drawn.mean[label], covariance[class_of[label]], generator)
        return World(label, class_of, drawn.mean, drawn.centre, covariance, pixels)

    def _by_class(self, world: World) -> tuple[np.ndarray, np.ndarray]:
        """Labels and classes with known classes under their index and components sorted by class."""
        pixel_class = world.class_of[world.label]
        names = {int(pixel_class[i]): int(self.known[i]) for i in np.flatnonzero(self.known >= 0)}
        others = [k for k in range(world.class_of.max() + 1) if k not in names]
        names |= {k: self.rules.n_known + index for index, k in enumerate(others)}
        class_of = np.array([names[int(k)] for k in world.class_of])
        order = np.argsort(class_of, kind="stable")
        return np.argsort(order)[world.label], class_of[order]

    def functions(self, world: World) -> dict[str, float]:
        """What is compared: of the partition, the pixels, and the parameters of pixel 0, in a class and component."""
        x = world.pixels.feature * STEP
        n_of = np.bincount(world.label)
        components = [list(np.flatnonzero(world.label == c)) for c in range(len(n_of))]
        class_of = world.class_of
        log_joint = oracles.log_seating(n_of, self.prior.alpha)
        if not self.rules.is_single:
            log_joint += oracles.log_seating(np.bincount(class_of)[np.unique(class_of)], self.prior.gamma)
        for k in np.unique(class_of):
            members = [components[c] for c in np.flatnonzero(class_of == k)]
            log_joint += oracles.log_evidence(x, members, self.prior)
        k, c = class_of[world.label[0]], world.label[0]
        precision = np.linalg.inv(world.covariance[k])
        away = {
            "class from prior": world.centre[k] - self.prior.mean,
            "component from class": world.mean[c] - world.centre[k],
            "pixel from component": x[0] - world.mean[c],
        }
        pixel_class = class_of[world.label]
        return {
            "components": len(n_of),
            "classes": len(np.unique(class_of)),
            "largest component": n_of.max(),
            "largest class": np.bincount(pixel_class).max(),
            "pixel 0 and 1 in a component": float(world.label[0] == world.label[1]),
            "pixel 2 and 4 in a class": float(pixel_class[2] == pixel_class[4]),
            "log joint": log_joint,
            "mean": x[:, 0].mean(),
            "mean square": (x**2).mean(),
            "product of features": (x[:, 0] * x[:, -1]).mean(),
            "product of pixels": x[0] @ x[1],
            "log determinant": np.linalg.slogdet(world.covariance[k])[1],
            "covariance": world.covariance[k][0, -1],
            "class mean": world.centre[k][0],
            "component mean": world.mean[c][-1],
        } | {name: difference @ precision @ difference for name, difference in away.items()}


def _noise(covariance: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """One draw from N(0, covariance) each."""
    # A covariance of nothing, as in igmm, has no root.
    value, vector = np.linalg.eigh(covariance)
    root = vector * np.sqrt(np.maximum(value, 0.0))[:, None, :]
    return np.einsum("kab,kb->ka", root, generator.standard_normal(covariance.shape[:2]))


def successive(model: Model, n: int) -> Iterator[World]:
    """The chain; it begins where it should stay."""
    world = model.draw(np.random.default_rng([1, 1]))
    for number in range(n):
        world = model.step(world, number)
        yield world


def compare(model: Model, n_successive: int, n_marginal: int) -> dict[str, float]:
    """Standardised differences of all functions."""
    generator = np.random.default_rng([2, 2])
    marginal = [model.functions(model.draw(generator)) for _ in range(n_marginal)]
    chain = [model.functions(world) for world in successive(model, n_successive)]
    out = {}
    for name in marginal[0]:
        one, other = (np.array([values[name] for values in draws]) for draws in (marginal, chain))
        if np.ptp(one) == 0:
            assert np.ptp(np.append(one, other)) == 0
            continue
        place = rankdata(np.append(one, other)) / (len(one) + len(other)) - 0.5
        for what, values in (("place", place), ("spread", place**2)):
            expected, found = values[: len(one)], values[len(one) :]
            error = expected.var() / len(one) + found.var() / min(len(found), effective_size(found[None]))
            out[f"{what} of {name}"] = float((found.mean() - expected.mean()) / np.sqrt(error)) if error else 0.0
    return out


def check(model: Model, n_successive: int, n_marginal: int) -> None:
    difference = compare(model, n_successive, n_marginal)
    limit = norm.isf(FALSE_ALARMS / 2 / len(difference))
    worst = max(difference, key=lambda name: abs(difference[name]))
    p_value = min(1.0, 2 * norm.sf(abs(difference[worst])) * len(difference))
    # Seen with `pytest -rP`.
    told = f"worst of {len(difference)}: {worst} by {difference[worst]:.2f} standard errors, p = {p_value:.4f}"
    print(told)
    beyond = {name: round(value, 2) for name, value in difference.items() if abs(value) > limit}
    assert not beyond, f"{told}; beyond {limit:.2f}: {beyond}"


MODELS: dict[str, tuple[int, dict[str, Any], dict[str, Any], list[int]]] = {
    "one feature": (1, {"birth_block": 2}, {"alpha": 1.6}, [-1] * 6),
    "two features": (2, {"birth_block": 3, "split_every": 1}, {"spread": 0.4, "gamma": 1.5}, [-1] * 6),
    "labelled": (2, {"birth_block": 2, "n_known": 2}, {"gamma": 1.2}, [0, -1, 1, -1, -1, 0]),
    "one component per class": (2, {"birth_block": 2, "is_single": True}, {"spread": 0.0}, [-1] * 6),
    "one component per class, labelled": (
        *(1, {"birth_block": 3, "is_single": True, "n_known": 2}),
        *({"spread": 0.0}, [-1, 0, 1, -1, 0, -1]),
    ),
    "forty pixels": (3, {"birth_block": 9, "split_every": 1}, {"alpha": 0.8}, [-1] * 40),
}


def model_of(name: str) -> Model:
    n_features, change_rules, change_prior, known = MODELS[name]
    # Enough degrees of freedom that pixels outside the fixed-point range are unheard of.
    given = prior(n_features, **({"degrees": n_features + 6.0, "kappa0": 0.7, "spread": 1.5} | change_prior))
    return Model(given, rules(len(known), **change_rules), np.array(known, np.int16))


@pytest.fixture(autouse=True)
def labels_of_all_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep tells the labels of the next sweep's block; let that block be all pixels."""
    choose = moves.choose_block
    monkeypatch.setattr(
        moves, "choose_block", lambda sweep, chosen: choose(sweep, chosen) if sweep == 1 else (0, chosen.n_pixels)
    )


@pytest.mark.parametrize("name", ["two features", "labelled"])
def test_a_sweep_keeps_the_joint_distribution(name: str) -> None:
    check(model_of(name), 1500, 3000)


@pytest.mark.statistical
@pytest.mark.parametrize("name", MODELS)
def test_many_sweeps_keep_the_joint_distribution(name: str) -> None:
    check(model_of(name), 10_000, 20_000)
