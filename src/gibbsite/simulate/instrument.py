"""From the ground to what the instrument records: light, air, haze, stripes, noise, spikes, garbage."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from gibbsite.settings import Simulate
from gibbsite.simulate import minerals
from gibbsite.simulate.detector import FILL, Channels, Detector, map_bands, map_channels, sensor_channels
from gibbsite.simulate.fields import Field, Floats, Integers, key, normal, uniform
from gibbsite.simulate.geometry import SWATH, Geometry, Relief
from gibbsite.simulate.terrain import Terrain, majority

_SCALE_HEIGHT = 10800.0
"""Metres over which the air pressure of Mars falls by a factor e."""

_GARBAGE = {
    1: (1.0, -47545.0, 47458.0, 0.83, 0.113),
    2: (0.071, -1065.0, 6639.0, 0.30, 0.067),
    3: (0.067, -217.0, 0.0, 1.0, 0.0),
}
"""By L band, from a real image: share of garbage, its extremes, its negative share, share of fill."""


@dataclass(frozen=True)
class Pixels:
    """All that the instrument needs to know about some pixels of the swath."""

    line: Integers
    """(n_pixels)"""
    sample: Integers
    """(n_pixels)"""
    code: NDArray[np.uint8]
    """(n_pixels) Class."""
    abundance: Floats
    """(n_minerals, n_pixels)"""
    false_band: Floats
    """(n_pixels) Depth of the false band."""
    light: Floats
    """(n_pixels) Cosine of the incidence angle, with the relief too fine for the altimeter."""
    air: Floats
    """(n_pixels) Carbon dioxide in the path against one air mass at zero elevation."""
    dust_slope: Floats
    """(n_pixels) Relative change of I/F per µm by dust in the air."""
    ice: Floats
    """(n_pixels) Water ice in the air, 0 to 1."""

    def __getitem__(self, part: slice) -> "Pixels":
        """Some of the pixels."""
        return Pixels(**{item.name: getattr(self, item.name)[..., part] for item in fields(self)})


@dataclass(frozen=True)
class Scenery:
    """The ground and the air above it."""

    terrain: Terrain
    """What the ground is made of."""
    relief: Relief
    """Its shape."""
    haze: tuple[Field, Field, Field]
    """Dust in the air, ice in the air, and the fine relief."""

    @classmethod
    def of(cls, settings: Simulate, seed: int) -> "Scenery":
        """The scenery of these settings and this seed."""
        haze = (
            Field(key(seed, "dust haze"), 0.7 * SWATH, 2),
            Field(key(seed, "ice haze"), 0.5 * SWATH, 3),
            Field(key(seed, "fine relief"), 0.03 * SWATH, 2),
        )
        return cls(Terrain.of(settings, seed), Relief.of(Geometry.of(settings), seed), haze)

    def pixels(self, line: Integers, sample: Integers) -> Pixels:
        """These pixels."""
        share = self.terrain.fractions(line, sample)
        false_band = self.terrain.artefact.depth(line, sample)
        plane = self.relief.backplanes(line, sample)
        east, north = self.terrain.geometry.ground(line.astype(np.float64), sample.astype(np.float64))
        shade = 1.0 + 0.015 * self.haze[2](east, north)
        path = 1.0 / np.cos(np.radians(plane[0])) + 1.0 / np.cos(np.radians(plane[1]))
        return Pixels(
            line,
            sample,
            majority(share, false_band),
            self.terrain.abundances(line, sample, share),
            false_band,
            np.cos(np.radians(plane[5])) * shade,
            0.5 * path * np.exp(-plane[9] / _SCALE_HEIGHT),
            -0.012 + 0.008 * self.haze[0](east, north),
            0.010 * np.clip(self.haze[1](east, north) - 0.2, 0.0, 2.0),
        )


@dataclass(frozen=True)
class Recorder:
    """Turns pixels into spectra of one product. Tables have one column where the smile has been removed."""

    channels: Channels
    """Its bands."""
    reflectance: Floats
    """(n_minerals, n_bands, n_samples or 1) Of the pure minerals, at each column's own wavelengths."""
    taken: tuple[Floats, Floats, Floats]
    """Light taken by the false band (against its depth), by ice, and the optical depth of an air mass."""
    gain: Floats
    """(n_bands, n_samples) Column stripes."""
    noise: Floats
    """(n_bands) Standard deviation of the noise at I/F 0.25."""
    air: float
    """Share of the atmosphere and the aerosols that is left in the product."""
    stream: tuple[int, int]
    """Keys of noise and spikes, the same for all products so that they show the same measurement."""
    spike_rate: float
    """Share of the values that are spikes."""

    def spectra(self, pixels: Pixels) -> Floats:
        """(n_bands, n_pixels) I/F without noise, spikes and stripes."""
        column = pixels.sample if self.reflectance.shape[2] > 1 else np.zeros(1, dtype=np.int64)
        found = np.zeros((self.reflectance.shape[1], pixels.line.size))
        # A plain sum in a fixed order: a matrix product may round differently for another number of pixels.
        for amount, pure in zip(pixels.abundance, self.reflectance, strict=True):
            found += amount * pure[:, column]
        false_band, ice, air = (table[:, column] for table in self.taken)
        found *= 1.0 - pixels.false_band * false_band
        found *= 1.0 + self.air * pixels.dust_slope * (self.channels.wavelength[:, column] - 1.5)
        found *= 1.0 - self.air * pixels.ice * ice
        return found * np.exp(-self.air * pixels.air * air)

    def record(self, pixels: Pixels, shaded: bool) -> Floats:
        """(n_bands, n_pixels) I/F as in the product; `shaded` keeps the light that falls on the slopes."""
        found = self.spectra(pixels) * self.gain[:, pixels.sample]
        if shaded:
            found *= pixels.light
        where = pixels.line[None, :], pixels.sample[None, :], self.channels.channel[:, None]
        level = np.sqrt(0.3 + 0.7 * np.clip(found, 0.0, None) / 0.25)
        found += self.noise[:, None] * level * normal(self.stream[0], *where)
        if self.spike_rate:
            chance = uniform(self.stream[1], *where)
            size = np.clip(0.03 / np.sqrt(np.clip(chance / self.spike_rate, 1e-4, 1.0)), 0.0, 0.15)
            found += np.where(chance < self.spike_rate, np.where(pixels.sample % 3 == 0, -size, size), 0.0)
        return found


def sensor_recorder(detector: Detector, settings: Simulate, seed: int) -> Recorder:
    """The recorder of an image in sensor space."""
    channels = sensor_channels(detector, settings.binning)
    return Recorder(
        channels,
        _pure(channels),
        _taken(channels),
        1.0 + _stripes(channels, 1.0, settings, seed),
        settings.noise * _noise(channels.wavelength.mean(axis=1)),
        1.0,
        (key(seed, "noise"), key(seed, "spikes")),
        1e-4 * settings.noise,
    )


def map_recorder(settings: Simulate, seed: int) -> Recorder:
    """The recorder of the map-projected product: corrections made, a little of everything left over."""
    channels = map_channels()
    tables = []
    for detector, band in map_bands():
        tables.append(_stripes(sensor_channels(detector, settings.binning), 0.2, settings, seed)[band])
    return Recorder(
        channels,
        _pure(channels),
        _taken(channels),
        1.0 + np.concatenate(tables),
        0.6 * settings.noise * _noise(channels.wavelength[:, 0]),
        0.05,
        (key(seed, "noise"), key(seed, "spikes")),
        0.0,
    )


def spoil_infrared(image: Floats, line: Integers, seed: int) -> Floats:
    """(n_bands, n_samples) A line of an L image, its first bands as in real files: fill, then garbage."""
    spoilt = image.copy()
    sample = np.arange(image.shape[1])
    spoilt[0] = FILL
    for band, (share, lowest, highest, negative, fill) in _GARBAGE.items():
        draw = [uniform(key(seed, f"garbage {part}"), line, sample, np.array([band])) for part in range(4)]
        garbage = np.where(draw[1] < negative, lowest, highest) * draw[2] ** 2
        spoilt[band] = np.where(draw[0] < share, garbage, spoilt[band])
        spoilt[band] = np.where(draw[3] < fill, FILL, spoilt[band])
    return spoilt


def spoil_visible(image: Floats, wavelength: Floats) -> Floats:
    """(n_bands, n_samples) A line of an S image with the error that makes its first bands negative."""
    return image - 0.14 * np.exp(-(wavelength - 0.3645) / 0.0085)


def spoil_map(image: Floats, pixels: Pixels, wavelength: Floats, seed: int) -> Floats:
    """(n_bands, n_pixels) Map-projected spectra with a few wild values, most of them at the ends."""
    end = (wavelength < 0.45) | (wavelength > 3.85)
    rate = np.where(end, 4e-3, 1e-5)
    band = np.arange(wavelength.size)[:, None]
    chance = uniform(key(seed, "outliers"), pixels.line[None], pixels.sample[None], band) / rate[:, None]
    return np.where(chance < 1.0, np.where(chance < 0.25, -1700.0, 20500.0) * chance**3, image)


def _pure(channels: Channels) -> Floats:
    return np.stack([mineral.reflectance(channels.wavelength) for mineral in minerals.MINERALS])


def _taken(channels: Channels) -> tuple[Floats, Floats, Floats]:
    false_band, ice, air = (
        minerals.transmitted(bands, channels.wavelength)
        for bands in (minerals.FALSE_BAND, minerals.WATER_ICE, minerals.CARBON_DIOXIDE)
    )
    return 1.0 - false_band, 1.0 - ice, -np.log(air)


def _noise(wavelength: Floats) -> Floats:
    """Noise at I/F 0.25 of a good scene: one part in 350 between 1.0 and 2.6 µm, more towards the ends."""
    ratio = (
        350.0 - 190.0 * np.clip((wavelength - 2.6) / 1.3, 0.0, 1.0) - 150.0 * np.clip((0.6 - wavelength) / 0.2, 0, 1)
    )
    return 0.25 / np.maximum(ratio, 60.0)


def _stripes(channels: Channels, left: float, settings: Simulate, seed: int) -> Floats:
    """(n_bands, n_samples) Relative error of the gain, of which `left` remains."""
    sample = np.arange(640 // settings.binning)
    column = normal(key(seed, "column gain"), sample)[None, :]
    single = normal(key(seed, "pixel gain"), sample[None, :], channels.channel[:, None])
    size = np.where(channels.wavelength.mean(axis=1) < 2.65, 0.004, 0.012)[:, None]
    return left * settings.noise * size * (0.8 * column + 0.6 * single)
