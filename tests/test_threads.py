"""Work that is shared out to threads comes back in order, and nothing of it goes on behind its caller's back."""

import os
import threading
import time
from collections.abc import Iterator

import pytest

from gibbsite.threads import AHEAD, in_order, n_threads


def test_results_come_in_the_order_of_the_items_and_few_are_worked_out_ahead() -> None:
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        time.sleep(0.01 if item % 3 == 0 else 0.0)
        return item * item

    found = in_order(work, range(100))
    assert [next(found) for _ in range(10)] == [item * item for item in range(10)]
    assert max(begun) <= 10 + AHEAD * n_threads()
    assert list(found) == [item * item for item in range(10, 100)]


def test_what_is_asked_for_within_a_thread_is_done_there() -> None:
    found = in_order(lambda n: sum(in_order(lambda item: item + 1, range(n))), [10] * 20)
    assert list(found) == [55] * 20


def test_an_error_comes_out_when_what_was_begun_has_ended() -> None:
    running: set[int] = set()

    def work(item: int) -> None:
        running.add(item)
        time.sleep(0.05)
        running.discard(item)
        if item == 1:
            raise ValueError(item)

    with pytest.raises(ValueError, match="1"):
        list(in_order(work, range(50)))
    assert not running


def test_an_error_of_the_items_comes_out() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise KeyError("two")

    with pytest.raises(KeyError, match="two"):
        list(in_order(abs, items()))


def test_an_error_does_not_wait_for_the_work_of_others() -> None:
    is_free, at_work = threading.Event(), threading.Semaphore(0)

    def occupy(_: int) -> None:
        at_work.release()
        is_free.wait(30)

    others = threading.Thread(target=lambda: list(in_order(occupy, range(n_threads()))))

    def items() -> Iterator[int]:
        others.start()
        for _ in range(n_threads()):
            at_work.acquire()
        yield 1
        raise KeyError("two")

    start = time.monotonic()
    with pytest.raises(KeyError, match="two"):
        list(in_order(abs, items()))
    taken = time.monotonic() - start
    is_free.set()
    others.join()
    assert taken < 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_process_that_forks_works_on_in_threads_of_its_own() -> None:
    assert list(in_order(abs, [-1])) == [1]
    child = os.fork()
    if not child:
        os._exit(0 if list(in_order(abs, [-1, -2])) == [1, 2] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
