"""From draws to what a map shows: the class of each pixel and how sure that is."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from gibbsite import kernels
from gibbsite.components import Components
from gibbsite.statistics import Floats, Integers

Codes = NDArray[np.uint16]
LEAST_SHARED = 0.1
"""Of the smaller of two classes: they are not the same if they share less."""


@dataclass(frozen=True)
class Certainty:
    """The answer for some pixels, one entry each."""

    code: NDArray[np.uint16]
    """Code of the likeliest class, from 1."""
    probability: NDArray[np.float32]
    """Probability of that class."""
    entropy: NDArray[np.float32]
    """Entropy of the class probabilities, in bits."""
    unknown: NDArray[np.float32]
    """Probability that the pixel is of no known class."""


def class_probabilities(feature: NDArray[np.int16], draws: list[Components], step: float) -> Floats:
    """(n_pixels, n_classes) class probabilities, averaged over the draws."""
    return _average(feature, draws, step, [components.lanes()[0] for components in draws])


def component_probabilities(feature: NDArray[np.int16], draws: list[Components], step: float) -> Floats:
    """(n_pixels, n_components) component probabilities, averaged over the draws of one structure."""
    return _average(feature, draws, step, [np.arange(len(components.mean) + 1) for components in draws])


def _average(feature: NDArray[np.int16], draws: list[Components], step: float, starts: list[Integers]) -> Floats:
    """(n_pixels, n_groups) probabilities of groups of components, which start so."""
    out = np.zeros((len(feature), len(starts[0]) - 1))
    plane = kernels.lay_out(feature)
    for components, start in zip(draws, starts, strict=True):
        kernels.add_odds(plane, np.float32(step), components.lanes(), start, out)
    return out / len(draws)


def sum_by_class(component_probability: Floats, class_of: Integers, n_classes: int) -> Floats:
    """(n_pixels, n_classes) class probabilities; `class_of` (n_components,) never falls."""
    edges = np.searchsorted(class_of, np.arange(n_classes + 1))
    spans = [slice(*span) for span in pairwise(edges)]
    # Row by row, so that a sum does not depend on how many pixels are summed at once.
    return np.stack([component_probability[:, span].sum(1) for span in spans], axis=1)


def likeliest_component(component_probability: Floats, class_of: Integers, code: NDArray[np.uint16]) -> Codes:
    """(n_pixels,) number, from 1, of the likeliest component of the class that each pixel was given."""
    is_own = class_of == code[:, None].astype(np.int64) - 1
    return (np.where(is_own, component_probability, -1.0).argmax(1) + 1).astype(np.uint16)


def match_classes(probability: Floats, reference: Floats, n_known: int) -> Integers:
    """(n_classes,) class of the reference that each class of other probabilities of the same pixels stands for.

    Known classes stand for themselves. Discovered ones are paired, one to one, so that the pairs share as many pixels
    as possible; -1 for those left over, and for those whose partner is another class: an assignment pairs all it can,
    also what shares next to nothing.
    """
    found = np.full(probability.shape[1], -1)
    found[:n_known] = np.arange(n_known)
    mine, others = probability[:, n_known:], reference[:, n_known:]
    shared = mine.T @ others
    one, other = linear_sum_assignment(-shared)
    is_same = shared[one, other] >= LEAST_SHARED * np.minimum(mine.sum(0)[one], others.sum(0)[other])
    found[n_known + one[is_same]] = n_known + other[is_same]
    return found


def common_classes(answers: Iterable[Floats], n_known: int) -> tuple[list[Integers], Floats]:
    """Which common class each class of each answer stands for, and (n_pixels, n_common) their mean probabilities.

    Answers (n_pixels, n_classes) are taken one by one, and their classes paired with the mean of those before (online
    relabelling after Stephens 2000); a class without partner is a common class from then on. So no answer is the
    measure of all: what most of them tell apart is told apart, though the first one does not.
    """
    found: list[Integers] = []
    total = np.zeros((0, n_known))
    for probability in answers:
        if not found:
            total = np.zeros((len(probability), n_known))
        stands_for = match_classes(probability, total / max(1, len(found)), n_known)
        is_new = stands_for < 0
        stands_for[is_new] = total.shape[1] + np.arange(is_new.sum())
        total = np.pad(total, ((0, 0), (0, int(is_new.sum()))))
        total[:, stands_for] += probability
        found.append(stands_for)
    return found, total / max(1, len(found))


def certainty(probability: Floats, n_known: int) -> Certainty:
    """Winner, its probability, entropy and P(no known class) of class probabilities (n_pixels, n_classes)."""
    winner = probability.argmax(1)
    # Rounding may leave a probability a hair below 0 or above 1.
    positive = np.clip(probability, 1e-300, 1.0)
    entropy = -(probability * np.log2(positive)).sum(1)
    return Certainty(
        code=(winner + 1).astype(np.uint16),
        probability=np.minimum(probability[np.arange(len(winner)), winner], 1.0).astype(np.float32),
        entropy=np.maximum(entropy, 0.0).astype(np.float32),
        unknown=np.clip(probability[:, n_known:].sum(1), 0.0, 1.0).astype(np.float32),
    )
