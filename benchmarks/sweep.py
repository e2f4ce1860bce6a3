"""Time of a pass over the pixels: against this machine's own float32 matrix product, and against N, d, K, L, threads.

Useful work per pixel is K d²/2 + L d + d²/2 multiply-adds: whitening once per class, one product per component, and the
sums. Passes and matrix products alternate and the best of each counts, so that a busy neighbour hurts both alike. Where
no run is left alone at all, the share by CPU time still tells something: it does not count waiting for a core.

Usage: python benchmarks/sweep.py [share | scaling | memory] [repeats]
"""

import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from gibbsite import streams
from gibbsite.cluster import TileHolder, tile_ranges
from gibbsite.components import Components
from gibbsite.streams import Purpose
from gibbsite.tiles import Pass, Tile

STEP = 2.0**-10
SIZE = 1024
"""Of the matrices whose product is the yardstick."""
SPIN_SECONDS = 0.05
"""So long the threads of a matrix product spin on after it; a pass beside them would be slower."""
LARGEST_TILE = 65536
"""Pixels; the default of the settings."""


@dataclass(frozen=True)
class Case:
    """What is measured."""

    n: int = 280_000
    """Pixels."""
    d: int = 10
    """Features."""
    k: int = 12
    """Classes."""
    l: int = 60  # noqa: E741
    """Components."""
    threads: int = 1

    @property
    def work(self) -> float:
        """Useful multiply-adds of a pass."""
        return self.n * (self.k * self.d**2 / 2 + self.l * self.d + self.d**2 / 2)

    @property
    def tile(self) -> int:
        """Pixels per tile: an eighth of a small scene, so that two threads get equal shares."""
        return min(LARGEST_TILE, max(4096, -(-self.n // 8)))

    def __str__(self) -> str:
        return f"| {self.n:,} | {self.d} | {self.k} | {self.l} | {self.threads} |"


SHARES = [Case(d=d, threads=threads) for d in (10, 20, 30) for threads in (1, 2)]
SCALING = [
    *(Case(n=n, threads=threads) for n in (10_000, 100_000, 1_000_000, 10_000_000) for threads in (1, 2)),
    *(Case(d=d) for d in (5, 10, 20, 40, 80)),
    *(Case(d=20, k=k) for k in (1, 12, 60)),
    *(Case(d=20, l=l) for l in (12, 60, 200)),  # noqa: E741
    *(Case(d=d, k=40, l=200, threads=threads) for d in (10, 30) for threads in (1, 2)),
]


def draw_components(case: Case, generator: np.random.Generator) -> Components:
    """Overlapping components in classes of equal size."""
    class_of = np.sort(np.arange(case.l) % case.k)
    mean = 2.0 * generator.normal(size=(case.l, case.d))
    whiten = np.triu(0.1 * generator.normal(size=(case.k, case.d, case.d))) + np.eye(case.d)
    centre = np.array([mean[class_of == k].mean(0) for k in range(case.k)])
    return Components(class_of, np.full(case.l, -np.log(case.l)), mean, centre, whiten, -np.inf)


def hold_tiles(case: Case, components: Components) -> TileHolder:
    """Pixels of these components, made tile by tile."""

    def read(start: int, stop: int) -> Tile:
        generator = np.random.default_rng(start)
        values = components.mean[generator.integers(0, case.l, stop - start)]
        values += generator.normal(size=values.shape)
        feature = np.clip(np.round(values / STEP), -32767, 32767).astype(np.int16)
        return Tile(start, feature, np.full(len(feature), -1, np.int16))

    holder = TileHolder(case.threads)
    holder.hold(read, tile_ranges(case.n, case.tile))
    return holder


def plan_pass(components: Components, holder: TileHolder) -> Pass:
    """A pass like those of a chain: with anchors, and with an order for the next."""
    keys = [streams.pixel_key(1, number, Purpose.ORDER) for number in (1, 2)]
    task = Pass(components, streams.pixel_key(1, 1, Purpose.INDICATORS), STEP, next_order_key=keys[0])
    anchors = holder.tally(task).answer.anchors
    return replace(task, anchors=anchors, order_key=keys[0], next_order_key=keys[1])


def seconds(run: Callable[[], object]) -> tuple[float, float]:
    """Time of one run, on the wall and of all cores."""
    started = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - started[0], time.process_time() - started[1]


@dataclass(frozen=True)
class Result:
    """The best of some runs, in seconds."""

    wall: float
    """Of a pass."""
    cpu: float
    """Of a pass, all cores together."""
    gemm_wall: float
    """Of a matrix product on as many cores."""
    gemm_cpu: float


def measure(case: Case, repeats: int) -> Result:
    """Passes and matrix products in turn."""
    components = draw_components(case, np.random.default_rng(0))
    holder = hold_tiles(case, components)
    task = plan_pass(components, holder)
    square = np.ones((SIZE, SIZE), np.float32)
    runs = []
    with threadpool_limits(case.threads):
        for _ in range(repeats):
            # In a chain a pass follows a pass; the first one after a pause has to wake the other threads.
            one_pass = min(seconds(lambda: holder.tally(task)) for _ in range(3))
            runs.append((*one_pass, *min(seconds(lambda: square @ square) for _ in range(3))))
            time.sleep(SPIN_SECONDS)
    return Result(*(min(times) for times in zip(*runs, strict=True)))


def rows_of_shares(repeats: int) -> Iterator[str]:
    """The table of what a pass reaches of the matrix product."""
    yield "| N | d | K | L | threads | ms per pass | Gmadd/s | share of GEMM | GEMM Gmadd/s | share by CPU time |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for case in SHARES:
        best = measure(case, repeats)
        rate, gemm = case.work / best.wall, SIZE**3 / best.gemm_wall
        by_cpu = case.work / best.cpu / (SIZE**3 / best.gemm_cpu)
        rates = f"{1e3 * best.wall:.1f} | {rate / 1e9:.1f} | {rate / gemm:.0%} | {gemm / 1e9:.0f}"
        yield f"{case} {rates} | {by_cpu:.0%} |"


def rows_of_scaling(repeats: int) -> Iterator[str]:
    """The table of times against sizes."""
    yield "| N | d | K | L | threads | ms per pass | ns per pixel | CPU ns per pixel |"
    yield "|---|---|---|---|---|---|---|---|"
    for case in SCALING:
        best = measure(case, max(3, min(repeats, 10**7 * repeats // (20 * case.n))))
        yield f"{case} {1e3 * best.wall:.1f} | {1e9 * best.wall / case.n:.0f} | {1e9 * best.cpu / case.n:.0f} |"


def rows_of_memory(_repeats: int) -> Iterator[str]:
    """The table of bytes per pixel: held between passes, and the most that a pass takes on top."""
    yield "| N | d | K | L | threads | bytes per pixel held | most added by a pass, MB |"
    yield "|---|---|---|---|---|---|---|"
    for case in (Case(n=10_000_000, d=d, threads=2) for d in (10, 30)):
        components = draw_components(case, np.random.default_rng(0))
        small = replace(case, n=2 * LARGEST_TILE)
        # Code, kernels and arrays that are made once do not count.
        plan_pass(components, hold_tiles(small, components))
        before = resident()
        holder = hold_tiles(case, components)
        held = resident() - before
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        plan_pass(components, holder)
        added = max(resident(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024) - peak
        yield f"{case} {held / case.n:.1f} | {max(added, 0) / 1e6:.1f} |"


def resident() -> int:
    """Bytes of memory this process has now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def print_tables(tables: dict[str, Callable[[int], Iterator[str]]], repeats: int) -> None:
    """Print the tables that the command line asks for, all if none, with as many repeats as it says."""
    asked = [name for name in tables if name in sys.argv[1:]] or list(tables)
    repeats = next((int(word) for word in sys.argv[1:] if word.isdigit()), repeats)
    for name in asked:
        for row in tables[name](repeats):
            print(row, flush=True)
        print()


if __name__ == "__main__":
    print_tables({"share": rows_of_shares, "scaling": rows_of_scaling, "memory": rows_of_memory}, 20)
