"""Cleaned spectra of a scene, block of lines by block of lines: the one reading that `basis` and `features` share.

Memory does not grow with the scene. A block is cleaned by itself, read with the lines around it that a correction looks
at; what a correction must know of the whole scene (the gains of detector columns) is measured in a pass before. So a
line's spectra are the same bytes for any blocks. Blocks are cleaned side by side in threads and given out in order,
each strip by strip: a strip stays in the processor's cache from its reading to what is made of it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels, lit
from gibbsite.blocks import Block, Window, cut, padded
from gibbsite.corrections import Corrections, plan
from gibbsite.errors import InputError
from gibbsite.gains import column_gains
from gibbsite.kernels import LANES
from gibbsite.settings import Settings
from gibbsite.sources import Source, of_cube
from gibbsite.threads import in_order

BLOCK_LINES = 24
"""Lines of a block, or a little more, where the source does not say otherwise: of each strip two beyond either end are
read and despiked twice."""
GROUP_LINES = 8
"""Lines that are taken or left together when only a share of a scene is wanted."""
SAME_BAND = 0.001
"""Bands of two scenes are the same when their wavelengths differ by less (µm); bands lie 0.0065 µm apart."""

Part = TypeVar("Part")
Result = TypeVar("Result")
Number = TypeVar("Number", bound=np.generic)


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

    def map_blocks(
        self, of_strip: Callable[[Block], Part], of_block: Callable[[int, list[Part]], Result], every: int = 1
    ) -> Iterator[Result]:
        """What `of_block`, given its first line and what `of_strip` made of its strips from left to right, makes of
        each cleaned block, in their order. Both are called in threads. Strips are LANES wide, NaN beyond the image.

        With `every` above 1, only each `every`-th group of GROUP_LINES lines is cleaned.
        """

        def of_rows(rows: slice) -> Result:
            prepare = self._prepare(rows)
            # Nothing holds on to a strip that is done with: the next one takes its place in the cache.
            return of_block(rows.start, [of_strip(self._finish(prepare(start))) for start in self._starts()])

        def of_ratios(block: Block) -> Result:
            return of_block(block.first, [of_strip(self._finish(strip)) for strip in cut(block)])

        if self.corrections.ratio is None:
            return in_order(of_rows, self._rows(every))
        prepared = in_order(lambda rows: self.join([*map(self._prepare(rows), self._starts())]), self._rows(1))
        ratioed = self._divide_by_bland(prepared)
        return in_order(of_ratios, (block for block in ratioed if (block.first // GROUP_LINES) % every == 0))

    def blocks(self) -> Iterator[Block]:
        """The cleaned lines; an InputError behind the last when no pixel is usable."""
        n_usable = 0
        for block in self.map_blocks(lambda strip: strip, lambda _, strips: self.join(strips)):
            n_usable += int(block.usable().sum())
            yield block
        self.check_usable(n_usable)

    def join(self, strips: list[Block]) -> Block:
        """Whole lines from their strips."""
        lines, n_despiked = [strip.lines for strip in strips], [strip.n_despiked for strip in strips]
        return Block(strips[0].first, 0, self.across(lines), self.across(n_despiked))

    def across(self, parts: list[NDArray[Number]]) -> NDArray[Number]:
        """Arrays (…, LANES) of strips, from left to right, as one (…, sample)."""
        return np.concatenate(parts, axis=-1)[..., : self.source.valid.shape[1]]

    def pixel(self, first: int, usable: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Numbers y · width + x, rising, of these pixels (line, sample) of lines from `first` on."""
        return np.flatnonzero(usable) + np.int64(first) * usable.shape[1]

    def check_usable(self, n_pixels: int) -> None:
        """Refuse a scene of which no pixel is usable."""
        if not n_pixels:
            raise InputError(
                f"{self.source.path}: no usable pixel; expected valid pixels with finite bands: leave the scene "
                "out, or check its files and ingest.valid_range"
            )

    @cached_property
    def _is_level(self) -> bool:
        """Whether each sample was seen by the detector column of its own number."""
        return lit.is_level(self.source)

    @cached_property
    def _strip_weights(self) -> list[NDArray[np.float32]]:
        """For each strip, the weights (n_out, width, LANES) of its samples that even out columns and smile."""
        assert self.corrections.smile is not None
        weight, start = self.corrections.smile.weight, self.corrections.smile.start
        if self.corrections.gain is not None:
            taken = start[:, None] + np.arange(weight.shape[1])
            weight = weight / self.corrections.gain[taken]
        return [padded(weight, slice(at, at + LANES)) for at in range(0, weight.shape[2], LANES)]

    def _rows(self, every: int) -> Iterator[slice]:
        """Slices of lines: whole chunks of the source, or the groups wanted."""
        n_lines = self.source.valid.shape[0]
        lines = self.source.whole_chunks(BLOCK_LINES) if every == 1 else GROUP_LINES
        for start in range(0, n_lines, lines if every == 1 else lines * every):
            yield slice(start, min(start + lines, n_lines))

    def _starts(self) -> range:
        """The first samples of the strips."""
        return range(0, self.source.valid.shape[1], LANES)

    def _prepare(self, rows: slice) -> Callable[[int], Block]:
        """The strips of these lines, by their first sample, with all corrections that look no further than the next
        lines."""
        find = self.corrections.spikes
        in_columns = find is not None and find.in_columns
        n_lines = len(self.source.valid)
        inner = slice(max(0, rows.start - in_columns), min(n_lines, rows.stop + in_columns))
        outer = inner if find is None else slice(max(0, inner.start - 1), min(n_lines, inner.stop + 1))
        strip = lit.strips(self.source, self.corrections, outer)
        mine = slice(rows.start - outer.start, rows.stop - outer.start)
        along = inner.start - outer.start, inner.stop - outer.start
        down = mine.start, mine.stop if in_columns else mine.start

        def prepare(start: int) -> Block:
            lines, counts = strip(start), np.zeros((inner.stop - inner.start, LANES), np.int32)
            if find is not None:
                kernels.despike(lines, find.windows, find.sigma, along, down, counts)
            lines = lines[mine]
            if self.corrections.gain is not None and not self._evens_out_at_once():
                kernels.divide_columns(lines, self.corrections.gain, lit.columns(self.source, rows, start))
            return Block(rows.start, start, lines, counts[rows.start - inner.start : rows.stop - inner.start])

        return prepare

    def _evens_out_at_once(self) -> bool:
        """Whether stripes and smile are taken out by one set of weights: no step may stand between them."""
        return self._is_level and self.corrections.smile is not None and self.corrections.ratio is None

    def _finish(self, block: Block) -> Block:
        """A strip on the bands that are wanted."""
        lines, corrections = block.lines, self.corrections
        if corrections.smile is not None and self._evens_out_at_once():
            weight = self._strip_weights[block.start // LANES]
            lines = kernels.combine_bands_of_strip(lines, corrections.smile.start, weight)
        elif corrections.smile is not None:
            column = lit.columns(self.source, slice(block.first, block.first + len(lines)), block.start)
            lines = kernels.combine_bands_by_column(lines, corrections.smile.start, corrections.smile.weight, column)
        if corrections.smoothing is not None:
            lines = kernels.combine_bands(lines, corrections.smoothing.start, corrections.smoothing.weight)
        elif corrections.smile is None and len(corrections.kept) < lines.shape[1]:
            lines = np.ascontiguousarray(lines[:, corrections.kept])
        return block._replace(lines=lines)

    def _divide_by_bland(self, prepared: Iterable[Block]) -> Iterator[Block]:
        """Groups of lines divided by bland pixels of the lines around them, a window of lines in memory."""
        assert self.corrections.ratio is not None
        reach = self.corrections.ratio[0]
        n_lines = self.source.valid.shape[0]
        window = Window(self.source.column, self.source.wavelength[self.corrections.band])
        start = 0
        for block in prepared:
            window.add(block)
            while start < n_lines and (window.last >= min(start + GROUP_LINES + reach, n_lines)):
                stop = min(start + GROUP_LINES, n_lines)
                yield window.divided(slice(start, stop), self.corrections.ratio)
                window.forget(stop - reach)
                start = stop


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
    return replace(scene, corrections=replace(scene.corrections, gain=column_gains(source, scene.corrections)))


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
