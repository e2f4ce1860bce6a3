"""Throughput of the pass over the pixels, against this machine's own float32 matrix product in the same run.

Useful work per pixel is K d²/2 + L d + d²/2 multiply-adds: whitening once per class, one product per component, and the
sums. Usage: python benchmarks/sweep.py [N]
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

from gibbsite import streams
from gibbsite.components import Components
from gibbsite.streams import Purpose
from gibbsite.tiles import Answer, Pass, Tile, tally

STEP = 2.0**-10
TILE = 65536


def best_of(run: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of the fastest of some runs."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def gemm_rate(threads: int) -> float:
    """Multiply-adds per second of numpy's float32 matrix product."""
    a, b = np.ones((2048, 2048), np.float32), np.ones((2048, 2048), np.float32)
    with threadpool_limits(threads):
        return 2048**3 / best_of(lambda: a @ b)


def example(n: int, d: int, n_classes: int, n_components: int) -> tuple[list[Tile], Pass]:
    """Pixels of overlapping components, and a pass over them."""
    generator = np.random.default_rng(0)
    class_of = np.sort(np.arange(n_components) % n_classes)
    mean = 2.0 * generator.normal(size=(n_components, d))
    label = generator.integers(0, n_components, n)
    values = mean[label] + generator.normal(size=(n, d))
    feature = np.clip(np.round(values / STEP), -32767, 32767).astype(np.int16)
    whiten = np.triu(0.1 * generator.normal(size=(n_classes, d, d))) + np.eye(d)
    centre = np.array([mean[class_of == k].mean(0) for k in range(n_classes)])
    log_weight = np.full(n_components, -np.log(n_components))
    components = Components(class_of, log_weight, mean, centre, whiten, -np.inf)
    tiles = [
        Tile(i, feature[i : i + TILE], np.full(len(feature[i : i + TILE]), -1, np.int16)) for i in range(0, n, TILE)
    ]
    return tiles, Pass(components, streams.pixel_key(1, 1, Purpose.INDICATORS), STEP)


def run_pass(pool: ThreadPoolExecutor, tiles: list[Tile], task: Pass) -> list[Answer]:
    """The answers of all tiles."""
    return list(pool.map(lambda tile: tally(tile, task), tiles))


def main() -> None:
    """Print the table."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 280_000
    print("| N | d | K | L | threads | ms per pass | Gmadd/s | share of GEMM |")
    print("|---|---|---|---|---|---|---|---|")
    for d, n_classes, n_components in ((10, 12, 60), (20, 12, 60), (30, 12, 60)):
        tiles, task = example(n, d, n_classes, n_components)
        for threads in (1, 2):
            with ThreadPoolExecutor(threads) as pool:
                seconds = best_of(
                    lambda pool=pool, tiles=tiles, task=task: list(pool.map(lambda t: tally(t, task), tiles))
                )
            work = n * (n_classes * d * d / 2 + n_components * d + d * d / 2)
            share = work / seconds / gemm_rate(threads)
            row = [f"{n:,}", d, n_classes, n_components, threads]
            print("|", " | ".join(map(str, row)), f"| {1e3 * seconds:.0f} | {work / seconds / 1e9:.1f} | {share:.0%} |")


if __name__ == "__main__":
    main()
