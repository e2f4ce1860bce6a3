"""Where the time of a sweep goes: into the kernels, or into getting tasks to the tiles and sums back."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gibbsite.tiles import Meanwhile, Task, nothing


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

    def __init__(self, tally: Callable[[Task, Meanwhile], Sum]) -> None:
        self._tally = tally
        self.overhead = 0.0
        """Seconds so far in which neither a worker nor the client was busy with pixels: messages, sums, losses."""

    def __call__(self, task: Task, meanwhile: Meanwhile = nothing) -> Any:
        begun, busy = time.perf_counter(), 0.0

        def timed() -> None:
            nonlocal busy
            since = time.perf_counter()
            meanwhile()
            busy = time.perf_counter() - since

        found = self._tally(task, timed)
        self.overhead += max(0.0, time.perf_counter() - begun - max(found.seconds, busy))
        return found.answer
