"""Which pixel of a scan covers a place: footprints as parallelograms between the centres of neighbouring pixels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

Floats = NDArray[np.float64]

_ROUNDS = 8
"""Steps from the nearest centre to the covering pixel; two are enough unless pixels are long and thin."""
_SLACK = 0.1
"""Of a pixel: footprints of neighbours may leave cracks between them where the scan wobbles, this bridges them."""


@dataclass(frozen=True, eq=False)
class Footprints:
    """The pixels of a scan in map coordinates."""

    centre: Floats
    """(height, width, 2), NaN unknown."""
    down: Floats
    """(height, width, 2) From a pixel to that of the next line."""
    across: Floats
    """(height, width, 2) From a pixel to that of the next sample."""

    @classmethod
    def of(cls, x: Floats, y: Floats) -> "Footprints":
        """The footprints of pixels with these centres (height, width)."""
        centre = np.stack([x, y], axis=-1)
        return cls(centre, _step(centre, 0), _step(centre, 1))

    def extent(self) -> tuple[float, float, float, float]:
        """Smallest x, smallest y, largest x, largest y of all corners."""
        half = (np.abs(self.down) + np.abs(self.across)) / 2
        low, high = (np.nanmin(self.centre - half, axis=(0, 1)), np.nanmax(self.centre + half, axis=(0, 1)))
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])

    def finder(self) -> "Finder":
        """A search for the covering pixel."""
        known = np.isfinite(self.centre).all(-1) & np.isfinite(self.down).all(-1) & np.isfinite(self.across).all(-1)
        pixel = np.flatnonzero(known)
        reach = float((np.linalg.norm(self.down, axis=-1) + np.linalg.norm(self.across, axis=-1))[known].max())
        return Finder(self, KDTree(self.centre.reshape(-1, 2)[pixel]), pixel, reach)


@dataclass(frozen=True, eq=False)
class Finder:
    """Finds the covering pixel of a place from the nearest centre."""

    footprints: Footprints
    """To search in."""
    tree: KDTree
    """Of the known centres."""
    pixel: NDArray[np.int64]
    """Of each centre in the tree, line · width + sample."""
    reach: float
    """No covering pixel's centre is further away."""

    def covering(self, x: Floats, y: Floats) -> NDArray[np.int64]:
        """The pixel that covers each place (any shape), -1 where there is none."""
        place = np.stack([np.ravel(x), np.ravel(y)], axis=-1)
        found = np.full(len(place), -1, dtype=np.int64)
        distance, nearest = self.tree.query(place, distance_upper_bound=self.reach)
        near = np.flatnonzero(np.isfinite(distance))
        found[near] = self._walk(place[near], self.pixel[nearest[near]])
        return found.reshape(np.shape(x))

    def _walk(self, place: Floats, pixel: NDArray[np.int64]) -> NDArray[np.int64]:
        """From the nearest pixel to the one whose footprint covers the place best; -1 when none does.

        The nearest centre need not be the covering pixel's: pixels binned across the scan are long and thin.
        """
        height, width = self.footprints.centre.shape[:2]
        best, least = pixel.copy(), np.full(len(pixel), np.inf)
        for _ in range(_ROUNDS):
            offset = self._offset(place, pixel)
            off = np.abs(offset).max(axis=1)
            better = off < least
            best[better], least[better] = pixel[better], off[better]
            step = np.rint(np.clip(offset, -width - height, width + height)).astype(np.int64)
            line = np.clip(pixel // width + step[:, 0], 0, height - 1)
            sample = np.clip(pixel % width + step[:, 1], 0, width - 1)
            pixel = line * width + sample
            if not step.any():
                break
        return np.where(least <= 0.5 + _SLACK, best, -1)

    def _offset(self, place: Floats, pixel: NDArray[np.int64]) -> Floats:
        """(n, 2) Lines and samples from the centre of the pixel to the place; inf where the pixel is unknown."""
        centre, down, across = (
            part.reshape(-1, 2)[pixel]
            for part in (self.footprints.centre, self.footprints.down, self.footprints.across)
        )
        away = place - centre
        size = down[:, 0] * across[:, 1] - down[:, 1] * across[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            lines = (away[:, 0] * across[:, 1] - away[:, 1] * across[:, 0]) / size
            samples = (down[:, 0] * away[:, 1] - down[:, 1] * away[:, 0]) / size
        offset = np.stack([lines, samples], axis=-1)
        return np.where(np.isfinite(offset), offset, np.inf)


def _step(centre: Floats, axis: int) -> Floats:
    """From each pixel to the next along an axis: the mean of the steps on both sides, or the one there is."""
    gap = np.diff(centre, axis=axis)
    edge = np.full_like(np.take(centre, [0], axis=axis), np.nan)
    before, after = np.concatenate([edge, gap], axis=axis), np.concatenate([gap, edge], axis=axis)
    both = np.where(np.isnan(before), after, np.where(np.isnan(after), before, (before + after) / 2))
    return np.where(np.isnan(centre), np.nan, both)
