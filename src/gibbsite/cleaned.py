"""Cleaned spectra of a scene, block of lines by block of lines: the one reading that `basis` and `features` share.

Memory does not grow with the scene. A block is cleaned by itself, read with the lines around it that a correction looks
at; what a correction must know of the whole scene (the gains of detector columns) is measured in a pass before. So a
line's spectra are the same bytes for any blocks. Blocks are cleaned side by side in threads and given out in order.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels
from gibbsite.clean import light, stripes
from gibbsite.corrections import Corrections, plan
from gibbsite.errors import InputError
from gibbsite.settings import Settings
from gibbsite.sources import Lines, Source, of_cube
from gibbsite.threads import in_order, n_threads

BLOCK_BYTES = 2**23
"""Blocks are about this large: several fit into the processor's cache beside their work space."""
GROUP_LINES = 8
"""Lines that are taken or left together when only a share of a scene is wanted."""
SAME_BAND = 0.001
"""Bands of two scenes are the same when their wavelengths differ by less (µm); bands lie 0.0065 µm apart."""

Result = TypeVar("Result")


class Block(NamedTuple):
    """Some lines of a scene."""

    first: int
    """The first line's number."""
    lines: Lines
    """(line, band, sample) cleaned; NaN in pixels that are not usable."""
    n_despiked: NDArray[np.int32]
    """(line, sample) Values that were taken for spikes and replaced."""

    def usable(self) -> NDArray[np.bool_]:
        """(line, sample) Whether all bands of a pixel are finite."""
        return np.isfinite(self.lines.sum(axis=1))

    def pixel(self, usable: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Numbers y · width + x of these (line, sample) pixels, rising."""
        return np.flatnonzero(usable) + np.int64(self.first) * usable.shape[1]


@dataclass(frozen=True, eq=False)
class CleanedScene:
    """A scene and how to clean it."""

    source: Source
    """The scene as it was read."""
    corrections: Corrections
    """What is done to it."""

    @property
    def wavelength(self) -> NDArray[np.float64]:
        """(n_bands,) µm."""
        return self.corrections.wavelength

    def map_blocks(self, function: Callable[[Block], Result], every: int = 1) -> Iterator[Result]:
        """What `function`, called in threads, makes of each cleaned block, from the first line to the last.

        With `every` above 1, only each `every`-th group of GROUP_LINES lines is cleaned.
        """
        if self.corrections.ratio is None:
            return in_order(lambda rows: function(self._finish(self._prepare(rows))), self._rows(every))
        ratioed = self._divide_by_bland(in_order(self._prepare, self._rows(1)))
        wanted = (block for block in ratioed if (block.first // GROUP_LINES) % every == 0)
        return in_order(lambda block: function(self._finish(block)), wanted)

    def blocks(self) -> Iterator[Block]:
        """The cleaned lines; an InputError behind the last when no pixel is usable."""
        n_usable = 0
        for block, n in self.map_blocks(lambda block: (block, int(block.usable().sum()))):
            n_usable += n
            yield block
        self.check_usable(n_usable)

    def check_usable(self, n_pixels: int) -> None:
        """Refuse a scene of which no pixel is usable."""
        if not n_pixels:
            raise InputError(
                f"{self.source.path}: no usable pixel; expected valid pixels with finite bands: leave the scene "
                "out, or check its files and ingest.valid_range"
            )

    def _rows(self, every: int) -> Iterator[slice]:
        """Slices of lines: whole chunks of the source, or the groups wanted."""
        n_lines, width = self.source.valid.shape
        n_bytes = 4 * width * len(self.corrections.band)
        lines = max(1, BLOCK_BYTES // (self.source.chunk_lines * n_bytes)) * self.source.chunk_lines
        step = lines if every == 1 else GROUP_LINES * every
        for start in range(0, n_lines, step):
            yield slice(start, min(start + (lines if every == 1 else GROUP_LINES), n_lines))

    def _prepare(self, rows: slice) -> Block:
        """The lines with all corrections that look no further than the next lines."""
        find = self.corrections.spikes
        in_columns = find is not None and find.in_columns
        n_lines = self.source.valid.shape[0]
        inner = slice(max(0, rows.start - in_columns), min(n_lines, rows.stop + in_columns))
        outer = inner if find is None else slice(max(0, inner.start - 1), min(n_lines, inner.stop + 1))
        lines = self._lit(outer)
        n_despiked = np.zeros((inner.stop - inner.start, lines.shape[2]), np.int32)
        if find is not None:
            first, last = inner.start - outer.start, inner.stop - outer.start
            lines = kernels.despike_spectra(lines, find.windows, find.sigma, first, last, n_despiked)
        first, last = rows.start - inner.start, rows.stop - inner.start
        n_despiked = n_despiked[first:last]
        if find is not None and in_columns:
            lines = kernels.despike_columns(lines, find.sigma, first, last, n_despiked)
        if self.corrections.gain is not None:
            kernels.divide_columns(lines, self.corrections.gain, self.source.column[rows])
        return Block(rows.start, lines, n_despiked)

    def _lit(self, rows: slice) -> Lines:
        """The lines without gaps, as if lit from above and seen without air."""
        source, corrections = self.source, self.corrections
        lines = source.read(rows, corrections.band)
        kernels.bridge_gaps(lines, source.wavelength[corrections.band])
        if corrections.divides_by_incidence and source.incidence is not None:
            kernels.divide_pixels(lines, light.cosine(source.incidence[rows]))
        if corrections.air is not None:
            air = corrections.air
            kernels.divide_air(lines, air.log_transmission, source.column[rows], air.inside, air.outside)
        return lines

    def _finish(self, block: Block) -> Block:
        """The lines on the bands that are wanted."""
        lines, corrections = block.lines, self.corrections
        if corrections.smile is not None:
            column = self.source.column[block.first : block.first + len(lines)]
            lines = kernels.combine_bands_by_column(lines, corrections.smile.start, corrections.smile.weight, column)
        if corrections.smoothing is not None:
            lines = kernels.combine_bands(lines, corrections.smoothing.start, corrections.smoothing.weight)
        elif corrections.smile is None and len(corrections.kept) < lines.shape[1]:
            lines = lines[:, corrections.kept]
        return block._replace(lines=lines)

    def _divide_by_bland(self, prepared: Iterable[Block]) -> Iterator[Block]:
        """Groups of lines divided by bland pixels of the lines around them, a window of lines in memory."""
        assert self.corrections.ratio is not None
        reach = self.corrections.ratio[0]
        n_lines = self.source.valid.shape[0]
        window = _Window(self.source.column, self.source.wavelength[self.corrections.band])
        start = 0
        for block in prepared:
            window.add(block)
            while start < n_lines and (window.last >= min(start + GROUP_LINES + reach, n_lines)):
                stop = min(start + GROUP_LINES, n_lines)
                yield window.divided(slice(start, stop), self.corrections.ratio)
                window.forget(stop - reach)
                start = stop


class _Window:
    """Consecutive lines, with the blandest pixel of each detector column in each."""

    def __init__(self, column: NDArray[np.int16], wavelength: NDArray[np.float64]) -> None:
        self.column, self.wavelength = column, wavelength
        self.n_columns = int(column.max()) + 1
        self.first = self.last = 0
        self.parts: list[tuple[Lines, NDArray[np.int32], NDArray[np.float32], NDArray[np.int32]]] = []

    def add(self, block: Block) -> None:
        score = kernels.crookedness(block.lines, self.wavelength)
        rows = slice(block.first, block.first + len(block.lines))
        best, sample = kernels.best_of_columns(score, self.column[rows], self.n_columns)
        self.parts.append((block.lines, block.n_despiked, best, sample))
        self.last = rows.stop

    def divided(self, rows: slice, choice: tuple[int, int]) -> Block:
        if len(self.parts) > 1:
            self.parts = [tuple(np.concatenate(part) for part in zip(*self.parts, strict=True))]  # type: ignore[list-item]
        lines, n_despiked, best, sample = self.parts[0]
        first, last = rows.start - self.first, rows.stop - self.first
        column = self.column[self.first : self.last]
        ratio = kernels.divide_by_bland(lines, first, last, (best, sample), column, choice)
        return Block(rows.start, ratio, n_despiked[first:last])

    def forget(self, first: int) -> None:
        if first > self.first:
            self.parts = [tuple(part[first - self.first :] for part in parts) for parts in self.parts]  # type: ignore[misc]
            self.first = first


def open_cleaned(path: Path, settings: Settings) -> CleanedScene:
    """The cube at `path`, ready to give out spectra cleaned as the settings say."""
    return clean_source(of_cube(path), settings)


def clean_source(source: Source, settings: Settings) -> CleanedScene:
    """The scene of this source, ready to give out spectra cleaned as the settings say."""
    scene = CleanedScene(source, plan(source, settings))
    # Map-projected archive products are filtered already, and their pixels were moved off their columns.
    is_asked = settings.clean.destripe
    if not (source.grid.transform is None if is_asked == "auto" else is_asked):
        return scene
    return replace(scene, corrections=replace(scene.corrections, gain=_column_gains(scene)))


def check_bands(found: CleanedScene, wavelength: NDArray[np.float64], owner: Path) -> None:
    """Refuse a scene whose bands are not those (`wavelength`, µm) of `owner`."""
    mine = found.wavelength
    if len(mine) == len(wavelength) and np.abs(mine - wavelength).max() < SAME_BAND:
        return
    raise InputError(
        f"{found.source.path}: its {len(mine)} bands at {mine[0]:.4f}-{mine[-1]:.4f} µm are not the "
        f"{len(wavelength)} bands at {wavelength[0]:.4f}-{wavelength[-1]:.4f} µm of {owner}; scenes of one "
        "basis need the same bands: narrow features.wavelengths to bands all of them have, or fit them apart"
    )


def _column_gains(scene: CleanedScene) -> NDArray[np.float32] | None:
    """Gains (n_bands, n_columns) of the detector columns; None where no two neighbours are known."""
    column = scene.source.column
    pair = stripes.neighbour_columns(column, scene.source.valid)
    place = stripes.places(pair)
    if place.max() < 0:
        return None
    # Where columns fall from left to right, the right pixel belongs to the lower one.
    turn = np.diff(column, axis=1, append=0) < 0
    keys = np.zeros((int(column.max()) + 1, int(place.max()) + 1, len(scene.corrections.band)), np.uint16)

    def keep(rows: slice) -> None:
        kernels.keep_ratios(scene._lit(rows), place[rows], pair[rows], turn[rows], keys)

    for _ in in_order(keep, scene._rows(1)):
        pass
    ratio = np.concatenate(list(in_order(kernels.median_keys, np.array_split(keys, 2 * n_threads()))))
    return np.ascontiguousarray(stripes.column_gains(ratio).T.astype(np.float32))
