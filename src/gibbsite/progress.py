"""What is told of a chain while it grows: a bar or log lines, and how long each sweep took.

Times differ from run to run, so they stand in a table of their own and never in a result.
"""

import logging
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from gibbsite import store
from gibbsite.errors import OutputError
from gibbsite.sampling import Chain

log = logging.getLogger(__name__)

HEADER = "sweep\tseconds\tdask_seconds\n"


@dataclass(frozen=True)
class Timing:
    """Of one sweep."""

    sweep: int
    seconds: float
    """Of the whole sweep."""
    dask_seconds: float
    """In which no worker was busy with its tiles: messages, sums of sums, lost workers."""

    def __str__(self) -> str:
        return f"{self.sweep}\t{self.seconds:.4f}\t{self.dask_seconds:.4f}\n"


class Progress:
    """A bar on a terminal, a line now and then elsewhere, and a table of times at the end."""

    def __init__(self, number: int, sweeps: int, done: int, overhead: Callable[[], float]) -> None:
        """Of chain `number`, of whose sweeps some are done; `overhead` gives Dask's seconds so far."""
        self._number, self._sweeps, self._overhead = number, sweeps, overhead
        self._bar = tqdm(
            total=sweeps, initial=done, desc=f"chain {number}", unit="sweep", disable=None, file=sys.stderr
        )
        self._said, self._n_said = time.monotonic(), 0
        self._clock = time.perf_counter(), overhead()
        self.timings: list[Timing] = []

    def tell(self, chain: Chain) -> None:
        """Tell of the last sweep."""
        state, info = chain.last, chain.trace[-1]
        now = time.perf_counter(), self._overhead()
        self.timings.append(Timing(state.sweep, now[0] - self._clock[0], now[1] - self._clock[1]))
        self._clock = now
        self._bar.update()
        self._bar.set_postfix_str(f"{info.n_classes} classes, {info.n_components} components", refresh=False)
        is_due = state.sweep in (1, self._sweeps) or time.monotonic() - self._said > 5.0
        if self._bar.disable and is_due:
            log.info(
                "chain %d sweep %d/%d: log joint %.1f, %d classes, %d components, kappa0 %.4f, kappa1 %.4f, %s",
                self._number,
                state.sweep,
                self._sweeps,
                info.log_joint,
                info.n_classes,
                info.n_components,
                info.kappa0,
                info.kappa1,
                self._time_per_sweep(),
            )

    def _time_per_sweep(self) -> str:
        """Mean time of the sweeps since the last line, and Dask's share of it."""
        recent = self.timings[self._n_said :]
        self._said, self._n_said = time.monotonic(), len(self.timings)
        seconds = sum(timing.seconds for timing in recent)
        share = sum(timing.dask_seconds for timing in recent) / max(seconds, 1e-9)
        return f"{seconds / len(recent):.3f} s per sweep, {100.0 * share:.0f} % of it Dask"

    def write(self, path: Path | None) -> None:
        """Write the table of times; rows of sweeps before this process stay. No chain fails for want of it."""
        if path is None or not self.timings:
            return
        before = [timing for timing in read_timings(path) if timing.sweep < self.timings[0].sweep]
        try:
            store.write_text(path, HEADER + "".join(map(str, [*before, *self.timings])))
        except OutputError as error:
            log.warning("no table of times: %s", error)

    def close(self) -> None:
        """End the bar."""
        self._bar.close()


def read_timings(path: Path) -> list[Timing]:
    """The rows of a table of times; none when there is no such table, for nothing depends on it."""
    with suppress(OSError, ValueError):
        header, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        if header == HEADER:
            cells = [line.split("\t") for line in lines]
            return [Timing(int(sweep), float(seconds), float(dask)) for sweep, seconds, dask in cells]
    return []
