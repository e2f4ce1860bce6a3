"""What is planted to be found: small outcrops of a rare mineral, a false band in a few detector columns."""

from dataclasses import dataclass

import numpy as np

from gibbsite.simulate import detector
from gibbsite.simulate.fields import Field, Floats, Integers, key, uniform
from gibbsite.simulate.geometry import Geometry

_LEAST_PIXELS = 12
"""The rare class has at least so many pixels, however small the scene."""


@dataclass(frozen=True)
class Outcrops:
    """Small contiguous patches with ragged outlines."""

    line: Floats
    """(n_outcrops) Centres, in lines."""
    sample: Floats
    """(n_outcrops) Centres, in samples."""
    radius: Floats
    """(n_outcrops) Ragged radius at which an outcrop fills half a pixel, in pixels."""
    ragged: Field
    """Distorts the outlines; over lines and samples."""

    @classmethod
    def of(cls, geometry: Geometry, seed: int, share: float, shunned: Integers) -> "Outcrops":
        """Three outcrops, more along a longer swath, that together hold this share of the scene's pixels."""
        scene = np.flatnonzero(detector.L.scene_columns(geometry.binning) & detector.S.scene_columns(geometry.binning))
        n_outcrops = max(3, round(3 * geometry.lines / geometry.samples))
        n_pixels = max(_LEAST_PIXELS, round(share * geometry.lines * scene.size))
        stream = key(seed, "outcrops")
        index = np.arange(n_outcrops)
        weight = np.array([5.0, 3.0, 2.0])[index % 3]
        size = np.maximum(2, np.rint(n_pixels * weight / weight.sum())).astype(int)
        reach = np.sqrt(size.max() / np.pi)
        margin = 1.5 * reach + 1.0
        # One outcrop per stretch of the swath, so that they never touch.
        stretch = geometry.lines / n_outcrops
        room = max(stretch - 2 * margin, 0.0)
        line = (index + 0.5) * stretch + (uniform(stream, index, index * 0) - 0.5) * room
        sample = scene[0] + margin + uniform(stream, index, index * 0 + 1) * (np.ptp(scene) - 2 * margin)
        sample = _away(sample, shunned, margin)
        ragged = Field(key(seed, "outcrop outline"), 2.2 * reach + 1.0, octaves=2)
        plain = cls(np.rint(line), np.rint(sample), np.zeros(n_outcrops), ragged)
        radius = np.array([plain.radius_for(number, n, margin) for number, n in enumerate(size)])
        return cls(plain.line, plain.sample, radius, ragged)

    def distance(self, number: int, line: Integers, sample: Integers) -> Floats:
        """Ragged distance in pixels of each pixel from the centre of one outcrop."""
        down, right = line - self.line[number], sample - self.sample[number]
        plain = np.hypot(1.25 * down + 0.3 * right, 0.85 * right)
        return plain * np.exp(0.22 * self.ragged(line.astype(np.float64), sample.astype(np.float64)))

    def radius_for(self, number: int, n_pixels: int, margin: float) -> float:
        """The ragged radius that holds exactly so many pixels."""
        half = int(np.ceil(2 * margin)) + 2
        down, right = np.mgrid[-half : half + 1, -half : half + 1]
        line, sample = down + int(self.line[number]), right + int(self.sample[number])
        distance = np.sort(self.distance(number, line, sample).ravel())
        return float(distance[n_pixels - 1] + distance[n_pixels]) / 2

    def share(self, line: Integers, sample: Integers) -> Floats:
        """(n_pixels) Share of the rare class in each pixel, falling from 1 inside an outcrop to 0 outside."""
        found = np.zeros(np.shape(line))
        if not found.size:
            return found
        near = np.abs(self.line - np.clip(self.line, line.min(), line.max())) <= 3 * self.radius.max() + 4
        for number in np.flatnonzero(near).tolist():
            distance = self.distance(number, line, sample)
            found = np.maximum(found, 1.0 / (1.0 + np.exp(np.clip((distance - self.radius[number]) / 0.16, -60, 60))))
        return np.where(found > 1e-6, found, 0.0)


@dataclass(frozen=True)
class Artefact:
    """A false band that comes and goes along a few detector columns."""

    columns: Integers
    """(n_columns) Samples that show it."""
    threshold: float
    """The band shows where the noise along the column is above this."""
    course: Field
    """Noise along the columns: its first coordinate is the line."""

    @classmethod
    def of(cls, geometry: Geometry, seed: int, share: float) -> "Artefact":
        """Two neighbouring columns and a distant pair, each with the band in a sixth of its lines at most."""
        scene = np.flatnonzero(detector.L.scene_columns(geometry.binning) & detector.S.scene_columns(geometry.binning))
        place = uniform(key(seed, "artefact columns"), np.arange(2)) * 0.2 + np.array([0.18, 0.66])
        first, last = (scene[0] + place * scene.size).astype(np.int64)
        columns = np.array([first, first + 1, last, last + 2])
        course = Field(key(seed, "artefact course"), 7.0, octaves=2)
        wanted = min(share * scene.size / columns.size, 1 / 6)
        line = np.linspace(0, geometry.lines - 1, min(geometry.lines, 8192)).round()
        level = course(line[:, None], 1e3 * columns[None, :].astype(np.float64))
        return cls(columns, float(np.quantile(level, 1.0 - wanted)), course)

    def depth(self, line: Integers, sample: Integers) -> Floats:
        """(n_pixels) Depth of the false band, 0 where there is none."""
        level = self.course(line.astype(np.float64), 1e3 * sample.astype(np.float64))
        shown = np.isin(sample, self.columns) & (level > self.threshold)
        return np.where(shown, 0.22 + 0.05 * np.clip(level - self.threshold, 0.0, 1.5), 0.0)


def _away(sample: Floats, shunned: Integers, margin: float) -> Floats:
    """The samples, moved aside where they come within a margin of a shunned column."""
    for column in shunned:
        sample = np.where(
            np.abs(sample - column) < margin + 1, column + np.copysign(margin + 2, sample - column), sample
        )
    return sample
