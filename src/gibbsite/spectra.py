"""Class spectra from sums and samples, taken line by line: mean, spread and quantiles of every class and band.

Lines are added up one after the other, whatever blocks they are read in, so a cube larger than memory costs one
pass and the result does not depend on its chunks. Missing values (NaN) count in nothing, so each band has its own
number of pixels. Quantiles are exact for classes of up to `Sample.most` pixels; of larger ones so many pixels are
taken, evenly along the scenes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.continuum import gaps, remove_continuum
from gibbsite.errors import InputError

Floats = NDArray[np.float64]
Classes = Sequence[Mapping[str, Any]]

SAMPLED = 2048
"""Pixels of a class that its quantiles are taken from, at most."""
SAMPLE_BYTES = 2**28
"""Of all samples; with many classes each has fewer pixels."""


@dataclass(frozen=True, eq=False)
class ClassSums:
    """Sums over pixels, row k for the class of position k + 1."""

    n: NDArray[np.int64]
    """Finite values, (n_classes, n_bands)."""
    total: Floats
    """Σ, (n_classes, n_bands)."""
    square: Floats
    """Σ², (n_classes, n_bands)."""

    @classmethod
    def none(cls, n_classes: int, n_bands: int) -> "ClassSums":
        """Sums over no pixel."""
        shape = n_classes, n_bands
        return cls(np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape))

    def add(self, spectrum: NDArray[np.floating], position: NDArray[np.integer]) -> None:
        """Add the pixels of one line: `spectrum` (n_pixels, n_bands), `position` (n_pixels) from 1, 0 for none.

        Pixels are sorted by class and added up in that order: a matrix product would be shorter, but its rounding
        depends on the number of threads.
        """
        order = np.argsort(position, kind="stable")
        order = order[np.searchsorted(position[order], 1) :]
        if not order.size:
            return
        present, start = np.unique(position[order], return_index=True)
        value = spectrum[order].astype(np.float64)
        is_finite = np.isfinite(value)
        value[~is_finite] = 0.0
        self.n[present - 1] += np.add.reduceat(is_finite, start, axis=0, dtype=np.int64)
        self.total[present - 1] += np.add.reduceat(value, start, axis=0)
        self.square[present - 1] += np.add.reduceat(np.square(value, out=value), start, axis=0)


@dataclass(frozen=True, eq=False)
class Sample:
    """Some pixels of every class, evenly taken from all of them in the order in which they come."""

    size: NDArray[np.int64]
    """Pixels of each class in all scenes, (n_classes)."""
    seen: NDArray[np.int64]
    """Pixels of each class that have come so far, (n_classes)."""
    most: int
    """Of a class."""
    rows: list[list[NDArray[np.float32]]]
    """Spectra taken of each class."""

    @classmethod
    def of(cls, size: NDArray[np.int64], n_bands: int) -> "Sample":
        """An empty sample of classes of these sizes."""
        most = int(np.clip(SAMPLE_BYTES // (8 * max(1, n_bands) * max(1, len(size))), 64, SAMPLED))
        return cls(size, np.zeros(len(size), np.int64), most, [[] for _ in size])

    def add(self, spectrum: NDArray[np.floating], position: NDArray[np.integer]) -> None:
        """Offer the pixels of one line, as to `ClassSums.add`."""
        for k in np.unique(position[position > 0]) - 1:
            mine = np.flatnonzero(position == k + 1)
            rank = self.seen[k] + np.arange(mine.size)
            self.seen[k] += mine.size
            size = int(self.size[k])
            # Of `size` pixels those are taken where rank·most/size passes a whole number: `most` of them, evenly.
            taken = (size <= self.most) | (rank * self.most // size != (rank + 1) * self.most // size)
            if taken.any():
                self.rows[k].append(spectrum[mine[taken]].astype(np.float32))

    def quantiles(self, n_bands: int, shares: tuple[float, float]) -> tuple[Floats, Floats]:
        """Low and high quantile of each class and band, (n_classes, n_bands) each; NaN where there is no value."""
        found = np.full((2, len(self.size), n_bands), np.nan)
        for k, rows in enumerate(self.rows):
            if not rows:
                continue
            values = np.concatenate(rows).astype(np.float64)
            has_value = np.isfinite(values).any(axis=0)
            found[:, k, has_value] = np.nanquantile(values[:, has_value], shares, axis=0)
        return found[0], found[1]


@dataclass(frozen=True, eq=False)
class Statistics:
    """One quantity of each class; NaN in bands where a class has no value. All are (n_classes, n_bands)."""

    mean: Floats
    std: Floats
    """Standard deviation of the pixels (divided by n, so 0 for one pixel)."""
    low: Floats
    """Low quantile of the pixels."""
    high: Floats
    """High quantile of the pixels."""
    removed: Floats
    """The mean over its continuum; NaN outside the range in which that is drawn."""


@dataclass(frozen=True, eq=False)
class ClassSpectra:
    """What is known of the spectrum of each class."""

    wavelength: Floats
    """µm, (n_bands)."""
    n_pixels: NDArray[np.int64]
    """Pixels with a value, (n_classes, n_bands)."""
    reflectance: Statistics
    """I/F."""
    ratio: Statistics
    """I/F over that of bland pixels."""


def finish(
    sums: ClassSums, quantiles: tuple[Floats, Floats], wavelength: Floats, limits: tuple[float, float]
) -> Statistics:
    """The statistics of one quantity from what was gathered; the continuum is drawn within the limits (µm)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums.total / sums.n
        variance = sums.square / sums.n - mean**2
    # Rounding may leave a variance of a few -1e-17 where all pixels are equal.
    std = np.where(sums.n == 1, 0.0, np.sqrt(np.maximum(variance, 0.0)))
    std = np.where(sums.n > 0, std, np.nan)
    return Statistics(mean, std, *quantiles, remove_continuum(wavelength, mean, limits))


def positions_of(code: NDArray[np.integer], classes: Classes, source: str) -> NDArray[np.intp]:
    """Class position (1, 2 ..) of each map code, 0 for none; InputError for a code unknown to the model."""
    largest = max([int(item["code"]) for item in classes], default=0)
    lookup = np.full(max(largest, int(code.max(initial=0))) + 1, -1, dtype=np.intp)
    lookup[0] = 0
    for position, item in enumerate(classes, start=1):
        lookup[item["code"]] = position
    position_of_code: NDArray[np.intp] = lookup[code]
    if (position_of_code < 0).any():
        strange = int(code[position_of_code < 0].flat[0])
        raise InputError(
            f"{source}: found class code {strange}, but the model's codes end at {largest}; "
            "give the map and the model of the same run"
        )
    return position_of_code


def open_gaps(wavelength: Floats, *values: Floats) -> tuple[Floats, ...]:
    """Wavelengths and values (along their last axis) with a NaN in every gap, so that a line breaks there."""
    at = gaps(wavelength)
    middle = (wavelength[at - 1] + wavelength[at]) / 2
    opened = (np.insert(value, at, np.nan, axis=-1) for value in values)
    return (np.insert(wavelength, at, middle), *opened)


def end_of(values: Floats) -> float:
    """Where a line ends: the mean of its last five finite values."""
    return float(values[np.isfinite(values)][-5:].mean())


def spread_out(y: Floats, distance: float, limits: tuple[float, float]) -> Floats:
    """The heights moved apart to at least `distance`, in their order, about where they were, within the limits.

    Where there is no room for all, those at the ends come closer.
    """
    order = np.argsort(y, kind="stable")
    spaced = y[order].astype(float)
    for _ in range(200):
        spaced = np.clip(spaced, *limits)
        overlap = distance - np.diff(spaced)
        if not (overlap > 1e-9 * distance).any():
            break
        push = np.maximum(overlap, 0.0) / 2
        spaced[:-1] -= push
        spaced[1:] += push
    moved = np.empty_like(spaced)
    moved[order] = np.clip(spaced, *limits)
    return moved
