"""How well a component fits a class: three rules, all from the components' sums alone.

`evidence` is the exact one. Real classes are no mixtures of components that share one covariance, though, and with many
pixels it is sure of every difference, so classes splinter. `predictive` and `reach` score the component's pixels one by
one under a Student t for the class as it stands, and under the vague prior for a new class.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from gibbsite import niw
from gibbsite.niw import Posterior, Prior, Sums
from gibbsite.statistics import Floats, Moments


class ClassRule(Protocol):
    """Keeps the classes' sums while components come and go, and scores a component that stands alone."""

    def change(self, component: int, class_index: int, sign: float) -> None:
        """Let a component join (+1) or leave (-1) a class."""

    def scores(self, component: int, n_classes: int) -> Floats:
        """(n_classes,) log density of the component's pixels in each class; an empty class is a new one."""


class Evidence:
    """log M(k ∪ l) − log M(k): the exact conditional, all parameters integrated out."""

    def __init__(self, moments: Moments, prior: Prior, room: int) -> None:
        self._prior = prior
        self._component = niw.component_sums(moments, prior)
        self._sums = empty_sums(room, moments.mean.shape[1])
        self._log_evidence: Floats = niw.log_evidence(self._sums, prior)

    def change(self, component: int, class_index: int, sign: float) -> None:
        change_sums(self._sums, class_index, self._component[component], sign)
        self._log_evidence[class_index] = niw.log_evidence(self._sums[class_index], self._prior)

    def scores(self, component: int, n_classes: int) -> Floats:
        joined = niw.log_evidence(self._sums[:n_classes] + self._component[component], self._prior)
        return joined - self._log_evidence[:n_classes]


class _Students:
    """Each class as one Student t, kept up to date."""

    def __init__(self, moments: Moments, prior: Prior, room: int) -> None:
        self._moments, self._prior = moments, prior
        n_features = moments.mean.shape[1]
        self._mean = np.zeros((room, n_features))
        self._inverse = np.zeros((room, n_features, n_features))
        self._half, self._constant = np.zeros(room), np.zeros(room)
        self._stale = np.ones(room, bool)

    def scores(self, component: int, n_classes: int) -> Floats:
        """Of the component's pixels, the Student t taken at their mean squared distance.

        That is exact for one pixel, tight for classes of many, and by Jensen's inequality never above the true value.
        """
        for k in np.flatnonzero(self._stale[:n_classes]).tolist():
            self._keep(k, self._given(k))
        moments = self._moments
        away = moments.mean[component] - self._mean[:n_classes]
        spread = moments.scatter[component] / moments.n[component]
        inverse = self._inverse[:n_classes]
        distance = np.einsum("kab,ab->k", inverse, spread) + np.einsum("ka,kab,kb->k", away, inverse, away)
        log_density = self._constant[:n_classes] - self._half[:n_classes] * np.log1p(distance)
        return np.asarray(moments.n[component] * log_density)

    def _given(self, class_index: int) -> Posterior:
        raise NotImplementedError

    def _keep(self, k: int, given: Posterior) -> None:
        """Remember a Student t with ν − d + 1 degrees and scale matrix Ψ/(ν − d + 1)."""
        self._mean[k], self._inverse[k] = given.mean, np.linalg.inv(given.scale)
        self._half[k] = 0.5 * (given.degrees + 1.0)
        self._constant[k] = niw.log_student_constant(given)
        self._stale[k] = False


class Predictive(_Students):
    """Π f_k(x_i): each pixel as the first of a new component of the class (the rule of the authors' program)."""

    def __init__(self, moments: Moments, prior: Prior, room: int) -> None:
        super().__init__(moments, prior, room)
        self._component = niw.component_sums(moments, prior)
        self._sums = empty_sums(room, moments.mean.shape[1])

    def change(self, component: int, class_index: int, sign: float) -> None:
        change_sums(self._sums, class_index, self._component[component], sign)
        self._stale[class_index] = True

    def _given(self, class_index: int) -> Posterior:
        given = niw.posterior(self._sums[class_index], self._prior)
        inflation = 1.0 + self._prior.spread + 1.0 / given.kappa
        return Posterior(given.mean, given.scale * inflation, given.kappa, given.degrees)


class Reach(_Students):
    """As predictive, but each class reaches as far as it has shown, in each direction.

    Its components scatter about it with a covariance of their own: `weight` components' worth of Σ_k/κ1, and the
    scatter of the class's components' means, which counts as many components as would be there were they of one size.
    """

    def __init__(self, moments: Moments, prior: Prior, room: int, weight: float) -> None:
        super().__init__(moments, prior, room)
        self._weight = weight
        # With spread 0 the sums are those of the pixels: the total scatter.
        self._component = niw.component_sums(moments, niw.without_spread(prior))
        self._sums = empty_sums(room, moments.mean.shape[1])
        self._within = np.zeros_like(self._inverse)
        self._squared_sizes = np.zeros(room)

    def change(self, component: int, class_index: int, sign: float) -> None:
        change_sums(self._sums, class_index, self._component[component], sign)
        is_empty = self._sums.n[class_index] == 0.0
        within = self._within[class_index] + sign * self._moments.scatter[component]
        squared = self._squared_sizes[class_index] + sign * self._moments.n[component] ** 2
        self._within[class_index], self._squared_sizes[class_index] = (0.0, 0.0) if is_empty else (within, squared)
        self._stale[class_index] = True

    def _given(self, class_index: int) -> Posterior:
        prior, sums = self._prior, self._sums[class_index]
        n_features = len(prior.mean)
        degrees = prior.degrees + sums.n
        if sums.n == 0.0:
            return Posterior(prior.mean, prior.scale * (1.0 + prior.spread + 1.0 / prior.kappa0), sums.n, degrees)
        free = degrees - n_features + 1.0
        covariance = (prior.scale + self._within[class_index]) / free
        mean = sums.total / sums.n
        between = (sums.outer - self._within[class_index]) / sums.n - np.outer(mean, mean)
        n_effective = sums.n**2 / self._squared_sizes[class_index]
        scatter = self._weight * prior.spread * covariance + n_effective * between
        reach = covariance + scatter / (self._weight + n_effective)
        return Posterior(mean, reach * free, sums.n, degrees)


def empty_sums(n_classes: int, n_features: int) -> Sums:
    """The sums of classes without components."""
    return Sums(
        np.zeros(n_classes),
        np.zeros(n_classes),
        np.zeros((n_classes, n_features)),
        np.zeros((n_classes, n_features, n_features)),
        np.zeros(n_classes),
    )


def change_sums(sums: Sums, class_index: int, component: Sums, sign: float) -> None:
    """Add a component's sums to a class, or take them out."""
    whole = (sums.n, sums.weight, sums.total, sums.outer, sums.shrink)
    one = (component.n, component.weight, component.total, component.outer, component.shrink)
    for values, change in zip(whole, one, strict=True):
        values[class_index] += sign * change
    if sums.n[class_index] < 0.5:
        # What rounding left behind in an emptied class must not reach the next one that opens there.
        for values in whole:
            values[class_index] = 0.0


def make(name: str, reach_weight: float) -> Callable[[Moments, Prior, int], ClassRule]:
    """The rule of this name, to be given the components, the prior and the room for classes."""
    if name == "reach":
        return lambda moments, prior, room: Reach(moments, prior, room, reach_weight)
    return Evidence if name == "evidence" else Predictive
