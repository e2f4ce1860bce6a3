"""What a chain carries from sweep to sweep (State), and what stays fixed (Rules)."""

from dataclasses import dataclass, replace

import numpy as np

from gibbsite.hyper import HyperPrior
from gibbsite.niw import Prior
from gibbsite.statistics import Integers, Statistics
from gibbsite.tiles import Anchors


@dataclass(frozen=True)
class Rules:
    """What does not change during a chain."""

    seed: int
    """Of this chain."""
    step: float
    """Fixed-point step of the features."""
    n_known: int
    """Classes 0 .. n_known − 1 are the known ones; they never vanish."""
    n_pixels: int
    """In all scenes."""
    constants: HyperPrior | None
    """Re-estimate the hyper-parameters every sweep (ai2gmm), or not (None)."""
    is_single: bool
    """Every class has one component (igmm)."""
    class_rule: str
    """How a component chooses its class: 'evidence', 'predictive' or 'reach'."""
    birth_block: int
    """Pixels per sweep that may open and close components."""
    reach_weight: float = 2.0
    """Of the prior in how far a class reaches, in components (rule 'reach')."""
    trust: float = np.inf
    """Log odds that the label of a pixel that pins is right. Finite: such pixels may sit in other classes, and
    components are named by those that fit them best."""
    is_grouped: bool = False
    """Begin with classes that are groups of components better one Gaussian than two, where labels name none."""
    split_every: int = 0
    """Sweeps from one proposal of splits and merges to the next; 0: none."""


@dataclass(frozen=True)
class State:
    """A two-level partition of the pixels, known by its sums, and the hyper-parameters.

    Of single pixels it knows only the next block's, and one anchor per component.
    """

    sweep: int
    """Sweeps done."""
    statistics: Statistics
    """Of each component; components of a class stand together."""
    class_of: Integers
    """(n_components,) class index of each component, never falling."""
    class_id: Integers
    """(n_classes,) a name for each class that is never reused; known classes have their index."""
    next_class_id: int
    """The first id not used yet."""
    prior: Prior
    """Hyper-parameters."""
    anchors: Anchors
    """Of each component, among the pixels outside the next block."""
    block_label: Integers
    """(n_block,) component of each pixel of the next block."""

    @property
    def is_explicit(self) -> np.ndarray:
        """(n_components,) whether the component has pixels outside the next block."""
        return self.anchors.rank >= 0


def name_classes(state: State, class_of: Integers, n_classes: int) -> State:
    """The state with these classes of its components; indices past the present classes are new ones, with new ids."""
    n_new, first = max(0, n_classes - len(state.class_id)), state.next_class_id
    class_id = np.append(state.class_id, first + np.arange(n_new))
    return replace(state, class_of=class_of, class_id=class_id, next_class_id=first + n_new)


def tidy(state: State, n_known: int) -> State:
    """The state without empty components and without the classes they leave empty; components sorted by class."""
    kept = np.flatnonzero(state.statistics.n > 0)
    kept = kept[np.argsort(state.class_of[kept], kind="stable")]
    place = np.full(len(state.class_of), -1)
    place[kept] = np.arange(len(kept))
    class_of = state.class_of[kept]
    is_used = np.bincount(class_of, minlength=len(state.class_id)) > 0
    is_used[:n_known] = True
    index = np.cumsum(is_used) - 1
    return replace(
        state,
        statistics=state.statistics[kept],
        class_of=index[class_of],
        class_id=state.class_id[is_used],
        anchors=state.anchors[kept],
        block_label=place[state.block_label],
    )
