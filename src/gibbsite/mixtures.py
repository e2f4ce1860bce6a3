"""Discovered classes that lie between others.

A pixel that sees two kinds of ground at once has a spectrum between theirs. Features are linear in the spectrum, so it
lies on the straight line between the two, and a border of many such pixels is a class that nobody labelled, but no
discovery.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

NEAR = 1.25
"""Spreads of a class, within which its mean lies of a mixture that it may be. In simulated scenes nine in ten classes
of border pixels lie nearer, and minerals that nobody labelled 2 spreads and more away."""
MOST_PARTS = 3
LEAST_SHARE = 0.1
"""Of a part."""
WORTH = 0.8
"""A further part must bring the mixture so many times as near."""


@dataclass(frozen=True)
class Mixture:
    """The mixture of other classes that the mean of a class lies nearest to."""

    parts: tuple[tuple[int, float], ...]
    """Index and share of each class in it, the largest share first; one class alone is the plainest mixture."""
    apart: float
    """How far the mean lies from it, in spreads of a class."""

    @property
    def is_near(self) -> bool:
        """Whether the class may be that mixture."""
        return self.apart <= NEAR


def nearest_mixtures(mean: Floats, spread: float, n_known: int) -> list[Mixture | None]:
    """The nearest mixture of each class, by means (n_classes, n_features); None for known ones, and without others.

    Classes are the known ones (NaN where one has no component) and then discovered ones by size. Parts are known
    classes, and larger discovered ones that are no mixtures themselves. `spread` is the usual standard deviation of a
    feature within a class.
    """
    found: list[Mixture | None] = [None] * n_known
    ends = [index for index in range(n_known) if np.isfinite(mean[index]).all()]
    for index in range(n_known, len(mean)):
        nearest = _nearest(mean[index], mean[ends], spread) if ends else None
        if nearest is not None:
            nearest = Mixture(tuple((ends[part], share) for part, share in nearest.parts), nearest.apart)
        if nearest is None or not nearest.is_near:
            ends.append(index)
        found.append(nearest)
    return found


def _nearest(mean: Floats, ends: Floats, spread: float) -> Mixture:
    """The nearest mixture of these ends (n_ends, n_features), of no more parts than it needs."""
    best = _mixture(mean, ends, np.array([((ends - mean) ** 2).sum(1).argmin()]), np.ones(1), spread)
    for parts, share in (_nearest_pair(mean, ends), _nearest_few(mean, ends)):
        other = _mixture(mean, ends, parts, share, spread)
        if share.size > 1 and share.min() >= LEAST_SHARE and other.apart < WORTH * best.apart:
            best = other
    return best


def _nearest_pair(mean: Floats, ends: Floats) -> tuple[Integers, Floats]:
    """The two ends whose line passes nearest, and their shares."""
    one, other = np.triu_indices(len(ends), 1)
    if not one.size:
        return one, np.zeros(0)
    along = ends[other] - ends[one]
    share = ((mean - ends[one]) * along).sum(1) / np.maximum((along**2).sum(1), np.finfo(np.float64).tiny)
    share = np.clip(share, LEAST_SHARE, 1.0 - LEAST_SHARE)
    best = ((ends[one] + share[:, None] * along - mean) ** 2).sum(1).argmin()
    return np.array([one[best], other[best]]), np.array([1.0 - share[best], share[best]])


def _nearest_few(mean: Floats, ends: Floats) -> tuple[Integers, Floats]:
    """The largest few parts of the nearest mixture of all ends, and their shares in the nearest mixture of them."""
    chosen = np.argsort(-_shares(mean, ends), kind="stable")[:MOST_PARTS]
    return chosen, _shares(mean, ends[chosen])


def _shares(mean: Floats, ends: Floats) -> Floats:
    """Shares (n_ends,), none below 0 and of sum 1, of the mixture nearest to the mean."""
    # A row that asks for the sum outweighs all others.
    heavy = 1e4 * max(1.0, float(np.abs(ends).max()))
    share, _ = nnls(np.vstack([ends.T, np.full(len(ends), heavy)]), np.append(mean, heavy))
    return np.asarray(share / share.sum())


def _mixture(mean: Floats, ends: Floats, parts: Integers, share: Floats, spread: float) -> Mixture:
    order = np.argsort(-share, kind="stable")
    left = np.sqrt(np.mean((share @ ends[parts] - mean) ** 2)) if parts.size else np.inf
    return Mixture(tuple((int(parts[i]), float(share[i])) for i in order), float(left / spread))
