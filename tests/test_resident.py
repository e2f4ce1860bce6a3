"""What lives on a worker, and how messages to it travel, without a cluster."""

import asyncio
import gc
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from distributed.core import Status

from dask_clusters import Reader
from gibbsite.cluster import calls, resident


class Worker:
    address = "tcp://a:1"
    status = Status.running


def test_workers_of_a_killed_client_let_its_tiles_go_when_their_lease_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hold() -> int:
        monkeypatch.setattr(resident, "LEASE_SECONDS", 0.2)
        worker = Worker()
        one = resident.residents(worker).setdefault("token", resident.Resident(worker, "token"))
        await one.hold(calls.pack((Reader(), resident.Share(1, ((0, 9),), (), 1, 1.0))))
        assert (await one.tally(calls.pack((1, _Nothing())))).n_pixels == 9
        await asyncio.sleep(0.5)
        return len(resident.residents(worker))

    assert asyncio.run(hold()) == 0


class _Nothing:
    def answer(self, _tile: object) -> int:
        return 0


class Closed(Worker):
    """About to leave: it can no longer ask others."""

    status = Status.closing

    def rpc(self, _address: str) -> object:
        raise RuntimeError("ConnectionPool is closed")


def test_a_worker_that_is_closing_counts_as_lost_and_so_does_not_end_the_run() -> None:
    async def ask() -> object:
        worker = Closed()
        share = resident.Share(1, ((0, 9),), ("tcp://b:1",), 1, 1.0)
        assert await resident._answer(worker, "hold", "token", calls.pack((Reader(), share))) is None
        return await resident._answer(worker, "tally", "token", calls.pack((1, _Nothing())))

    lost = asyncio.run(ask())
    assert isinstance(lost, calls.Lost)
    assert lost.address == Closed.address


def test_a_worker_that_does_not_know_us_was_replaced() -> None:
    class Newcomer:
        async def gibbsite(self, **_told: object) -> None:
            """What Dask answers to an operation it does not know."""

    with pytest.raises(calls.Replaced):
        asyncio.run(calls.ask(lambda _address: Newcomer(), "tcp://a:1", 1.0, "tally", "token", b""))


def test_a_failing_pass_leaves_nothing_for_asyncio_to_tell(caplog: pytest.LogCaptureFixture) -> None:
    class Lonely(Worker):
        def rpc(self, _address: str) -> object:
            raise OSError("cut off")

    async def fail() -> None:
        one = resident.Resident(Lonely(), "token")
        await one.hold(calls.pack((Reader(), resident.Share(1, ((0, 9),), ("tcp://b:1",), 1, 1.0))))
        for _ in range(2):
            with pytest.raises((ValueError, OSError)):
                await one.tally(calls.pack((1, _Failing())))

    asyncio.run(fail())
    gc.collect()
    assert not caplog.records


class _Failing:
    def answer(self, _tile: object) -> int:
        raise ValueError


def test_a_pass_is_done_where_it_arrives_as_long_as_passes_are_brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "BRIEF_SECONDS", 0.05)

    async def where() -> list[bool]:
        one = resident.Resident(Worker(), "token")
        found = []
        for deal in (1, 2):
            await one.hold(calls.pack((Reader(), resident.Share(deal, ((0, 9),), (), 1, 1.0))))
            for seconds in (0.0, 0.1, 0.0, 0.0):
                answer = (await one.tally(calls.pack((deal, _Where(seconds))))).answer
                found.append(answer == threading.get_ident())
        return found

    # The first after a deal may be a long one, and so may the one after a long one.
    assert asyncio.run(where()) == [False, True, False, True] * 2


@dataclass(frozen=True)
class _Where:
    """Takes so long, and answers with the thread it was done in."""

    seconds: float

    def answer(self, _tile: object) -> int:
        time.sleep(self.seconds)
        return threading.get_ident()


def test_what_a_script_defines_travels_as_code(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom gibbsite.cluster.calls import pack\n"
        "def double(x):\n    return 2 * x\n"
        "sys.stdout.buffer.write(pack((double, lambda x: x + 1)))\n"
    )
    packed = subprocess.run([sys.executable, script], check=True, capture_output=True).stdout
    double, more = calls.unpack(packed)
    assert (double(4), more(4)) == (8, 5)
