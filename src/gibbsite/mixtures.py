"""Discovered classes that lie between others.

A pixel that sees two kinds of ground at once has a spectrum between theirs. Features are linear in the spectrum, so it
lies on the straight line between the two, and a border of many such pixels is a class that nobody labelled, but no
discovery.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

NEAR = 4.0
"""Standard deviations of a feature within the parts of a mixture, as far from which a class may be that mixture. In
simulated scenes nine in ten classes of border pixels lie nearer, and minerals that nobody labelled 5 and more away."""
LEAST_SHARE = 0.1
"""Of a part."""
WORTH = 0.8
"""Once a mixture is near, a further part must bring it to this share of the distance."""
MOST_ENDS = 40
"""Of the ends, the nearest, that may be one of three parts: so many have 9,880 threes."""
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Mixture:
    """The mixture of other classes that the mean of a class lies nearest to."""

    parts: tuple[tuple[int, float], ...]
    """Index and share of each class in it, the largest share first; one class alone is the plainest mixture."""
    apart: float
    """How far the mean lies from it, in standard deviations of a feature within its parts."""

    @property
    def is_near(self) -> bool:
        """Whether the class may be that mixture."""
        return self.apart <= NEAR


def nearest_mixtures(mean: Floats, variance: Floats, n_known: int) -> list[Mixture | None]:
    """The nearest mixture of each class: None for known ones, and where there is no other.

    By means (n_classes, n_features) and variances (n_classes,) of an average feature, NaN for a class without
    components. Classes are the known ones and then discovered ones by size. Parts are known classes, and larger
    discovered ones that are no mixtures themselves.
    """
    found: list[Mixture | None] = [None] * n_known
    ends = [index for index in range(n_known) if np.isfinite(variance[index])]
    for index in range(n_known, len(mean)):
        nearest = _nearest(index, ends, mean, variance) if ends else None
        if nearest is None or not nearest.is_near:
            ends.append(index)
        found.append(nearest)
    return found


def _nearest(index: int, ends: list[int], mean: Floats, variance: Floats) -> Mixture:
    """The nearest mixture of these ends, of no more parts than it needs to be near."""
    best = None
    for some in (_single, _pair, _triple):
        found = some(mean[index], mean[ends])
        if found is None:
            continue
        parts, share = np.array(ends)[found[0]], found[1]
        spread = max(float(np.sqrt(share @ variance[parts])), float(_TINY))
        apart = float(np.linalg.norm(share @ mean[parts] - mean[index])) / spread
        if best is None or apart < (WORTH if best.is_near else 1.0) * best.apart:
            order = np.argsort(-share, kind="stable")
            best = Mixture(tuple((int(parts[i]), float(share[i])) for i in order), apart)
    assert best is not None, "one end alone always is a mixture"
    return best


def _single(mean: Floats, ends: Floats) -> tuple[Integers, Floats]:
    """The nearest end (n_ends, n_features), and its share."""
    return np.array([((ends - mean) ** 2).sum(1).argmin()]), np.ones(1)


def _pair(mean: Floats, ends: Floats) -> tuple[Integers, Floats] | None:
    """The two ends whose line passes nearest, and their shares there; None where it passes nowhere between two."""
    one, other = np.triu_indices(len(ends), 1)
    along, off = ends[other] - ends[one], mean - ends[one]
    share = (off * along).sum(1) / np.maximum((along**2).sum(1), _TINY)
    return _best(mean, ends, np.stack([one, other], 1), np.stack([1.0 - share, share], 1))


def _triple(mean: Floats, ends: Floats) -> tuple[Integers, Floats] | None:
    """The same of the three ends whose plane passes nearest, among the nearest ones."""
    near = np.argsort(((ends - mean) ** 2).sum(1), kind="stable")[:MOST_ENDS]
    chosen = near[np.array(list(combinations(range(len(near)), 3)), np.intp).reshape(-1, 3)]
    along, across, off = (some - ends[chosen[:, 0]] for some in (ends[chosen[:, 1]], ends[chosen[:, 2]], mean))
    aa, cc, ac = (along**2).sum(1), (across**2).sum(1), (along * across).sum(1)
    ao, co = (along * off).sum(1), (across * off).sum(1)
    # 0 where the three lie on one line: two of them are as good.
    area = np.maximum(aa * cc - ac**2, _TINY)
    second, third = (cc * ao - ac * co) / area, (aa * co - ac * ao) / area
    return _best(mean, ends, chosen, np.stack([1.0 - second - third, second, third], 1))


def _best(mean: Floats, ends: Floats, parts: Integers, share: Floats) -> tuple[Integers, Floats] | None:
    """Of mixtures (n, n_parts) without a trace of anything the nearest, and its shares; None if there are none."""
    # A share of just a tenth counts, however it was rounded.
    whole = np.flatnonzero((share >= LEAST_SHARE - 1e-9).all(axis=1))
    if not whole.size:
        return None
    parts, share = parts[whole], share[whole]
    best = ((np.einsum("np,npf->nf", share, ends[parts]) - mean) ** 2).sum(1).argmin()
    return parts[best], share[best]
