"""What Dask costs: ways to reach workers, its share of a sweep, and a cost model checked at 1,000 simulated workers.

dispatch  milliseconds to send a pass to 2 workers and get sums back, with a kernel that does nothing
share     chains over 280,000 pixels of 20 features on several clusters: time of a sweep, and Dask's part of it
model     bytes and seconds of messages against K and L, fitted to a formula; what the formula says of 1,000 workers and
          10⁹ pixels; and the same pass executed message by message for 1,000 simulated workers

Usage: python benchmarks/clusters.py [dispatch | share | model] [repeats]
"""

import functools
import operator
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sweep
from distributed import Client, LocalCluster, protocol

from gibbsite import cluster, plan, sampling, start
from gibbsite.cluster.calls import OPERATION, pack, unpack
from gibbsite.cluster.ownership import FANOUT, reporters, roots, tile_ranges
from gibbsite.cluster.timing import Sum
from gibbsite.sampling import Chain
from gibbsite.settings import Cluster, Fit
from gibbsite.tiles import Tile

N_PIXELS, N_FEATURES = 280_000, 20


class Table:
    """Pixels of 12 classes of 5 components, made where they are read; the same on every worker."""

    def __init__(self, n_features: int = N_FEATURES) -> None:
        case = sweep.Case(d=n_features)
        self.mean = sweep.draw_components(case, np.random.default_rng(0)).mean

    def __call__(self, first: int, stop: int) -> Tile:
        # In runs of 4,096, so that a pixel does not depend on the tile it is read with.
        runs = range(first // 4096, -(-stop // 4096))
        feature = np.concatenate([self._run(number) for number in runs])
        skip = first - 4096 * runs.start
        return Tile(first, feature[skip : skip + stop - first], np.full(stop - first, -1, np.int16))

    def _run(self, number: int) -> np.ndarray:
        generator = np.random.default_rng(number)
        values = self.mean[generator.integers(0, len(self.mean), 4096)]
        values += generator.normal(size=values.shape)
        return np.clip(np.round(values / sweep.STEP / 4), -32767, 32767).astype(np.int16)


# ------------------------------------------------------------------------------------------------ dispatch


class Actor:
    """A worker's part under Dask's actors."""

    def __init__(self, answer: np.ndarray) -> None:
        self.answer = answer

    async def tally(self, _task: object) -> np.ndarray:
        return self.answer


class Nothing:
    """A task of the size of a pass, answered at once with sums of real size."""

    def __init__(self) -> None:
        self.task = np.zeros(6_000)

    def answer(self, _tile: Tile) -> np.ndarray:
        return ANSWER


ANSWER = np.zeros(30_000, np.int64)
"""240 kB, the sums of 60 components in 20 dimensions, and labels of a block."""


def rows_of_dispatch(repeats: int) -> Iterator[str]:
    """The table of ways to reach two workers."""
    yield "| way | ms, best | ms, median | CPU ms of the client |"
    yield "|---|---|---|---|"
    nothing = Nothing()
    for is_direct in (False, True):
        local = LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0")
        with local, Client(local, direct_to_workers=is_direct) as client:
            workers = list(client.scheduler_info(n_workers=-1)["workers"])
            made = [client.submit(Actor, ANSWER, actor=True, workers=[one], pure=False) for one in workers]
            actors = [one.result() for one in made]
            way = "directly" if is_direct else "by the scheduler"
            yield timed(f"one actor per worker, {way}", functools.partial(_by_actors, actors, nothing), repeats)
            if not is_direct:
                yield timed("client.run", functools.partial(client.run, _answer, nothing), repeats)
                futures = functools.partial(_by_futures, client, workers, nothing)
                yield timed("one future per worker", futures, max(3, repeats // 4))
    settings = Cluster(kind="local", workers=2, threads=1, tile_pixels=65536, min_workers=2)
    with cluster.holding_tiles(Table(2), 131_072, settings) as reduce_tiles:
        yield timed("gibbsite: a message to each worker's resident", functools.partial(reduce_tiles, nothing), repeats)


def _answer(_task: object) -> np.ndarray:
    return ANSWER


def _by_actors(actors: list[Any], task: object) -> None:
    for future in [one.tally(task) for one in actors]:
        future.result()


def _by_futures(client: Client, workers: list[str], task: object) -> None:
    client.gather([client.submit(_answer, task, workers=[one], pure=False) for one in workers])


def timed(name: str, call: Callable[[], object], repeats: int) -> str:
    """One row: wall and CPU time of a call."""
    for _ in range(5):
        call()
    runs = [sweep.seconds(call) for _ in range(repeats)]
    wall, cpu = (np.array(column) * 1e3 for column in zip(*runs, strict=True))
    return f"| {name} | {wall.min():.1f} | {np.median(wall):.1f} | {cpu.mean():.1f} |"


# ------------------------------------------------------------------------------------------------ share


@dataclass(frozen=True)
class Timed:
    """Sweeps of a chain."""

    seconds: np.ndarray
    overhead: np.ndarray
    last: Chain


def run_chain(settings: Cluster, sweeps: int) -> Timed:
    """A chain that began with 60 cells; its first sweeps do not count."""
    read, fit = Table(), Fit(start_components=60)
    rules = plan.chain_rules(fit, 1, (N_PIXELS, N_FEATURES, 0), sweep.STEP * 4)
    prior = plan.first_prior(fit, N_FEATURES)
    clock: list[tuple[float, float]] = []
    with cluster.holding_tiles(read, N_PIXELS, settings) as reduce_tiles:
        reads = (reduce_tiles, read)
        begun = sampling.begin(start.first_state(None, rules, prior, (60, 0), reads))

        def note(_chain: Chain) -> None:
            clock.append((time.perf_counter(), reduce_tiles.overhead))

        chain = sampling.sample(begun, rules, (1, sweeps + 5), reads, note)
    steps = np.diff(np.array(clock[4:]), axis=0)
    return Timed(steps[:, 0], steps[:, 1], chain)


CLUSTERS = [
    Cluster(kind="local", workers=2, threads=1, tile_pixels=65536, min_workers=2),
    Cluster(kind="local", workers=1, threads=2, tile_pixels=65536),
    Cluster(kind="none", threads=2, tile_pixels=65536),
    Cluster(kind="local", workers=2, threads=1, tile_pixels=16384, min_workers=2),
    Cluster(kind="local", workers=2, threads=1, tile_pixels=4096, min_workers=2),
    Cluster(kind="local", workers=1, threads=2, tile_pixels=16384),
    Cluster(kind="none", threads=2, tile_pixels=16384),
    Cluster(kind="local", workers=4, threads=1, tile_pixels=16384, min_workers=4),
]


def rows_of_shares(repeats: int) -> Iterator[str]:
    """The table of Dask's share of a sweep."""
    yield "| cluster | tile_pixels | tiles | ms per sweep | Dask's ms | share | best tenth: ms | Dask's | share |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for settings in CLUSTERS:
        found = run_chain(settings, repeats)
        wall, dask = np.median(found.seconds), np.median(found.overhead)
        name = f"none, {settings.threads} threads"
        if settings.kind == "local":
            where = "processes" if settings.workers > 1 else "in this process"
            name = f"local, {settings.workers} × {settings.threads}, {where}"
        best = np.argsort(found.seconds)[: max(1, repeats // 10)]
        good = found.seconds[best].mean(), found.overhead[best].mean()
        yield (
            f"| {name} | {settings.tile_pixels:,} | {len(tile_ranges(N_PIXELS, settings.tile_pixels))} "
            f"| {1e3 * wall:.1f} | {1e3 * dask:.1f} | {dask / wall:.1%} "
            f"| {1e3 * good[0]:.1f} | {1e3 * good[1]:.1f} | {good[1] / good[0]:.1%} |"
        )


# ------------------------------------------------------------------------------------------------ cost model


@dataclass(frozen=True)
class Costs:
    """Of one message down and one up, for K classes and L components; seconds and bytes."""

    k: int
    l: int  # noqa: E741
    down_bytes: int
    up_bytes: int
    pack_task: float
    unpack_task: float
    pack_sum: float
    unpack_sum: float
    add: float


def payload(k: int, l: int) -> tuple[Any, Sum]:  # noqa: E741
    """A pass with so many classes and components, and a real answer to it."""
    case = sweep.Case(n=4096, d=N_FEATURES, k=k, l=l)
    components = sweep.draw_components(case, np.random.default_rng(0))
    holder = sweep.hold_tiles(case, components)
    task = replace(sweep.plan_pass(components, holder), next_block=(0, 4096))
    return task, holder.tally(task)


def clocked(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and the CPU time it took: waiting for a core on a shared machine does not count."""
    begun = time.thread_time()
    found = call()
    return found, time.thread_time() - begun


def message(packed: bytes) -> list[Any]:
    """A message of Dask's that carries a packed task, as frames: what a node does for each that reports to it."""
    return protocol.dumps({"op": OPERATION, "function": "tally", "told": packed})


def task_of(frames: list[Any]) -> Any:
    """What arrives with a message."""
    return unpack(protocol.loads(frames)["told"])


def measure_costs(k: int, l: int, repeats: int) -> Costs:  # noqa: E741
    """Times of what a message takes, the best of some runs."""
    task, answer = payload(k, l)
    # A task is packed once, and every message carries it as it is.
    packed = pack(task)
    down, up = message(packed), pack(answer)

    def best(call: Callable[[], object]) -> float:
        return min(clocked(call)[1] for _ in range(repeats))

    return Costs(
        k, l, sum(map(len, down)), len(up),
        best(lambda: message(packed)), best(lambda: task_of(down)),
        best(lambda: pack(answer)), best(lambda: unpack(up)),
        best(lambda: answer + answer),
    )  # fmt: skip


def measure_hop(repeats: int) -> float:
    """Seconds of an empty message to a worker process on this machine and back, without what it carries."""
    local = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    )
    with local, Client(local) as client:
        (worker,) = client.scheduler_info(n_workers=-1)["workers"]

        async def echo() -> None:
            await client.rpc(worker).echo()

        for _ in range(10):
            client.sync(echo)
        return min(sweep.seconds(lambda: client.sync(echo))[0] for _ in range(20 * repeats))


def depth(n_workers: int, fanout: int = FANOUT) -> int:
    """Levels of the tree below the client."""
    level, reached = 0, 0
    while reached < n_workers:
        level += 1
        reached += fanout**level
    return level


def predicted(costs: Costs, n_workers: int, hop: float, wire: float) -> float:
    """Seconds of a pass beside the kernels: on each level a node packs and sends for each of those that report to it,
    one after the other, and takes their sums in one after the other.

    The last level is full in few trees only, so this is an upper bound by less than one level.
    """
    fans = [FANOUT] * (depth(n_workers) - 1) + [min(FANOUT, n_workers)]
    down = costs.pack_task + costs.down_bytes / wire
    up = costs.unpack_sum + costs.add + costs.up_bytes / wire
    return sum(fan * (down + up) + hop + costs.unpack_task + costs.pack_sum for fan in fans)


def simulated(costs: Costs, n_workers: int, hop: float, wire: float) -> tuple[float, float, int]:
    """The same pass, every message of it packed, unpacked and added for real: clock of the pass, busy seconds of the
    client, messages. Workers are simulated: each has a clock of its own, on which what it does takes as long as it took
    here, and what travels takes `hop` and its bytes over `wire`.
    """
    task, answer = payload(costs.k, costs.l)
    packed = pack(task)
    names = [f"{number}" for number in range(n_workers)]
    below = reporters(names)
    counted, n_messages = np.zeros(1, np.int64), 0

    def run(children: list[str], own: Sum | None, now: float) -> tuple[Sum, float, float]:
        """A node's sum, when it is ready, and how long the node was busy."""
        nonlocal n_messages
        busy, arrived = 0.0, []
        for child in children:
            frames, seconds = clocked(lambda: message(packed))
            seconds += sum(map(len, frames)) / wire
            now, busy = now + seconds, busy + seconds
            reached = now + hop / 2
            _, seconds = clocked(lambda frames=frames: task_of(frames))
            subtotal, ready, _ = run(below[child], answer, reached + seconds)
            reply, seconds = clocked(lambda subtotal=subtotal: pack(subtotal))
            arrived.append((ready + seconds + hop / 2, reply))
            n_messages += 2
        total = own
        for ready, reply in sorted(arrived, key=lambda one: one[0]):
            found, seconds = clocked(lambda reply=reply: unpack(reply))
            seconds += len(reply) / wire
            if total is not None:
                total, more = clocked(lambda total=total, found=found: total + found)
                seconds += more
            else:
                total = found
            now, busy = max(now, ready) + seconds, busy + seconds
        assert total is not None
        return total, now, busy

    total, end, busy = run(roots(names), None, 0.0)
    counted[0] = total.n_pixels
    assert counted[0] == n_workers * answer.n_pixels, "an answer was lost or counted twice"
    whole = functools.reduce(operator.add, [answer.answer.statistics.n] * n_workers)
    assert np.array_equal(total.answer.statistics.n, whole)
    return end, busy, n_messages


def client_seconds(k: int, l: int) -> tuple[float, int, int]:  # noqa: E741
    """What the client does in a sweep beside the pass: CPU time in a chain, the median of 20 sweeps."""
    n_pixels = 60_000
    case = sweep.Case(n=n_pixels, d=N_FEATURES, k=k, l=l)
    components = sweep.draw_components(case, np.random.default_rng(0))
    holder = sweep.hold_tiles(case, components)
    fit = Fit(start_components=l, split_every=0)
    rules = replace(plan.chain_rules(fit, 1, (n_pixels, N_FEATURES, 0), sweep.STEP), birth_block=4096)
    parts = list(holder._tiles.values())
    pixels = Tile(0, np.concatenate([p.feature for p in parts]), np.concatenate([p.known for p in parts]))
    spent: list[float] = []

    kernels = ThreadPoolExecutor(1)

    def reduce_tiles(task: Any, *_: object) -> Any:
        # The kernels run in a thread of their own, whose time is not counted.
        return kernels.submit(holder.tally, task).result().answer

    from gibbsite.gibbs import sweep as one_sweep

    prior = plan.first_prior(fit, N_FEATURES)
    state = start.first_state(None, rules, prior, (l, 0), (reduce_tiles, pixels.part))
    for _ in range(23):
        spent.append(-time.thread_time())
        state, info = one_sweep(state, rules, reduce_tiles, pixels.part)
        spent[-1] += time.thread_time()
    return float(np.median(spent[3:])), info.n_classes, info.n_components


WIRE = 1e9
"""Bytes per second between hosts: ten-gigabit Ethernet, less what it loses."""


def rows_of_model(repeats: int) -> Iterator[str]:
    """The tables of the cost model."""
    hop = measure_hop(repeats)
    yield f"an empty message there and back: {1e3 * hop:.2f} ms; wire taken as {WIRE / 1e9:g} GB/s; fan-out {FANOUT}"
    yield ""
    yield "| K | L | kB down | kB up | pack task, ms | unpack task | pack sums | unpack sums | add sums |"
    yield "|---|---|---|---|---|---|---|---|---|"
    measured = [measure_costs(k, l, 5 * repeats) for k, l in ((12, 60), (12, 300), (40, 300), (100, 1000))]  # noqa: E741
    for one in measured:
        times = (one.pack_task, one.unpack_task, one.pack_sum, one.unpack_sum, one.add)
        cells = " | ".join(f"{1e3 * seconds:.2f}" for seconds in times)
        yield f"| {one.k} | {one.l} | {one.down_bytes / 1e3:.0f} | {one.up_bytes / 1e3:.0f} | {cells} |"
    yield ""
    yield "| K | L | workers | levels | messages | MB at the client | predicted, ms | simulated, ms | client busy, ms |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for one in measured[:3]:
        for n_workers in (2, 8, 64, 1000):
            clock, busy, n_messages = simulated(one, n_workers, hop, WIRE)
            moved = min(n_workers, FANOUT) * (one.down_bytes + one.up_bytes) / 1e6
            yield (
                f"| {one.k} | {one.l} | {n_workers:,} | {depth(n_workers)} | {n_messages:,} | {moved:.1f} "
                f"| {1e3 * predicted(one, n_workers, hop, WIRE):.1f} | {1e3 * clock:.1f} | {1e3 * busy:.1f} |"
            )
    yield ""
    case = sweep.Case(n=280_000, d=N_FEATURES)
    per_pixel = sweep.measure(case, repeats).cpu / case.n
    yield f"a pass over the pixels, K = 12, L = 60, one thread: {1e9 * per_pixel:.0f} ns per pixel"
    yield "| L asked for | classes, components there | client's own ms per sweep |"
    yield "|---|---|---|"
    for l in (30, 60, 200):  # noqa: E741
        seconds, n_classes, n_components = client_seconds(12, l)
        yield f"| {l} | {n_classes}, {n_components} | {1e3 * seconds:.1f} |"


if __name__ == "__main__":
    sweep.print_tables({"dispatch": rows_of_dispatch, "share": rows_of_shares, "model": rows_of_model}, 40)
