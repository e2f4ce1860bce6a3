"""Counter-based random numbers: one number per (seed, sweep, purpose, pixel), whoever asks and in whatever order.

Pixels take theirs from a hash of their rank (`pixel_key` and `kernels.uniforms`). The client's few draws come from
numpy's Philox, a counter-based generator too, under the same kind of key (`generator`).
"""

import hashlib
from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What a random number is for. Values are part of the result: never renumber them."""

    COMPONENTS = 1
    INDICATORS = 2
    BIRTHS = 3
    CLASSES = 4
    START = 5
    POLISH = 6
    ORDER = 9
    BLOCKS = 10
    SPLITS = 11
    ACCEPTANCE = 12
    CLASS_SPLITS = 13
    PINS = 14
    ROW_ORDER = 15
    COARSE_COLUMNS = 16


def pixel_key(seed: int, sweep: int, purpose: Purpose) -> np.uint64:
    """The 64-bit key under which pixels hash their rank."""
    return np.uint64(int.from_bytes(_digest(seed, sweep, purpose)[:8], "little"))


def generator(seed: int, sweep: int, purpose: Purpose) -> np.random.Generator:
    """A generator for the client's draws of this sweep and purpose."""
    return np.random.Generator(np.random.Philox(key=int.from_bytes(_digest(seed, sweep, purpose)[8:24], "little")))


def _digest(seed: int, sweep: int, purpose: Purpose) -> bytes:
    return hashlib.sha256(f"{seed}/{sweep}/{int(purpose)}".encode()).digest()
