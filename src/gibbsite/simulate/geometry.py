"""Where pixels lie: detector pixel <-> ground <-> longitude and latitude <-> map, and the relief under them.

The ground is a plane of metres east and north of the scene's centre. The swath runs west of north, line 0 is
its southern end, and it swings from side to side as real ones do, so no swapped axis goes unnoticed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import SettingsError
from gibbsite.settings import Simulate
from gibbsite.simulate import detector
from gibbsite.simulate.fields import Field, Floats, Integers, key

PIXEL = 18.0
"""Metres on the ground per unbinned pixel."""
SWATH = detector.COLUMNS * PIXEL
"""Width of the swath in metres, whatever the binning."""
_EQUATOR, _POLE = 3396190.0, 3376200.0
_HEADING = np.radians(-11.7)
_SWING, _SWING_LENGTH, _SWING_PHASE = 0.035 * SWATH, 1.7 * SWATH, 0.7
_SUN_INCIDENCE, _SUN_AZIMUTH = 47.3, 293.0


@dataclass(frozen=True)
class Geometry:
    """The swath on Mars."""

    lines: int
    """Lines of the image."""
    binning: int
    """Detector columns per sample, and as many lines."""
    latitude: float
    """Of the centre, degrees north."""
    longitude: float
    """Of the centre, degrees east, -180 to 180."""

    @classmethod
    def of(cls, settings: Simulate) -> "Geometry":
        """The swath of these settings."""
        geometry = cls(
            settings.lines, settings.binning, settings.latitude, (settings.longitude + 180.0) % 360.0 - 180.0
        )
        reach = abs(settings.latitude) + np.degrees(0.6 * settings.lines * geometry.pixel / geometry.radius)
        if reach > 89.0:
            raise SettingsError(
                f"simulate: {settings.lines} lines about latitude {settings.latitude} reach {reach:.1f} "
                "degrees, expected at most 89; simulate fewer lines or move the scene towards the equator"
            )
        return geometry

    @property
    def samples(self) -> int:
        """Samples per line."""
        return detector.COLUMNS // self.binning

    @property
    def pixel(self) -> float:
        """Metres per pixel, along and across, in the sensor's image and on the map."""
        return PIXEL * self.binning

    @property
    def parallel(self) -> float:
        """Standard parallel of the map: the 5-degree step towards the equator."""
        return float(np.copysign(5.0 * np.floor(abs(self.latitude) / 5.0), self.latitude)) + 0.0

    @property
    def radius(self) -> float:
        """Radius in metres of the ellipsoid at the standard parallel: the map's own sphere."""
        angle = np.radians(self.parallel)
        return float(_EQUATOR * _POLE / np.hypot(_POLE * np.cos(angle), _EQUATOR * np.sin(angle)))

    def ground(self, line: Floats, sample: Floats) -> tuple[Floats, Floats]:
        """Metres east and north of the centre, for pixel centres at whole numbers."""
        along = (line - (self.lines - 1) / 2) * self.pixel
        across = (sample - (self.samples - 1) / 2) * self.pixel + _swing(along)
        return (
            across * np.cos(_HEADING) + along * np.sin(_HEADING),
            along * np.cos(_HEADING) - across * np.sin(_HEADING),
        )

    def sensor(self, east: Floats, north: Floats) -> tuple[Floats, Floats]:
        """Line and sample (fractions of a pixel) that see this ground; the inverse of `ground`."""
        along = east * np.sin(_HEADING) + north * np.cos(_HEADING)
        across = east * np.cos(_HEADING) - north * np.sin(_HEADING) - _swing(along)
        return along / self.pixel + (self.lines - 1) / 2, across / self.pixel + (self.samples - 1) / 2

    def lonlat(self, east: Floats, north: Floats) -> tuple[Floats, Floats]:
        """Longitude and latitude in degrees; the longitude runs on past 180."""
        shrink = np.cos(np.radians(self.latitude))
        return (
            self.longitude + np.degrees(east / (self.radius * shrink)),
            self.latitude + np.degrees(north / self.radius),
        )

    def project(self, longitude: Floats, latitude: Floats) -> tuple[Floats, Floats]:
        """Map coordinates in metres (equirectangular)."""
        shrink = np.cos(np.radians(self.parallel))
        return self.radius * shrink * np.radians(longitude), self.radius * np.radians(latitude)

    def unproject(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Metres east and north of the centre of a place on the map."""
        shift, height = self.project(np.asarray(self.longitude), np.asarray(self.latitude))
        stretch = np.cos(np.radians(self.latitude)) / np.cos(np.radians(self.parallel))
        return (x - shift) * stretch, y - height


@dataclass(frozen=True)
class MapGrid:
    """The map that the swath is projected onto."""

    geometry: Geometry
    """The swath."""
    left: float
    """x of the left edge, metres."""
    top: float
    """y of the upper edge, metres."""
    width: int
    """Columns."""
    height: int
    """Rows."""

    @classmethod
    def around(cls, geometry: Geometry) -> "MapGrid":
        """The smallest grid, with a margin of two pixels, that holds the swath."""
        line = np.arange(geometry.lines, dtype=np.float64)
        edges = [geometry.ground(line, np.full_like(line, sample)) for sample in (0.0, geometry.samples - 1.0)]
        x, y = geometry.project(*geometry.lonlat(*np.concatenate(edges, axis=1)))
        pixel = geometry.pixel
        left, top = (np.floor(x.min() / pixel) - 2) * pixel, (np.ceil(y.max() / pixel) + 2) * pixel
        width = int(np.ceil((x.max() - left) / pixel)) + 2
        height = int(np.ceil((top - y.min()) / pixel)) + 2
        return cls(geometry, float(left), float(top), width, height)

    def sources(self, row: Integers) -> tuple[Integers, Integers, NDArray[np.bool_]]:
        """(n_rows, width) Nearest line and sample of each map pixel, and whether the scene covers it."""
        geometry = self.geometry
        x = self.left + (np.arange(self.width, dtype=np.float64) + 0.5)[None, :] * geometry.pixel
        y = self.top - (row.astype(np.float64)[:, None] + 0.5) * geometry.pixel
        line, sample = (np.rint(part).astype(np.int64) for part in geometry.sensor(*geometry.unproject(x, y)))
        seen = detector.L.scene_columns(geometry.binning) & detector.S.scene_columns(geometry.binning)
        inside = (line >= 0) & (line < geometry.lines) & (sample >= 0) & (sample < geometry.samples)
        inside &= seen[np.clip(sample, 0, geometry.samples - 1)]
        return line, sample, inside


@dataclass(frozen=True)
class Relief:
    """The shape of the ground, as smooth as the laser altimeter sees it."""

    geometry: Geometry
    """The swath."""
    field: Field
    """Height in units of the relief."""

    @classmethod
    def of(cls, geometry: Geometry, seed: int) -> "Relief":
        """The relief of this seed."""
        return cls(geometry, Field(key(seed, "relief"), 0.5 * SWATH, octaves=4, gain=0.42))

    def elevation(self, east: Floats, north: Floats) -> Floats:
        """Metres above the reference surface."""
        return -1630.0 + 190.0 * self.field(east, north) - 0.02 * east

    def backplanes(self, line: Integers, sample: Integers) -> Floats:
        """(14, ...) The bands of a DDR at these pixels; bands without a source hold 1e32 as in real ones."""
        east, north = self.geometry.ground(line.astype(np.float64), sample.astype(np.float64))
        longitude, latitude = self.geometry.lonlat(east, north)
        step = 230.0  # metres: half a pixel of the altimeter's global map
        rise_east = (self.elevation(east + step, north) - self.elevation(east - step, north)) / (2 * step)
        rise_north = (self.elevation(east, north + step) - self.elevation(east, north - step)) / (2 * step)
        slope = np.arctan(np.hypot(rise_east, rise_north))
        downhill = np.arctan2(-rise_east, -rise_north) % (2 * np.pi)
        incidence = _SUN_INCIDENCE + 0.6 * (longitude - self.geometry.longitude)
        across = (sample - (self.geometry.samples - 1) / 2) / self.geometry.samples
        emission = 3.1 + 4.2 * np.abs(across + 0.17) + 0.01 * np.sin(line / 17.0)
        sun, view = np.radians(_SUN_AZIMUTH), np.radians(101.0)
        none = np.full_like(latitude, 1e32)
        return np.stack(
            [
                incidence,
                emission,
                incidence - 0.83 * emission,
                latitude,
                (longitude + 180.0) % 360.0 - 180.0,
                _tilted(incidence, slope, downhill, sun),
                _tilted(emission, slope, downhill, view),
                np.degrees(slope),
                np.degrees(downhill),
                self.elevation(east, north),
                none,
                none,
                15.21 + (longitude - self.geometry.longitude) / 15.0,
                none,
            ]
        )


def _tilted(angle: Floats, slope: Floats, downhill: Floats, azimuth: float) -> Floats:
    """Degrees between a direction (`angle` from the vertical) and the normal of a slope."""
    height = np.radians(angle)
    cosine = np.cos(height) * np.cos(slope) + np.sin(height) * np.sin(slope) * np.cos(azimuth - downhill)
    return np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))


def _swing(along: Floats) -> Floats:
    """Metres by which the swath lies to the side, at this distance along it."""
    return _SWING * np.sin(2 * np.pi * along / _SWING_LENGTH + _SWING_PHASE)
