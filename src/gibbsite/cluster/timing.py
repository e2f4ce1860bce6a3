"""Where the time of a sweep goes: into the kernels, or into getting tasks to the tiles and sums back."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gibbsite.tiles import Task


@dataclass(frozen=True)
class Sum:
    """Answers of some tiles, added up."""

    answer: Any
    """Their sum; None of no tile."""
    n_pixels: int
    """Pixels of these tiles: the sum of all tiles must have seen each pixel once."""
    seconds: float
    """That the busiest worker spent on its own tiles."""

    def __add__(self, other: "Sum") -> "Sum":
        # None is the sum of no tiles, of a worker that stands by.
        both = [one.answer for one in (self, other) if one.answer is not None]
        answer = both[0] + both[1] if len(both) == 2 else (both or [None])[0]
        return Sum(answer, self.n_pixels + other.n_pixels, max(self.seconds, other.seconds))


class Reduce:
    """`reduce_tiles`, with a clock: the seconds spent beside the kernels."""

    def __init__(self, tally: Callable[[Task], Sum]) -> None:
        self._tally = tally
        self.overhead = 0.0
        """Seconds so far in which no worker was busy with a tile: messages, sums of sums, losses."""

    def __call__(self, task: Task) -> Any:
        begun = time.perf_counter()
        found = self._tally(task)
        self.overhead += max(0.0, time.perf_counter() - begun - found.seconds)
        return found.answer
