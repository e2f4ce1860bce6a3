"""The client's side: workers come and go, tiles are dealt out anew, and every pass is answered in full."""

import asyncio
import functools
import logging
import operator
import threading
import uuid
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from gibbsite.cluster import admission
from gibbsite.cluster.calls import Connect, Lost, Replaced, ask, gather, pack, run, sent
from gibbsite.cluster.memory import Need
from gibbsite.cluster.ownership import Range, Shares, deal, reporters, roots
from gibbsite.cluster.resident import ReadTile, Share, move_in
from gibbsite.cluster.timing import Sum
from gibbsite.errors import GibbsiteError
from gibbsite.settings import Cluster
from gibbsite.tiles import Meanwhile, Task, nothing

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_LOSSES = 20
"""Workers lost in a row, without one answered pass, before the run gives up."""

SENDING_SECONDS = 0.1
"""In which a task is with the workers, unless tiles must be dealt out first: then the client does not wait for it."""

WATCH_SECONDS = 1.0
"""From one look at who is there to the next."""


class Pool:
    """The tiles of a scene on the workers there are now."""

    def __init__(self, client: Any, read: ReadTile, ranges: list[Range], settings: Cluster) -> None:
        self._client, self._read, self._ranges, self._settings = client, read, ranges, settings
        self._n_pixels = ranges[-1][1]
        self._n_features = read(0, 1).feature.shape[1]
        self._token = uuid.uuid4().hex
        self._connect: Connect | None = None
        self._present: dict[str, int] = {}
        """Threads of each worker that the scheduler knows."""
        self._arriving: dict[str, asyncio.Task[None]] = {}
        """Workers that are being prepared, while sweeps go on."""
        self._admitted: set[str] = set()
        self._refused: dict[str, str] = {}
        """Workers that may not take part, and why."""
        self._lost: set[str] = set()
        """Gone as far as we can tell, though the scheduler may not have noticed."""
        self._shares: Shares = {}
        self._n_deals = 0
        self._is_dealt = False
        """Whether everybody holds its share of the last deal, as far as we know."""
        self._compiled: dict[str, asyncio.Event] = {}
        """Kinds of processors, and whether their kernels are compiled."""
        self._changed = asyncio.Event()

    # --- from the thread of the sampler

    def __enter__(self) -> "Pool":
        self._client.sync(self._begin)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.sync(self._end)

    def tally(self, task: Task, meanwhile: Meanwhile = nothing) -> Sum:
        """The answers of all tiles, added up; while workers are at it, this thread does something else."""
        is_sent = threading.Event()
        asked = asyncio.run_coroutine_threadsafe(self._tally(task, is_sent), self._client.loop.asyncio_loop)
        try:
            # First everybody has the task: this thread would take the interpreter, and a core, from those who send it.
            is_sent.wait(SENDING_SECONDS)
            meanwhile()
            return asked.result()
        finally:
            asked.cancel()

    # --- in the event loop of the client

    async def _begin(self) -> None:
        self._watching = asyncio.ensure_future(self._watch())
        try:
            await self._wait_for_workers(self._settings.min_workers)
        except BaseException:
            # A block that was never entered is never left.
            self._watching.cancel()
            raise

    async def _end(self) -> None:
        for task in (self._watching, *self._arriving.values()):
            task.cancel()
        # Workers of an existing cluster live on, and should not keep our tiles; a second is enough for them to hear it.
        calls = [self._ask(one, "leave", b"") for one in self._shares]
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 1.0)

    async def _tally(self, task: Task, is_sent: threading.Event) -> Sum:
        for _ in range(MAX_LOSSES):
            try:
                await self._deal_if_needed()
                return await self._while_all_are_there(self._ask_roots(task, is_sent))
            except Lost as lost:
                log.warning("worker %s was lost (%s); its tiles move to the others", lost.address, lost.why)
                self._lost.add(lost.address)
                if isinstance(lost, Replaced):
                    self._admitted.discard(lost.address)
                self._is_dealt = False
        raise GibbsiteError(
            f"workers were lost {MAX_LOSSES} times in a row; give them more memory or smaller tiles, and see their logs"
        )

    async def _ask_roots(self, task: Task, is_sent: threading.Event) -> Sum:
        told = pack((self._n_deals, task))
        asked = gather(self._ask(one, "tally", told) for one in roots(list(self._shares)))
        try:
            await sent()
            is_sent.set()
            found = functools.reduce(operator.add, await asked)
        finally:
            asked.cancel()
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

    async def _watch(self) -> None:
        """Keep an eye on who is there: prepare those who come, and let lost ones that answer again come back."""
        while True:
            with suppress(OSError):
                await self._look()
            for one in sorted(self._lost):
                with suppress(OSError, TimeoutError):
                    await asyncio.wait_for((self._connect or self._client.rpc)(one).echo(), WATCH_SECONDS)
                    self._lost.discard(one)
                    log.info("worker %s is back", one)
            await asyncio.sleep(WATCH_SECONDS if self._admitted else WATCH_SECONDS / 10)

    async def _look(self) -> None:
        present = dict(await self._client.scheduler.ncores())
        is_new = present != self._present
        self._present = present
        self._admitted &= set(present)
        self._lost &= set(present)
        for one in set(present) - self._admitted - set(self._refused) - set(self._arriving):
            self._arriving[one] = asyncio.ensure_future(self._admit(one))
        if is_new:
            self._changed.set()

    async def _admit(self, one: str) -> None:
        """Let a worker in if it runs what this process runs, and prepare it; sweeps do not wait for it."""
        # Importing may keep a worker silent for long.
        patience = self._settings.start_seconds
        try:
            if self._connect is None:
                self._connect = await admission.reach(self._client, one)
            await admission.check_versions(self._connect, one, patience)
            kind = await run(self._connect, one, patience, move_in)
            await self._prepare(one, kind)
            self._admitted.add(one)
            log.info("worker %s is ready", one)
        except Lost as lost:
            log.info("worker %s came and went (%s)", one, lost.why)
        except GibbsiteError as error:
            self._refused[one] = str(error)
            log.warning("%s; it is not used", error)
        finally:
            del self._arriving[one]

    async def _prepare(self, one: str, kind: str) -> None:
        """One of each kind of processor compiles, the others read what it wrote."""
        compiled = self._compiled.get(kind)
        if compiled is None:
            compiled = self._compiled[kind] = asyncio.Event()
        else:
            await compiled.wait()
        try:
            assert self._connect is not None, "the worker could be spoken to"
            patience = self._settings.start_seconds
            await ask(self._connect, one, patience, "prepare", self._token, pack(self._read.__module__))
        finally:
            compiled.set()

    async def _wait_for_workers(self, n_workers: int) -> None:
        deadline = asyncio.get_running_loop().time() + self._settings.start_seconds
        while len(self._members()) < n_workers:
            if self._refused and not self._n_deals:
                raise GibbsiteError(next(iter(self._refused.values())))
            if asyncio.get_running_loop().time() > deadline:
                raise GibbsiteError(
                    f"{len(self._members())} of {n_workers} worker(s) there after {self._settings.start_seconds:g} s; "
                    "see the workers' logs, or raise cluster.start_seconds"
                )
            await asyncio.sleep(0.05)

    def _members(self) -> dict[str, int]:
        """Threads of each worker that can take part now."""
        return {one: self._present[one] for one in sorted(self._admitted - self._lost)}

    # --- who holds what

    async def _deal_if_needed(self) -> None:
        """Deal out the tiles when the set of workers is another one."""
        await self._wait_for_workers(1)
        members = self._members()
        if not self._is_dealt or set(members) != set(self._shares):
            await self._while_all_are_there(self._deal(members))

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
        self._is_dealt = False
        # More workers than tiles: those without any stand by for a death.
        self._shares = shares
        await asyncio.gather(*(self._ask(one, "hold", pack((self._read, share))) for one, share in told.items()))
        self._is_dealt = True
        log.info("%d tile(s) on %d worker(s)", len(self._ranges), len(members))

    async def _check_memory(self, told: dict[str, Share]) -> None:
        facts = (await self._client.scheduler.identity(n_workers=-1))["workers"]
        for one, share in told.items():
            need = Need(self._n_pixels, self._n_features, self._settings.tile_pixels, share.n_threads)
            n_held = sum(stop - start for start, stop in share.ranges)
            need.check(one, n_held, facts.get(one, {}).get("memory_limit") or 0)

    async def _ask(self, worker: str, function: str, told: bytes) -> Any:
        assert self._connect is not None, "nobody was let in yet"
        return await ask(self._connect, worker, self._settings.timeout_seconds, function, self._token, told)
