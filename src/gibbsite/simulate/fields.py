"""Random numbers and coherent noise that depend on seed, purpose and position, not on the order of work."""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_VALUE_NOISE_SPREAD = 0.455
"""Standard deviation of `_value_noise`, measured over many cells."""


def key(seed: int, purpose: str) -> int:
    """A 64-bit key for one purpose of one seed."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=8).digest(), "little")


def words(stream: int, *index: Integers) -> Words:
    """One 64-bit word per position; the index arrays broadcast (SplitMix64, Steele et al. 2014)."""
    state = np.full((1,) * max(np.ndim(axis) for axis in index), stream, dtype=np.uint64)
    for axis in index:
        state = _scrambled(state ^ (np.atleast_1d(axis).astype(np.uint64) * _STEP))
    return state


def uniform(stream: int, *index: Integers) -> Floats:
    """Uniform numbers inside (0, 1), one per position."""
    return (words(stream, *index) >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54


def normal(stream: int, *index: Integers) -> Floats:
    """Standard normal numbers, one per position."""
    return np.asarray(ndtri(uniform(stream, *index)))


@dataclass(frozen=True)
class Field:
    """Coherent noise over the plane, of about zero mean and unit spread, with detail at several scales."""

    stream: int
    """Key of the random lattice."""
    scale: float
    """Size of the largest features, in the unit of the coordinates."""
    octaves: int
    """Each octave halves the size of the features."""
    gain: float = 0.5
    """Strength of an octave against the one before."""

    def __call__(self, x: Floats, y: Floats) -> Floats:
        """The noise at (x, y), same shape."""
        total = np.zeros(np.broadcast_shapes(np.shape(x), np.shape(y)))
        power = 0.0
        for octave in range(self.octaves):
            # Turned lattices keep the straight cell edges of different octaves from adding up.
            turn = 0.61 + 1.13 * octave
            size = self.scale / 2.0**octave
            across = (np.cos(turn) * x + np.sin(turn) * y) / size
            along = (np.cos(turn) * y - np.sin(turn) * x) / size
            weight = self.gain**octave
            total += weight * _value_noise(self.stream ^ (octave + 1), across, along)
            power += weight**2
        return total / (_VALUE_NOISE_SPREAD * np.sqrt(power))


def sharpen(value: Floats, steepness: float) -> Floats:
    """A value pushed towards 0 or 1: the logistic curve, which turns one-mode noise into two modes."""
    return 1.0 / (1.0 + np.exp(-steepness * value))


def _value_noise(stream: int, x: Floats, y: Floats) -> Floats:
    """Smooth interpolation of uniform(-1, 1) values on the integer lattice."""
    left, low = np.floor(x), np.floor(y)
    across, along = _smooth(x - left), _smooth(y - low)
    column, row = left.astype(np.int64), low.astype(np.int64)
    # The four corners at once: [left or right, lower or upper, ...].
    corner = uniform(stream, np.stack([column, column + 1])[:, None], np.stack([row, row + 1])[None])
    lower = (1 - across) * corner[0, 0] + across * corner[1, 0]
    upper = (1 - across) * corner[0, 1] + across * corner[1, 1]
    return 2.0 * ((1 - along) * lower + along * upper) - 1.0


def _smooth(part: Floats) -> Floats:
    """The quintic ease curve: no kinks in the first two derivatives at the lattice lines."""
    return part * part * part * (part * (part * 6.0 - 15.0) + 10.0)


def _scrambled(state: Words) -> Words:
    state = (state ^ (state >> np.uint64(30))) * _MIX_1
    state = (state ^ (state >> np.uint64(27))) * _MIX_2
    return state ^ (state >> np.uint64(31))
