"""Real Dask clusters for tests: schedulers and workers as processes of their own, and a chain to run on them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gibbsite import cluster, sampling, start
from gibbsite.sampling import Chain
from gibbsite.settings import Cluster
from gibbsite.tiles import Tile
from handmade_chains import clusters, prior, rules

N_PIXELS = 3000
SWEEPS = 10
TESTS = Path(__file__).parent


class Reader:
    """Reads parts of one table; travels to worker processes."""

    def __init__(self, n_pixels: int = N_PIXELS) -> None:
        self.pixels, label = clusters(n_pixels, 3, 4)
        known = np.where(np.arange(n_pixels) % 9 == 0, np.minimum(label, 1), -1).astype(np.int16)
        self.pixels = Tile(0, self.pixels.feature, known)

    def __call__(self, first: int, stop: int) -> Tile:
        return self.pixels.part(first, stop)


class FileReader:
    """Reads parts of a table in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        np.save(path, Reader().pixels.feature)

    def __call__(self, first: int, stop: int) -> Tile:
        return Tile(first, np.load(self.path)[first:stop], np.full(stop - first, -1, np.int16))


class Count:
    """A task that counts pixels."""

    def answer(self, tile: Tile) -> int:
        return len(tile.feature)


def count_pixels(settings: Cluster, read: Callable[[int, int], Tile] | None = None) -> int:
    """The pixels that a cluster holds."""
    with cluster.holding_tiles(read or Reader(), N_PIXELS, settings) as reduce_tiles:
        return int(reduce_tiles(Count()))


def run_chain(
    settings: Cluster, sweeps: int = SWEEPS, watch: Callable[[int], object] = int, n_pixels: int = N_PIXELS
) -> Chain:
    """A short chain with births, splits and labelled pixels; `watch` is called after each sweep."""
    read = Reader(n_pixels)
    chosen = rules(n_pixels, n_known=2, birth_block=300, class_rule="reach", trust=4.0, split_every=2)
    is_known = read.pixels.known >= 0
    labelled = Tile(0, read.pixels.feature[is_known], read.pixels.known[is_known])
    learnt = start.learn(labelled, chosen, prior(3), 3, 0.0)
    with cluster.holding_tiles(read, n_pixels, settings) as reduce_tiles:
        reads = (reduce_tiles, read)
        state = start.first_state(learnt, chosen, prior(3), (12, 20), reads)
        watch(0)
        return sampling.sample(sampling.begin(state), chosen, (2, sweeps), reads, lambda chain: watch(chain.last.sweep))


def assert_same(a: Chain, b: Chain) -> None:
    assert a.trace == b.trace, "the trace depends on the cluster"
    for one, other in ((a.best, b.best), (a.last, b.last)):
        assert one.statistics.outer.tobytes() == other.statistics.outer.tobytes()
        assert one.class_of.tobytes() == other.class_of.tobytes()
        assert one.prior.scale.tobytes() == other.prior.scale.tobytes()
        assert one.block_label.tobytes() == other.block_label.tobytes()


@dataclass
class Processes:
    """A scheduler and its workers, each a process that can be killed, stopped or joined by another."""

    folder: Path
    words: Sequence[object] = ()
    """More options of all of them."""
    address: str = ""
    path: Path = TESTS
    """Where they look for modules first."""
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, program: str, *words: object, inside: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Start `dask PROGRAM WORDS`, if asked for inside of another command."""
        command = [*inside, sys.executable, "-m", f"distributed.cli.dask_{program}", *map(str, [*words, *self.words])]
        variables = os.environ | {
            "PYTHONPATH": f"{self.path}{os.pathsep}{TESTS}",
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
        }
        log = (self.folder / f"{program}{len(self.running)}.log").open("wb")
        # In a folder of its own: workers must not rely on where the client runs.
        process = subprocess.Popen(command, stdout=log, stderr=log, env=variables, cwd=self.folder)
        log.close()
        self.running.append(process)
        return process

    def start_scheduler(self, *words: object, host: str = "127.0.0.1", inside: Sequence[str] = ()) -> str:
        """Start a scheduler; its address."""
        facts = self.folder / "scheduler.json"
        options = ["--host", host, "--port", 0, "--no-dashboard", "--scheduler-file", facts]
        process = self.start("scheduler", *options, *words, inside=inside)
        wait_until(lambda: facts.exists() or process.poll() is not None)
        self.address = json.loads(facts.read_text())["address"]
        return self.address

    def start_worker(self, *words: object, inside: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Start a worker of one thread."""
        options = ["--nthreads", 1, "--no-nanny", "--no-dashboard", "--local-directory", self.folder]
        return self.start("worker", self.address, *options, *words, inside=inside)

    def end(self) -> None:
        """End all of them, also those that were stopped."""
        for process in self.running:
            process.kill()
        for process in self.running:
            process.wait()


@contextmanager
def dask_processes(folder: Path, n_workers: int, *words: object) -> Iterator[Processes]:
    """A scheduler on loopback and so many workers, ended with the block."""
    found = Processes(folder, words)
    try:
        found.start_scheduler()
        for _ in range(n_workers):
            found.start_worker()
        yield found
    finally:
        found.end()


def at(address: str, **others: object) -> Cluster:
    """Settings of an existing scheduler, with small tiles and little patience."""
    given = {"tile_pixels": 256, "start_seconds": 180.0, "timeout_seconds": 8.0, "min_workers": 1} | others
    return Cluster.model_validate({"kind": "address", "address": address} | given)


def wait_until(claim: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
