"""Compiling the kernels once: the first worker of each kind of processor fills the cache that the others read."""

import platform
from pathlib import Path

import numpy as np

from gibbsite.components import Components
from gibbsite.replay import Replay
from gibbsite.tiles import Pass, Tile

CPU_FACTS = Path("/proc/cpuinfo")


def processor() -> str:
    """The kind of this processor: compiled kernels are kept by it."""
    if CPU_FACTS.exists():
        for line in CPU_FACTS.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def warm() -> None:
    """Run everything a worker will run, on a few pixels: kernels are compiled, or read from the cache."""
    n_features, zero = 2, np.uint64(0)
    components = Components(
        class_of=np.zeros(1, np.int64),
        log_weight=np.zeros(1),
        mean=np.zeros((1, n_features)),
        centre=np.zeros((1, n_features)),
        whiten=np.eye(n_features)[None],
        log_tail=-np.inf,
    )
    tile = Tile(0, np.zeros((32, n_features), np.int16), np.zeros(32, np.int16))
    task = Pass(components, zero, 1.0, next_block=(0, 4), n_known=1, is_voting=True)
    task.answer(tile)
    nothing = np.zeros(1, np.int64)
    Replay(task, nothing, nothing - 1, np.zeros((1, n_features)), np.zeros(1), zero).answer(tile)
