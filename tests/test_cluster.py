"""The same bytes on any cluster, whatever dies, hangs or joins."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dask_clusters import SWEEPS, Processes, assert_same, at, dask_processes, run_chain, wait_until
from gibbsite.sampling import Chain
from gibbsite.settings import Cluster


@pytest.fixture(scope="module")
def reference() -> Chain:
    return run_chain(Cluster(kind="none", threads=1, tile_pixels=4194304))


@pytest.mark.parametrize(("tile_pixels", "threads"), [(256, 2), (1000, 1), (2999, 2), (65536, 1)])
def test_chain_does_not_depend_on_tile_size_or_threads(tile_pixels: int, threads: int, reference: Chain) -> None:
    assert_same(run_chain(Cluster(kind="none", threads=threads, tile_pixels=tile_pixels)), reference)


def test_chain_is_the_same_on_the_embedded_dask_cluster(reference: Chain, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert_same(run_chain(Cluster(kind="local", workers=1, threads=2, tile_pixels=700)), reference)
    assert "dashboard: http://" in caplog.text
    assert threading.active_count() < 50, "threads of earlier clusters are left over"


def test_a_scene_of_one_block_of_which_tiles_tell_nothing_is_the_same_on_dask() -> None:
    alone = run_chain(Cluster(kind="none"), n_pixels=60)
    assert_same(run_chain(Cluster(kind="local", workers=1), n_pixels=60), alone)


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("workers", "threads", "tile_pixels"), [(2, 1, 256), (2, 1, 1499), (4, 1, 256), (4, 1, 65536), (2, 2, 300)]
)
def test_chain_is_the_same_on_worker_processes(workers: int, threads: int, tile_pixels: int, reference: Chain) -> None:
    settings = Cluster(kind="local", workers=workers, threads=threads, tile_pixels=tile_pixels, min_workers=workers)
    assert_same(run_chain(settings), reference)


def test_chain_is_the_same_after_a_worker_was_killed_and_another_joined(
    reference: Chain, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with dask_processes(tmp_path, 2) as dask, caplog.at_level(logging.INFO):

        def watch(sweep: int) -> None:
            if sweep == 2:
                dask.running[1].kill()
                dask.running[1].wait()
            if sweep == 6:
                dask.start_worker()
                wait_until_ready(caplog, 3)

        assert_same(run_chain(at(dask.address, min_workers=2), watch=watch), reference)
    assert "was lost" in caplog.text
    assert dealt(caplog) == [2, 1, 2]


def dealt(caplog: pytest.LogCaptureFixture) -> list[int]:
    """Workers that held the tiles, one number for each deal."""
    lines = [record.getMessage() for record in caplog.records if "tile(s) on" in record.getMessage()]
    return [int(line.split()[3]) for line in lines]


def wait_until_ready(caplog: pytest.LogCaptureFixture, n_workers: int) -> None:
    """Wait until the client has let in so many workers, counted over the whole run."""
    wait_until(lambda: caplog.text.count("is ready") >= n_workers, 180.0)


def kill_in(sweep_of_death: int) -> Callable[[Processes], Callable[[int], None]]:
    def prepare(dask: Processes) -> Callable[[int], None]:
        def watch(sweep: int) -> None:
            if sweep == sweep_of_death:
                dask.running[2].kill()

        return watch

    return prepare


def hang_in_sweep_3(dask: Processes) -> Callable[[int], None]:
    def watch(sweep: int) -> None:
        if sweep == 3:
            dask.running[1].send_signal(signal.SIGSTOP)
        if sweep == 7:
            # It wakes up and sends what nobody waits for any more; then it is one of us again.
            dask.running[1].send_signal(signal.SIGCONT)
            time.sleep(3.0)

    return watch


def retire_in_sweep_4(dask: Processes) -> Callable[[int], None]:
    from distributed import Client

    def watch(sweep: int) -> None:
        if sweep == 4:
            with Client(dask.address, set_as_default=False) as client:
                client.retire_workers([min(client.scheduler_info(n_workers=-1)["workers"])])
            wait_until(lambda: any(process.poll() is not None for process in dask.running))

    return watch


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("prepare", "deals"),
    [
        pytest.param(kill_in(0), [2, 1], id="killed before sweep 1"),
        pytest.param(kill_in(1), [2, 1], id="killed in sweep 2"),
        pytest.param(kill_in(SWEEPS - 1), [2, 1], id="killed in the last sweep"),
        pytest.param(hang_in_sweep_3, [2, 1, 2], id="hung past the time-out, and came back"),
        pytest.param(retire_in_sweep_4, [2, 1], id="retired"),
    ],
)
def test_chain_is_the_same_when_a_worker_is(
    prepare: Callable[[Processes], Callable[[int], None]],
    deals: list[int],
    reference: Chain,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with dask_processes(tmp_path, 2) as dask, caplog.at_level(logging.INFO):
        assert_same(run_chain(at(dask.address, min_workers=2), watch=prepare(dask)), reference)
    assert dealt(caplog) == deals


@pytest.mark.cluster
def test_chain_is_the_same_though_workers_are_killed_every_few_seconds(
    reference: Chain, caplog: pytest.LogCaptureFixture
) -> None:
    ended, killed = threading.Event(), []

    def kill_now_and_then() -> None:
        while not ended.wait(2.0):
            # A busy machine may need longer than that to start the next one; somebody must be left to work.
            workers = _children(os.getpid())
            if workers and caplog.text.count("is ready") >= len(killed) + 2:
                killed.append(workers[len(killed) % len(workers)])
                os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill_now_and_then)

    def watch(sweep: int) -> None:
        if sweep == 0:
            killer.start()
        if sweep in (2, 4, 6, 8):
            wait_until(lambda: len(killed) >= sweep // 2, 120.0)
        time.sleep(0.5)

    settings = Cluster(kind="local", workers=2, threads=1, tile_pixels=256, min_workers=2, timeout_seconds=5.0)
    try:
        with caplog.at_level(logging.INFO):
            assert_same(run_chain(settings, watch=watch), reference)
    finally:
        ended.set()
        killer.join()
    assert len(killed) >= 4
    # A newcomer that is killed before the next pass never held a tile.
    assert len(dealt(caplog)) > 2


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


@pytest.mark.cluster
def test_chain_is_the_same_when_answers_are_added_in_a_tree(
    reference: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # One root, and one reporter each: five workers in a line. The third one dies.
    monkeypatch.setattr("gibbsite.cluster.ownership.reporters.__defaults__", (1,))
    monkeypatch.setattr("gibbsite.cluster.ownership.roots.__defaults__", (1,))
    with dask_processes(tmp_path, 5) as dask, caplog.at_level(logging.INFO):

        def watch(sweep: int) -> None:
            if sweep == 4:
                dask.running[3].kill()

        assert_same(run_chain(at(dask.address, min_workers=5), watch=watch), reference)
    assert dealt(caplog) == [5, 4]
