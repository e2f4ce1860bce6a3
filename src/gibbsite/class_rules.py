"""How well a component fits a class: three rules, all from the components' sums alone.

`evidence` is the exact one: log M(k ∪ l) − log M(k), all parameters integrated out. Real classes are no mixtures of
components that share one covariance, though, and with many pixels it is sure of every difference, so classes splinter.

`predictive` and `reach` score the component's pixels one by one under a Student t for the class as it stands, and under
the vague prior for a new class. The Student t is taken at the pixels' mean squared distance, which is exact for one
pixel, tight for classes of many, and by Jensen's inequality never above the true value. In `predictive` each pixel is
the first of a new component of the class: Π f_k(x_i), the rule of the authors' program. In `reach` a class reaches as
far as it has shown, in each direction: its components scatter about it with a covariance of their own, made of
`reach_weight` components' worth of Σ_k/κ1 and of the scatter of their means, which counts as many components as there
would be were they of one size.
"""

from dataclasses import dataclass

import numpy as np

from gibbsite import kernels, niw
from gibbsite.kernels.seats import EVIDENCE, PREDICTIVE, REACH, Given, Guests, Tables
from gibbsite.niw import Prior
from gibbsite.statistics import Floats, Integers, Moments

CODE = {"evidence": EVIDENCE, "predictive": PREDICTIVE, "reach": REACH}


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


def seat(rule: str, reach_weight: float, moments: Moments, prior: Prior, class_of: Integers, n_classes: int) -> Seats:
    """Components in their classes; those of class -1, and those without pixels, stand alone."""
    n_components, n_features = moments.mean.shape
    # With spread 0 the sums are those of the pixels: the total scatter.
    summed = niw.without_spread(prior) if rule == "reach" else prior
    log_evidence = niw.log_evidence_of_prior(prior)
    given = Given(
        *(CODE[rule], reach_weight, prior.mean, np.ascontiguousarray(prior.scale)),
        *(prior.kappa0, prior.spread, prior.degrees, prior.gamma, log_evidence),
    )
    weight = niw.component_weight(moments.n, summed)
    guests = Guests(moments.n, moments.mean, moments.scatter, weight, np.full(n_components, -1))
    tables = _empty_tables(n_classes + n_components + 1, n_features)
    kernels.take_seats(class_of, given, guests, tables)
    return Seats(given, guests, tables, n_classes)


def _empty_tables(room: int, n_features: int) -> Tables:
    def numbers(*shape: int) -> Floats:
        return np.zeros((room, *shape))

    d = n_features
    sums = (numbers(), numbers(), numbers(), numbers(d), numbers(d, d), numbers(d, d), numbers())
    return Tables(*sums, np.ones(room, bool), numbers(d), numbers(d, d), numbers(), numbers())
