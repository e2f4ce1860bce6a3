"""Class-mean spectra from sums over blocks of lines: n, Σ and Σ² of every class and band.

A block answers with sums, sums add, and mean and spread are taken once at the end, so a cube larger than
memory costs one pass. Missing values (NaN) count in no sum, so each band has its own number of pixels.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import InputError

Floats = NDArray[np.float64]

COLUMNS = (
    "code",
    "name",
    "is_known",
    "wavelength_um",
    "mean",
    "std",
    "n_pixels",
    "ratio_to_scene_mean",
)
"""Of the long-form table: one row per class and band."""

GAP = 3.0
"""A step of more than so many median steps between bands is a gap that no line crosses."""


@dataclass(frozen=True, eq=False)
class ClassSums:
    """Sums over pixels; row 0 for pixels without a class, row k for the class of position k."""

    n: NDArray[np.int64]
    """Finite values, (1 + n_classes, n_bands)."""
    total: Floats
    """Σ, (1 + n_classes, n_bands)."""
    square: Floats
    """Σ², (1 + n_classes, n_bands)."""

    def __add__(self, other: "ClassSums") -> "ClassSums":
        return ClassSums(self.n + other.n, self.total + other.total, self.square + other.square)


@dataclass(frozen=True, eq=False)
class ClassSpectra:
    """Mean spectrum and spread of each class; NaN in bands where a class has no value."""

    wavelength: Floats
    """µm, (n_bands)."""
    mean: Floats
    """I/F, (n_classes, n_bands)."""
    std: Floats
    """Standard deviation of the pixels (divided by n, so 0 for one pixel), (n_classes, n_bands)."""
    n_pixels: NDArray[np.int64]
    """Pixels with a value, (n_classes, n_bands)."""
    ratio: Floats
    """Class mean over the mean of all valid pixels, (n_classes, n_bands)."""


def sum_block(spectrum: NDArray[Any], position: NDArray[np.integer], n_classes: int) -> ClassSums:
    """Sums of a block of pixels.

    `spectrum` (n_pixels, n_bands); `position` (n_pixels) of the class, 1 to n_classes, 0 for none. Pixels
    are sorted by class and added up in that order: a matrix product would be shorter, but its rounding
    depends on the number of threads.
    """
    shape = (1 + n_classes, spectrum.shape[1])
    sums = ClassSums(np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape))
    if not position.size:
        return sums
    order = np.argsort(position, kind="stable")
    present, start = np.unique(position[order], return_index=True)
    value = spectrum[order].astype(np.float64)
    is_finite = np.isfinite(value)
    value[~is_finite] = 0.0
    sums.n[present] = np.add.reduceat(is_finite, start, axis=0, dtype=np.int64)
    sums.total[present] = np.add.reduceat(value, start, axis=0)
    sums.square[present] = np.add.reduceat(np.square(value, out=value), start, axis=0)
    return sums


def finish(sums: ClassSums, wavelength: Floats) -> ClassSpectra:
    """Means, spreads and ratios of the classes from the sums over all pixels."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums.total / sums.n
        variance = sums.square / sums.n - mean**2
        scene_mean = sums.total.sum(axis=0) / sums.n.sum(axis=0)
        ratio = mean / np.where(scene_mean > 0, scene_mean, np.nan)
    # Rounding may leave a variance of a few -1e-17 where all pixels are equal.
    std = np.sqrt(np.maximum(variance, 0.0))
    return ClassSpectra(wavelength, mean[1:], std[1:], sums.n[1:], ratio[1:])


def positions_of(code: NDArray[np.integer], classes: Sequence[Mapping[str, Any]], source: str) -> NDArray[np.intp]:
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


def table_text(spectra: ClassSpectra, classes: Sequence[Mapping[str, Any]]) -> str:
    """The long-form CSV: one row per class and band, empty fields where a class has no value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for k, item in enumerate(classes):
        head = (item["code"], item["name"], str(bool(item["is_known"])).lower())
        for b, wavelength in enumerate(spectra.wavelength):
            values = (spectra.mean[k, b], spectra.std[k, b], spectra.ratio[k, b])
            mean, std, ratio = (f"{value:.7g}" if np.isfinite(value) else "" for value in values)
            writer.writerow((*head, f"{wavelength:.6f}", mean, std, spectra.n_pixels[k, b], ratio))
    return text.getvalue()


def read_table(path: Path, classes: Sequence[Mapping[str, Any]]) -> ClassSpectra:
    """The spectra of these classes, in their order, from a table of the spectra step."""
    rows: dict[int, list[dict[str, str]]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                rows.setdefault(int(row["code"]), []).append(row)
        columns = [rows[int(item["code"])] for item in classes]
        numbers = {name: _numbers(columns, name) for name in COLUMNS[3:]}
    except OSError as error:
        raise InputError(f"{path}: cannot read the spectra ({error.strerror}); run the spectra step") from None
    except (KeyError, IndexError, TypeError, ValueError):
        raise InputError(
            f"{path}: not a table of the spectra of this model's {len(classes)} classes; run the spectra step anew"
        ) from None
    return ClassSpectra(
        numbers["wavelength_um"][0] if classes else np.zeros(0),
        numbers["mean"],
        numbers["std"],
        numbers["n_pixels"].astype(np.int64),
        numbers["ratio_to_scene_mean"],
    )


def gaps(wavelength: Floats) -> NDArray[np.intp]:
    """Positions of the bands before which a gap lies."""
    step = np.diff(wavelength)
    if not step.size:
        return np.zeros(0, np.intp)
    return np.flatnonzero(step > GAP * np.median(step)) + 1


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


def _numbers(columns: list[list[dict[str, str]]], name: str) -> Floats:
    rows = [[float(row[name] or "nan") for row in column] for column in columns]
    return np.array(rows, dtype=np.float64).reshape(len(columns), len(columns[0]) if columns else 0)
