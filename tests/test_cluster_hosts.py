"""Scheduler and workers on hosts of their own: network namespaces with links that are cut, restored and slow."""

import itertools
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dask_clusters import TESTS, Processes, assert_same, at, run_chain, wait_until
from gibbsite.sampling import Chain
from gibbsite.settings import Cluster
from test_cluster import dealt, wait_until_ready

CUT_SECONDS = 30.0


@pytest.fixture(scope="module")
def reference() -> Chain:
    return run_chain(Cluster(kind="none", threads=1, tile_pixels=4194304))


@dataclass(frozen=True)
class Host:
    """A network namespace with one link to the bridge."""

    name: str
    address: str

    @property
    def link(self) -> str:
        """Its end of the link at the bridge."""
        return f"{self.name}v"

    @property
    def inside(self) -> list[str]:
        """The command that runs another one on this host."""
        return ["ip", "netns", "exec", self.name]


def ip(*words: object) -> None:
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, text=True)


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    """Three hosts on one bridge, which this process is on too."""
    number = os.getpid() % 60_000
    bridge, net = f"gb{number}", f"10.{77 + number // 1000}.{number % 250}"
    found = [Host(f"gh{number}{letter}", f"{net}.{place}") for place, letter in enumerate("abc", 2)]
    try:
        try:
            ip("link", "add", bridge, "type", "bridge")
            ip("addr", "add", f"{net}.1/24", "dev", bridge)
            ip("link", "set", bridge, "up")
            for host in found:
                ip("netns", "add", host.name)
                ip("link", "add", host.link, "type", "veth", "peer", "name", "eth0", "netns", host.name)
                ip("link", "set", host.link, "master", bridge, "up")
                for words in (["addr", "add", f"{host.address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"],
                              ["link", "set", "lo", "up"]):  # fmt: skip
                    ip("-n", host.name, *words)
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            pytest.skip(f"may not make network namespaces here ({getattr(error, 'stderr', error)})")
        yield found
    finally:
        for host in found:
            subprocess.run(["ip", "netns", "del", host.name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", bridge], check=False, capture_output=True)


@pytest.fixture
def dask(hosts: list[Host], tmp_path: Path) -> Iterator[Processes]:
    """A scheduler on the first host and a worker on the second."""
    found = Processes(tmp_path)
    try:
        found.start_scheduler(host=hosts[0].address, inside=hosts[0].inside)
        found.start_worker("--host", hosts[1].address, inside=hosts[1].inside)
        yield found
    finally:
        found.end()


@pytest.mark.cluster
def test_chain_is_the_same_though_a_link_was_cut_and_restored(
    hosts: list[Host], dask: Processes, reference: Chain, caplog: pytest.LogCaptureFixture
) -> None:
    far = hosts[2]
    worker = dask.start_worker("--host", far.address, inside=far.inside)
    restored = threading.Timer(CUT_SECONDS, lambda: ip("link", "set", far.link, "up"))

    def watch(sweep: int) -> None:
        if sweep == 3:
            ip("link", "set", far.link, "down")
            restored.start()
        if sweep == 6:
            restored.join()
            wait_until(lambda: "is back" in caplog.text or worker.poll() is not None, 180.0)
            if worker.poll() is not None:
                # Dask ends a worker that its scheduler could not reach for so long; its host starts another.
                dask.start_worker("--host", far.address, inside=far.inside)
                wait_until_ready(caplog, 3)

    with caplog.at_level(logging.INFO):
        assert_same(run_chain(at(dask.address, min_workers=2), watch=watch), reference)
    assert dealt(caplog)[:3] == [2, 1, 2]


@pytest.mark.cluster
def test_chain_is_the_same_over_a_slow_link(
    hosts: list[Host], dask: Processes, reference: Chain, caplog: pytest.LogCaptureFixture
) -> None:
    far, delay = hosts[2], 0.2
    proxy = subprocess.Popen(
        [*far.inside, sys.executable, str(TESTS / "delaying_proxy.py"), far.address, "7001", "7000", str(delay)]
    )
    dask.running.append(proxy)
    dask.start_worker(
        "--listen-address", f"tcp://{far.address}:7000", "--contact-address", f"tcp://{far.address}:7001",
        inside=far.inside,
    )  # fmt: skip
    begun: list[float] = []
    with caplog.at_level(logging.INFO):
        found = run_chain(at(dask.address, min_workers=2), watch=lambda _: begun.append(time.monotonic()))
    assert_same(found, reference)
    assert dealt(caplog) == [2]
    assert min(b - a for a, b in itertools.pairwise(begun)) > 2 * delay, "nothing went the slow way"


@pytest.mark.cluster
def test_chain_is_the_same_where_the_client_reaches_no_worker_itself(
    hosts: list[Host], dask: Processes, reference: Chain, caplog: pytest.LogCaptureFixture
) -> None:
    # This process has no way to the second host any more; the scheduler, on the same bridge, has.
    ip("route", "add", "unreachable", f"{hosts[1].address}/32")
    try:
        with caplog.at_level(logging.INFO):
            assert_same(run_chain(at(dask.address)), reference)
    finally:
        ip("route", "del", "unreachable", f"{hosts[1].address}/32")
    wait_until(lambda: dask.running[0].poll() is None)
