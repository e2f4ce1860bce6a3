"""Work shared out to threads, its results in order: kernels release the interpreter's lock."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


AHEAD = 3
"""Items per thread that may wait or be worked on: a thread must find the next one whatever the caller is doing."""
ASKED = "GIBBSITE_THREADS"
"""Variable of the environment by which a rule of the workflow tells a step how many threads it may have."""


def n_threads() -> int:
    """Cores that this process may use, not more than it was told."""
    # Not on every system does a process know where it may run.
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get(ASKED, "")
    return max(1, min(there, int(asked))) if asked.isdecimal() else there


def one_below() -> AbstractContextManager[Any]:
    """While it lasts, numpy's linear algebra keeps to the thread that asks.

    Their own threads spin on for some 30 ms after a product, on the core that ours need, and how many there are may
    show in the last bits of a result.
    """
    return _libraries().limit(limits=1)


@cache
def _libraries() -> ThreadpoolController:
    """Those that are loaded, numpy's among them; to look for them takes milliseconds."""
    return ThreadpoolController()


def in_order(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """The results in the order of the items, a few of them worked out ahead: memory stays bounded."""
    if _here.is_of_pool:
        # All threads might wait for each other.
        yield from map(function, items)
        return
    workers = n_threads()
    pool, waiting = _pool(workers), deque[Future[Result]]()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > AHEAD * workers:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    finally:
        begun = [future for future in waiting if not future.cancel()]
        # Python may clear away what nobody holds any more in a thread of the pool.
        if not _here.is_of_pool:
            wait(begun)


def _first(waiting: deque[Future[Result]]) -> Result:
    """The result of the first, which is then gone; an interrupt while it is waited for leaves it there."""
    result = waiting[0].result()
    waiting.popleft()
    return result


class _Here(threading.local):
    """What is told of each thread."""

    is_of_pool = False


_here = _Here()


def _join_pool() -> None:
    _here.is_of_pool = True


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """So many threads, which stay: to start and end them for every pass over a scene takes 5 ms of it all."""
    return ThreadPoolExecutor(workers, initializer=_join_pool)


if hasattr(os, "register_at_fork"):
    # A process that forks leaves its threads behind.
    os.register_at_fork(after_in_child=_pool.cache_clear)
