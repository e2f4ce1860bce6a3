"""Where tiles are held and tallied: Dask, and only here.

One actor per worker holds the tiles it owns, so a sweep costs one message per worker. A tile's answer is a pure
function of the pass, so when a worker dies its tiles are read again by the others and the pass is repeated.
"""

import asyncio
import functools
import logging
import operator
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from gibbsite.errors import GibbsiteError
from gibbsite.settings import Cluster
from gibbsite.tiles import Task, Tile, tally

log = logging.getLogger(__name__)

ReadTile = Callable[[int, int], Tile]
Range = tuple[int, int]

MAX_DEATHS = 20
"""Passes lost to dying workers in a row before the run gives up."""


PLACE_SECONDS = 600
"""A worker that has not read its tiles by then counts as lost."""


def tile_ranges(n_pixels: int, tile_pixels: int) -> list[Range]:
    """Ranks [start, stop) of each tile."""
    return [(start, min(start + tile_pixels, n_pixels)) for start in range(0, n_pixels, tile_pixels)]


class TileHolder:
    """The tiles one worker owns, read once and kept."""

    def __init__(self, read: ReadTile, ranges: list[Range], n_threads: int) -> None:
        self._tiles = [read(start, stop).laid_out() for start, stop in ranges]
        self._threads = ThreadPoolExecutor(n_threads)

    def tally(self, task: Task) -> Any:
        """The sum of the tiles' answers; a holder owns one tile at least."""
        return _add(list(self._threads.map(lambda tile: tally(tile, task), self._tiles)))


@contextmanager
def holding_tiles(read: ReadTile, n_pixels: int, settings: Cluster) -> Iterator[Callable[[Task], Any]]:
    """A `reduce_tiles` function over all pixels, on the cluster the settings ask for."""
    ranges = tile_ranges(n_pixels, settings.tile_pixels)
    n_threads = settings.threads or max(1, len(os.sched_getaffinity(0)) // max(1, settings.workers))
    if settings.kind == "none":
        holder = TileHolder(read, ranges, n_threads)
        yield holder.tally
        return
    with _local_client(settings, n_threads) as client:
        pool = _Pool(client, read, ranges, n_threads)
        yield pool.reduce


@contextmanager
def _local_client(settings: Cluster, n_threads: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    # distributed sets its loggers to INFO when imported; a death is told of here, in one line.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    n_workers = max(1, settings.workers)
    # Workers that are killed leave semaphores, of which Python would tell the user after the last line.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker")
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=n_threads,
            # One worker lives in this process: numba releases the GIL, and nothing is serialised.
            processes=n_workers > 1,
            host="127.0.0.1" if n_workers > 1 else None,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        log.info("cluster: %d worker(s) x %d thread(s)", n_workers, n_threads)
        try:
            yield client
        except KeyboardInterrupt:
            # Closing waits for workers to end their pass, which may take long.
            if n_workers > 1:
                cluster.sync(_end_workers, cluster)
            raise


async def _end_workers(cluster: Any) -> None:
    await asyncio.gather(*(nanny.close(timeout=0.5) for nanny in cluster.workers.values()))


class _Pool:
    """Holders on the workers there are now, made anew when one of them is lost."""

    def __init__(self, client: Any, read: ReadTile, ranges: list[Range], n_threads: int) -> None:
        self._client, self._read, self._ranges, self._n_threads = client, read, ranges, n_threads
        self._holders: list[Any] = []

    def reduce(self, task: Task) -> Any:
        """The answers of all tiles, added up."""
        for _ in range(MAX_DEATHS):
            try:
                self._holders = self._holders or self._place()
                pending = [holder.tally(task) for holder in self._holders]
                answers = [future.result() for future in pending]
            except (OSError, RuntimeError) as error:
                if not _is_loss(error):
                    raise
                log.warning("a worker was lost (%s); its tiles move to the others", error)
                self._holders = []
                continue
            return _add(answers)
        raise GibbsiteError(f"workers died in {MAX_DEATHS} passes in a row; give them more memory or smaller tiles")

    def _place(self) -> list:
        """One holder per live worker, tiles dealt out in turn."""
        client = self._client
        client.wait_for_workers(1, timeout=60)
        # More workers than tiles: the others stand by for a death.
        workers = sorted(client.scheduler_info(n_workers=-1)["workers"])[: len(self._ranges)]
        futures = [
            client.submit(
                TileHolder,
                self._read,
                self._ranges[i :: len(workers)],
                self._n_threads,
                actor=True,
                workers=[worker],
                pure=False,
            )
            for i, worker in enumerate(workers)
        ]
        return [future.result(timeout=PLACE_SECONDS) for future in futures]


def _is_loss(error: Exception) -> bool:
    """Whether a call failed because its worker is gone: a broken connection, or an actor that Dask calls lost."""
    return isinstance(error, OSError) or "Actor was lost" in str(error)


def _add(answers: list[Any]) -> Any:
    return functools.reduce(operator.add, answers)
