"""How well a component fits a class: three rules, all from the components' sums alone.

`evidence` is the exact one: log M(k ∪ l) − log M(k), all parameters integrated out. Real classes are no mixtures of
components that share one covariance, though, and with many pixels it is sure of every difference, so classes splinter.

`predictive` and `reach` score the component's pixels one by one under a Student t for the class as it stands, and under
the vague prior for a new class. The Student t is taken at the pixels' mean squared distance, which is exact for one
pixel, tight for classes of many, and by Jensen's inequality never above the true value. In `predictive` each pixel is
the first of a new component of the class: Π f_k(x_i), the rule of the authors' program. In `reach` a class reaches as
far as it has shown, in each direction: its components scatter about it with a covariance of their own, made of
`reach_weight` components' worth of Σ_k/κ1 and of the scatter of their means, which counts as many components as there
would be were they of one size. A new class lies, in the same way, where the scene's components do, unless κ0 was
estimated from them. (The vague κ0 alone puts it anywhere in a space ten times as wide as the scene, where any class
that has spread over the whole scene explains its pixels better: such a class swallowed a quarter of a table.)
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gibbsite import kernels, niw
from gibbsite.kernels.seats import EVIDENCE, PREDICTIVE, REACH, Given, Guests, Tables
from gibbsite.niw import Prior
from gibbsite.statistics import Floats, Integers, Moments

CODE = {"evidence": EVIDENCE, "predictive": PREDICTIVE, "reach": REACH}


class Rule(NamedTuple):
    """How a component chooses."""

    name: str
    """`evidence`, `predictive` or `reach`."""
    reach_weight: float = 0.0
    """Weight of the prior in how far a class reaches, in components."""
    is_estimated: bool = False
    """Whether the prior was estimated, and so knows where classes lie."""


@dataclass
class Seats:
    """The classes of components while these change hands, one by one."""

    given: Given
    guests: Guests
    tables: Tables
    n_classes: int

    def change(self, component: int, class_index: int, sign: float) -> None:
        """Let a component join (+1) or leave (-1) a class."""
        kernels.change_seat(component, class_index, sign, self.given, self.guests, self.tables)

    def log_fit(self, component: int, class_index: int) -> float:
        """Log density of the component's pixels in a class; an empty class is a new one."""
        return float(kernels.log_fit(component, class_index, self.given, self.guests, self.tables))

    def choose(self, order: Integers, uniform: Floats) -> None:
        """Let components leave their class, if they have one, and draw another."""
        self.n_classes = kernels.choose_seats(order, uniform, self.given, self.guests, self.tables, self.n_classes)


def seat(rule: Rule, moments: Moments, prior: Prior, class_of: Integers, n_classes: int) -> Seats:
    """Components in their classes; those of class -1, and those without pixels, stand alone."""
    n_components, n_features = moments.mean.shape
    # With spread 0 the sums are those of the pixels: the total scatter.
    summed = niw.without_spread(prior) if rule.name == "reach" else prior
    given = Given(
        rule=CODE[rule.name],
        reach_weight=rule.reach_weight,
        mean=prior.mean,
        scale=np.ascontiguousarray(prior.scale),
        kappa0=prior.kappa0,
        spread=prior.spread,
        degrees=prior.degrees,
        gamma=prior.gamma,
        log_evidence=niw.log_evidence_of_prior(prior),
        abroad=_abroad(rule, moments, prior),
    )
    weight = niw.component_weight(moments.n, summed)
    guests = Guests(moments.n, moments.mean, moments.scatter, weight, np.full(n_components, -1))
    tables = _empty_tables(n_classes + n_components + 1, n_features)
    kernels.take_seats(class_of, given, guests, tables)
    return Seats(given, guests, tables, n_classes)


def _abroad(rule: Rule, moments: Moments, prior: Prior) -> Floats:
    """Covariance (d, d) of where new classes lie: the prior's, and with `reach` that of the components."""
    by_prior = prior.scale / (prior.kappa0 * (prior.degrees - len(prior.mean) + 1.0))
    if rule.name != "reach" or rule.is_estimated:
        return np.ascontiguousarray(by_prior)
    share = moments.n / moments.n.sum()
    away = moments.mean - share @ moments.mean
    n_effective = 1.0 / np.square(share).sum()
    shown = (away * share[:, None]).T @ away
    return np.asarray((rule.reach_weight * by_prior + n_effective * shown) / (rule.reach_weight + n_effective))


def _empty_tables(room: int, n_features: int) -> Tables:
    def numbers(*shape: int) -> Floats:
        return np.zeros((room, *shape))

    d = n_features
    sums = (numbers(), numbers(), numbers(), numbers(d), numbers(d, d), numbers(d, d), numbers())
    return Tables(*sums, np.ones(room, bool), numbers(d), numbers(d, d), numbers(), numbers())
