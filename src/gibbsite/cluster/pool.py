"""The client's side: workers come and go, tiles are dealt out anew, and every pass is answered in full."""

import asyncio
import functools
import logging
import operator
import uuid
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from gibbsite.cluster import admission
from gibbsite.cluster.calls import Connect, Lost, ask, run
from gibbsite.cluster.memory import Need
from gibbsite.cluster.ownership import Range, Shares, deal, reporters, roots
from gibbsite.cluster.resident import ReadTile, Share, move_in
from gibbsite.cluster.timing import Sum
from gibbsite.errors import GibbsiteError
from gibbsite.settings import Cluster
from gibbsite.tiles import Task

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_LOSSES = 20
"""Workers lost in a row, without one answered pass, before the run gives up."""

WATCH_SECONDS = 1.0
"""From one look at who is there to the next."""


class Pool:
    """The tiles of a scene on the workers there are now."""

    def __init__(self, client: Any, read: ReadTile, ranges: list[Range], settings: Cluster) -> None:
        self._client, self._read, self._ranges, self._settings = client, read, ranges, settings
        self._n_pixels = ranges[-1][1]
        self._n_features = read(0, 1).feature.shape[1]
        self._token = uuid.uuid4().hex
        self._connect: Connect = client.rpc
        self._present: dict[str, int] = {}
        """Threads of each worker that the scheduler knows."""
        self._shunned: set[str] = set()
        """Lost, though the scheduler may not have noticed, or refused."""
        self._refused: set[str] = set()
        self._shares: Shares = {}
        self._n_deals = 0
        self._warm: set[str] = set()
        """Kinds of processors whose kernels are compiled."""
        self._changed = asyncio.Event()

    # --- from the thread of the sampler

    def __enter__(self) -> "Pool":
        self._client.sync(self._begin)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.sync(self._end)

    def tally(self, task: Task) -> Sum:
        """The answers of all tiles, added up."""
        found: Sum = self._client.sync(self._tally, task)
        return found

    # --- in the event loop of the client

    async def _begin(self) -> None:
        await self._look()
        await self._wait_for_workers(self._settings.min_workers)
        self._connect = await admission.reach(self._client, sorted(self._present))
        self._watching = asyncio.ensure_future(self._watch())

    async def _end(self) -> None:
        self._watching.cancel()
        # Workers of an existing cluster live on, and should not keep our tiles; a second is enough for them to hear it.
        calls = [ask(self._connect, one, 1.0, "leave", self._token) for one in self._shares]
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 1.0)

    async def _tally(self, task: Task) -> Sum:
        for _ in range(MAX_LOSSES):
            try:
                await self._deal_if_needed()
                return await self._while_all_are_there(self._ask_roots(task))
            except Lost as lost:
                log.warning("worker %s was lost (%s); its tiles move to the others", lost.address, lost.why)
                self._shunned.add(lost.address)
        raise GibbsiteError(
            f"workers were lost {MAX_LOSSES} times in a row; give them more memory or smaller tiles, and see their logs"
        )

    async def _ask_roots(self, task: Task) -> Sum:
        asked = [self._ask(one, "tally", self._n_deals, task) for one in roots(list(self._shares))]
        found = functools.reduce(operator.add, await asyncio.gather(*asked))
        if found.n_pixels != self._n_pixels:
            raise GibbsiteError(f"{found.n_pixels} pixels answered, expected {self._n_pixels}: a fault of gibbsite")
        return found

    async def _while_all_are_there(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work gives; Lost as soon as the scheduler misses one of the workers."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                changed = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait({task, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                self._changed.clear()
                gone = sorted(set(self._shares) - set(self._present))
                if gone and not task.done():
                    raise Lost(gone[0], "left the cluster")
            return task.result()
        finally:
            task.cancel()

    # --- who is there

    async def _look(self) -> None:
        present = dict(await self._client.scheduler.ncores())
        if present != self._present:
            self._present = present
            self._changed.set()

    async def _watch(self) -> None:
        """Keep an eye on who is there; a lost worker that answers again may come back."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            with suppress(OSError):
                await self._look()
            self._shunned &= set(self._present)
            for one in sorted(self._shunned - self._refused):
                with suppress(OSError, TimeoutError):
                    await asyncio.wait_for(self._connect(one).echo(), WATCH_SECONDS)
                    self._shunned.discard(one)

    async def _wait_for_workers(self, n_workers: int) -> None:
        deadline = asyncio.get_running_loop().time() + self._settings.start_seconds
        while len(self._members()) < n_workers:
            if asyncio.get_running_loop().time() > deadline:
                raise GibbsiteError(
                    f"{len(self._members())} of {n_workers} worker(s) there after {self._settings.start_seconds:g} s; "
                    "see the workers' logs, or raise cluster.start_seconds"
                )
            await asyncio.sleep(0.1)
            await self._look()

    def _members(self) -> dict[str, int]:
        return {one: n for one, n in sorted(self._present.items()) if one not in self._shunned}

    # --- who holds what

    async def _deal_if_needed(self) -> None:
        """Deal out the tiles when the set of workers is another one."""
        await self._wait_for_workers(1)
        members = self._members()
        # More workers than tiles: the others stand by for a death.
        if set(members) != set(self._shares):
            await self._admit([one for one in members if one not in self._shares])
            members = self._members()
            await self._while_all_are_there(self._deal(members))

    async def _admit(self, newcomers: list[str]) -> None:
        """Let workers in that run what this process runs; at the start one that does not ends the run."""
        silence = self._settings.timeout_seconds
        checks = [admission.check_versions(self._connect, one, silence) for one in newcomers]
        for one, problem in zip(newcomers, await asyncio.gather(*checks), strict=True):
            if problem and not self._n_deals:
                raise GibbsiteError(problem)
            if problem:
                log.warning("%s; it is not used", problem)
                self._shunned.add(one)
                self._refused.add(one)
        let_in = [one for one in newcomers if one not in self._refused]
        kinds = await asyncio.gather(*(run(self._connect, one, silence, move_in) for one in let_in))
        # One of each kind of processor compiles, the others read what it wrote.
        first = {kind: one for kind, one in zip(kinds, let_in, strict=True) if kind not in self._warm}
        await asyncio.gather(*(self._ask(one, "warm") for one in first.values()))
        self._warm |= set(first)

    async def _deal(self, members: dict[str, int]) -> None:
        """Tell every worker its tiles, and who reports to whom."""
        shares, tree = deal(self._ranges, members, self._shares), reporters(list(members))
        told = {
            one: Share(
                self._n_deals + 1,
                tuple(shares[one]),
                tuple(tree[one]),
                self._settings.threads or n_threads,
                self._settings.timeout_seconds,
            )
            for one, n_threads in members.items()
        }
        await self._check_memory(told)
        self._n_deals += 1
        self._shares = shares
        await asyncio.gather(*(self._ask(one, "hold", self._read, share) for one, share in told.items()))
        log.info("%d tile(s) on %d worker(s)", len(self._ranges), len(members))

    async def _check_memory(self, told: dict[str, Share]) -> None:
        facts = (await self._client.scheduler.identity(n_workers=-1))["workers"]
        for one, share in told.items():
            need = Need(self._n_pixels, self._n_features, self._settings.tile_pixels, share.n_threads)
            n_held = sum(stop - start for start, stop in share.ranges)
            need.check(one, n_held, facts.get(one, {}).get("memory_limit") or 0)

    async def _ask(self, worker: str, function: str, *args: Any) -> Any:
        return await ask(self._connect, worker, self._settings.timeout_seconds, function, self._token, *args)
