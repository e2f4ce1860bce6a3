"""What lives on a worker: its tiles, and who reports to it."""

import asyncio
import functools
import importlib
import math
import operator
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from gibbsite.cluster.calls import OPERATION, Lost, ask, gather, pack, sent, unpack
from gibbsite.cluster.ownership import Range
from gibbsite.cluster.timing import Sum
from gibbsite.cluster.warming import processor, warm
from gibbsite.errors import GibbsiteError
from gibbsite.tiles import Meanwhile, Task, Tile, nothing, tally

ReadTile = Callable[[int, int], Tile]

LEASE_SECONDS = 1800.0
"""Tiles that nobody asked for so long are let go: their client was killed, and the worker may outlive it."""


BRIEF_SECONDS = 0.25
"""A pass that will be this short, as the last one was, keeps the worker from answering: another thread would do it, but
to hand it over and back takes a millisecond or two, and nobody misses a worker so soon."""


class TileHolder:
    """Tiles, read once and kept, and the threads that tally them."""

    def __init__(self, n_threads: int) -> None:
        self._n_threads = n_threads
        self._threads = ThreadPoolExecutor(n_threads)
        self._tiles: dict[Range, Tile] = {}

    def hold(self, read: ReadTile, ranges: Iterable[Range]) -> None:
        """Hold these tiles and no others; those held already are not read again."""
        wanted = list(ranges)
        kept = {one: self._tiles[one] for one in wanted if one in self._tiles}
        # First let go, then read: a worker must not need room for both.
        self._tiles = kept
        missing = [one for one in wanted if one not in kept]
        found = list(self._threads.map(lambda one: read(*one).laid_out(), missing))
        self._tiles = kept | dict(zip(missing, found, strict=True))

    def tally(self, task: Task, meanwhile: Meanwhile = nothing) -> Sum:
        """The sum of the tiles' answers; this thread first does what is to be done meanwhile."""
        begun = time.perf_counter()
        tiles = list(self._tiles.values())
        waiting = iter(tiles)
        # This thread works as well: one that sleeps meanwhile is woken late, or on a core that is taken.
        others = [self._threads.submit(_add_up, waiting, task) for _ in range(min(self._n_threads, len(tiles)) - 1)]
        try:
            meanwhile()
            mine = _add_up(waiting, task)
        finally:
            theirs = [other.result() for other in others]
        found = [one for one in (mine, *theirs) if one is not None]
        answer = functools.reduce(operator.add, found) if found else None
        return Sum(answer, sum(len(tile.feature) for tile in tiles), time.perf_counter() - begun)


def _add_up(waiting: Iterator[Tile], task: Task) -> Any:
    """The sum of the answers of the tiles that this thread got hold of; None of no tile."""
    total = None
    for tile in waiting:
        found = tally(tile, task)
        total = found if total is None else total + found
    return total


@dataclass(frozen=True)
class Share:
    """What one worker is told when tiles are dealt out."""

    deal: int
    """Number of the deal. Tasks name it, so that a message that comes late does no harm."""
    ranges: tuple[Range, ...]
    """Tiles of this worker."""
    reporters: tuple[str, ...]
    """Addresses of the workers whose answers it adds to its own."""
    n_threads: int
    silence: float
    """Seconds of silence after which one of them counts as lost."""


class Resident:
    """One client's tiles on this worker."""

    def __init__(self, worker: Any, token: str) -> None:
        self._worker, self._token = worker, token
        self._share: Share | None = None
        self._newest = 0
        self._holder: TileHolder | None = None
        self._lease: asyncio.TimerHandle | None = None
        self._turn = asyncio.Lock()
        self._seconds = math.inf
        """That this worker's last pass over its tiles took; inf before the first."""

    async def hold(self, told: bytes) -> None:
        """Take over a share of the tiles."""
        self._renew()
        read, share = unpack(told)
        async with self._turn:
            if share.deal <= self._newest:
                return
            self._share, self._newest, self._seconds = None, share.deal, math.inf
            self._holder = self._holder or TileHolder(share.n_threads)
            try:
                await asyncio.to_thread(self._holder.hold, read, share.ranges)
            except (GibbsiteError, OSError) as error:
                raise GibbsiteError(
                    f"worker {self._worker.address} cannot read its pixels ({error}); the results must lie on a file "
                    "system that all workers see under the same path"
                ) from None
            self._share = share

    async def tally(self, told: bytes) -> Sum:
        """The sum of this worker's tiles and of those that report to it; they are told what this one was told."""
        self._renew()
        deal, task = unpack(told)
        share, holder = self._share, self._holder
        if share is None or holder is None or share.deal != deal:
            raise Lost(self._worker.address, "no longer holds its tiles")
        asked = [ask(self._worker.rpc, one, share.silence, "tally", self._token, told) for one in share.reporters]
        theirs = gather(asked)
        try:
            # Knocks must be heard long before the worker would count as lost.
            if self._seconds > min(BRIEF_SECONDS, share.silence / 8):
                own, others = await asyncio.gather(asyncio.to_thread(holder.tally, task), theirs)
            else:
                await sent()
                own = holder.tally(task)
                others = await theirs
            self._seconds = own.seconds
            return functools.reduce(operator.add, others, own)
        finally:
            theirs.cancel()

    async def prepare(self, told: bytes) -> None:
        """Import what reads tiles, and compile the kernels or read them from their cache; the worker stays awake."""
        self._renew()
        module = unpack(told)
        try:
            await asyncio.to_thread(importlib.import_module, module)
        except ImportError as error:
            raise GibbsiteError(f"worker {self._worker.address} cannot import {module} ({error})") from None
        await asyncio.to_thread(warm)

    def _renew(self) -> None:
        if self._lease is not None:
            self._lease.cancel()
        self._lease = asyncio.get_running_loop().call_later(LEASE_SECONDS, self.leave)

    def leave(self) -> None:
        """Let everything go."""
        if self._lease is not None:
            self._lease.cancel()
        residents(self._worker).pop(self._token, None)


def residents(worker: Any) -> dict[str, Resident]:
    """The residents of a worker by the token of their client."""
    return vars(worker).setdefault("gibbsite_residents", {})


def move_in(dask_worker: Any) -> str:
    """From now on this worker understands our messages; the kind of its processor."""

    async def answer(function: str, token: str, told: bytes) -> dict[str, bytes]:
        return {"answer": pack(await _answer(dask_worker, function, token, told))}

    dask_worker.handlers[OPERATION] = answer
    return processor()


async def _answer(worker: Any, function: str, token: str, told: bytes) -> Any:
    """What the resident says. Errors travel as values: Dask would tell of those that are raised."""
    homes = residents(worker)
    try:
        if function == "leave":
            if token in homes:
                homes[token].leave()
            return None
        resident = homes.setdefault(token, Resident(worker, token))
        return await getattr(resident, function)(told)
    except Exception as error:
        # A worker that is about to leave can no longer ask others: it is lost, they are not.
        is_leaving = getattr(worker.status, "name", "") in {"closing", "closed", "failed"}
        return Lost(worker.address, "is closing") if is_leaving else error
