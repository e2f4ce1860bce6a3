"""Label polygons as a geologist would draw them: ragged, well inside the units, several per known class."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rasterio.features import rasterize
from scipy.ndimage import distance_transform_edt

from gibbsite.simulate.detector import L, S
from gibbsite.simulate.fields import Floats, key, uniform
from gibbsite.simulate.terrain import CLASSES, Terrain

_STRETCH = 480
"""Lines drawn at once, so that a long swath needs no more memory than a short one."""
_COVERAGE = 1 / 3
_LEAST_REACH = 1.5
"""A place is drawn only if it lies so many pixels inside its unit."""
_PURITY = 0.97
"""Share of a polygon's pixels that must be of its class, else it is drawn smaller."""


@dataclass(frozen=True)
class Outline:
    """One polygon in the sensor's image."""

    code: int
    """Class."""
    line: Floats
    """(n_corners) Corners; the centre of the first pixel is at 0."""
    sample: Floats
    """(n_corners)"""

    def shape(self, line: float) -> dict[str, object]:
        """GeoJSON over (sample, line), pixel corners at whole numbers, lines counted from `line`."""
        ring = np.stack([self.sample + 0.5, self.line + 0.5 - line], axis=1)
        return {"type": "Polygon", "coordinates": [[*map(tuple, ring.tolist()), tuple(ring[0].tolist())]]}


def draw_outlines(terrain: Terrain, seed: int) -> Iterator[Outline]:
    """The polygons of the known classes, stretch by stretch along the swath."""
    geometry = terrain.geometry
    scene = L.scene_columns(geometry.binning) & S.scene_columns(geometry.binning)
    for start in range(0, geometry.lines, _STRETCH):
        line = np.arange(start, min(start + _STRETCH, geometry.lines))
        rows, columns = np.meshgrid(line, np.arange(geometry.samples), indexing="ij")
        truth = terrain.classes(rows.ravel(), columns.ravel()).reshape(rows.shape)
        truth[:, ~scene] = 0
        for code, item in enumerate(CLASSES, 1):
            if item.role == "known":
                yield from _draw_class(truth == code, code, start, seed)


def burn(outlines: list[Outline], start: int, n_lines: int, n_samples: int) -> NDArray[np.uint8]:
    """(n_lines, n_samples) The classes of the polygons at the pixels of these lines, 0 outside."""
    reach = [
        (outline.shape(start), outline.code)
        for outline in outlines
        if outline.line.max() >= start - 1 and outline.line.min() <= start + n_lines
    ]
    if not reach:
        return np.zeros((n_lines, n_samples), dtype=np.uint8)
    return np.asarray(rasterize(reach, out_shape=(n_lines, n_samples), dtype="uint8"))


def _draw_class(unit: NDArray[np.bool_], code: int, start: int, seed: int) -> Iterator[Outline]:
    """Polygons in one class until a third of its pixels are covered, or no room is left."""
    free, covered, wanted = unit.copy(), 0, _COVERAGE * unit.sum()
    widest = 0.09 * unit.shape[1]
    number = 0
    while covered < wanted:
        # The frame counts as outside, so that no polygon leaves the image.
        inside = distance_transform_edt(np.pad(free, 1))[1:-1, 1:-1]
        line, sample = np.unravel_index(int(inside.argmax()), inside.shape)
        if inside[line, sample] < _LEAST_REACH:
            return
        stream = key(seed, f"outline {start} {code} {number}")
        outline = _outline(free, (int(line), int(sample)), (code, widest), stream)
        number += 1
        drawn = burn([outline], 0, *unit.shape) > 0
        covered += int((drawn & unit).sum())
        free &= ~drawn
        free[max(line - 1, 0) : line + 2, max(sample - 1, 0) : sample + 2] = False
        if drawn.sum() >= 4:
            yield Outline(code, outline.line + start, outline.sample)


def _outline(free: NDArray[np.bool_], centre: tuple[int, int], kind: tuple[int, float], stream: int) -> Outline:
    """A ragged polygon about a centre that stays in the free part of the unit."""
    code, widest = kind
    n_corners = 14 + int(8 * uniform(stream, np.array([0]))[0])
    corner = np.arange(n_corners)
    angle = 2 * np.pi * (corner + 0.7 * uniform(stream, corner, corner * 0 + 1)) / n_corners
    hand = 0.74 + 0.22 * uniform(stream, corner, corner * 0 + 2)
    reach = np.minimum(_sight(free, centre, angle), widest * (0.8 + 0.7 * uniform(stream, corner, corner * 0 + 3)))
    for shrink in (1.0, 0.85, 0.7, 0.55, 0.4):
        length = np.maximum(shrink * hand * reach, 0.6)
        outline = Outline(code, centre[0] + length * np.sin(angle), centre[1] + length * np.cos(angle))
        drawn = burn([outline], 0, *free.shape) > 0
        if not drawn.any() or free[drawn].mean() >= _PURITY:
            break
    return outline


def _sight(free: NDArray[np.bool_], centre: tuple[int, int], angle: Floats) -> Floats:
    """How far one can walk from the centre in each direction without leaving the free part, in pixels."""
    step = np.arange(0.0, max(free.shape), 0.5)[:, None]
    line = np.rint(centre[0] + step * np.sin(angle)).astype(int)
    sample = np.rint(centre[1] + step * np.cos(angle)).astype(int)
    inside = (line >= 0) & (line < free.shape[0]) & (sample >= 0) & (sample < free.shape[1])
    inside &= free[np.clip(line, 0, free.shape[0] - 1), np.clip(sample, 0, free.shape[1] - 1)]
    return np.asarray(0.5 * np.where(inside.all(axis=0), step.size, (~inside).argmax(axis=0)))
