"""The same bytes on any cluster."""

import os
import signal
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from gibbsite import cluster, sampling, start
from gibbsite.sampling import Chain
from gibbsite.settings import Cluster
from gibbsite.tiles import Tile
from handmade_chains import clusters, prior, rules

N_PIXELS = 3000


class Reader:
    """Reads parts of one table; travels to worker processes."""

    def __init__(self) -> None:
        self.pixels, label = clusters(N_PIXELS, 3, 4)
        known = np.where(np.arange(N_PIXELS) % 9 == 0, np.minimum(label, 1), -1).astype(np.int16)
        self.pixels = Tile(0, self.pixels.feature, known)

    def __call__(self, first: int, stop: int) -> Tile:
        return self.pixels.part(first, stop)


def run_chain(settings: Cluster, sweeps: int = 8, watch: Callable[[int], None] = int) -> Chain:
    read = Reader()
    chosen = rules(N_PIXELS, n_known=2, birth_block=300, class_rule="reach", is_bound=False, split_every=2)
    is_known = read.pixels.known >= 0
    labelled = Tile(0, read.pixels.feature[is_known], read.pixels.known[is_known])
    learnt = start.learn(labelled, chosen, prior(3), 3, 0.0)
    with cluster.holding_tiles(read, N_PIXELS, settings) as reduce_tiles:
        reads = (reduce_tiles, read)
        state = start.first_state(learnt, chosen, prior(3), (12, 20), reads)
        return sampling.sample(sampling.begin(state), chosen, (2, sweeps), reads, lambda chain: watch(chain.last.sweep))


def assert_same(a: Chain, b: Chain) -> None:
    assert a.trace == b.trace, "the trace depends on the cluster"
    for one, other in ((a.best, b.best), (a.last, b.last)):
        assert one.statistics.outer.tobytes() == other.statistics.outer.tobytes()
        assert one.class_of.tobytes() == other.class_of.tobytes()
        assert one.prior.scale.tobytes() == other.prior.scale.tobytes()
        assert one.block_label.tobytes() == other.block_label.tobytes()


@pytest.fixture(scope="module")
def reference() -> Chain:
    return run_chain(Cluster(kind="none", threads=1, tile_pixels=4194304))


@pytest.mark.parametrize("tile_pixels", [256, 1000, 2999, 65536])
@pytest.mark.parametrize("threads", [1, 2])
def test_chain_does_not_depend_on_tile_size_or_threads(tile_pixels: int, threads: int, reference: Chain) -> None:
    assert_same(run_chain(Cluster(kind="none", threads=threads, tile_pixels=tile_pixels)), reference)


def test_chain_is_the_same_on_the_embedded_dask_cluster(reference: Chain) -> None:
    assert_same(run_chain(Cluster(kind="local", workers=1, threads=2, tile_pixels=700)), reference)


@pytest.mark.cluster
def test_chain_is_the_same_on_worker_processes(reference: Chain) -> None:
    assert_same(run_chain(Cluster(kind="local", workers=2, threads=1, tile_pixels=256)), reference)


@pytest.mark.cluster
def test_chain_is_the_same_after_a_worker_was_killed(reference: Chain) -> None:
    def kill_a_worker(sweep: int) -> None:
        if sweep == 3:
            children = _children(os.getpid())
            assert children, "no worker process to kill"
            os.kill(children[-1], signal.SIGKILL)
            time.sleep(0.2)

    settings = Cluster(kind="local", workers=2, threads=1, tile_pixels=256)
    assert_same(run_chain(settings, watch=kill_a_worker), reference)


def _children(parent: int) -> list[int]:
    """Worker processes below this one: Python processes that dask spawned."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8") as stat:
                    fields = stat.read().rsplit(")", 1)[1].split()
                with open(f"/proc/{entry}/cmdline", encoding="utf-8") as command:
                    is_worker = "spawn_main" in command.read()
            except OSError:
                continue
            if int(fields[1]) == parent and is_worker:
                found.append(int(entry))
    return sorted(found)


def test_tiles_cover_every_rank_once() -> None:
    assert cluster.tile_ranges(10, 4) == [(0, 4), (4, 8), (8, 10)]
    assert threading.active_count() < 50, "threads of earlier clusters are left over"
