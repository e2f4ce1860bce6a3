"""Asking a worker to do something, and noticing when it is gone.

The client asks workers, and a worker asks those that report to it, in the same way. Whoever waits for an answer knocks
now and then: the event loop of a worker answers soon, however long its kernels take, unless the worker is dead,
stopped or cut off. So a pass may take any time, and silence may not.
"""

import asyncio
import pickle
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from gibbsite.errors import GibbsiteError

Connect = Callable[[str], Any]
"""Address of a worker -> what speaks to it: the pool of connections of a Dask client or worker."""

OPERATION = "gibbsite"
"""Name of our messages among those of Dask."""


class Lost(Exception):
    """A worker is gone, or as good as gone."""

    def __init__(self, address: str, why: str) -> None:
        super().__init__(address, why)
        self.address, self.why = address, why


class Replaced(Lost):
    """Another worker has come to live at its address, which is yet to be prepared."""


def pack(value: Any) -> bytes:
    """As it travels. Plain bytes: Dask would look into lists and arrays, and pack a task anew for every worker."""
    try:
        packed = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        if b"__main__" not in packed:
            return packed
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    # What a script defines is not found by its name elsewhere: Dask sends the code, at three times the cost.
    from distributed.protocol.pickle import dumps

    return bytes(dumps(value))


def unpack(packed: bytes) -> Any:
    """What was packed."""
    return pickle.loads(packed)


async def ask(connect: Connect, address: str, silence: float, function: str, token: str, told: bytes) -> Any:
    """What the resident of a worker answers; Lost when it is silent for so many seconds."""
    reply = await watched(connect, address, silence, OPERATION, function=function, token=token, told=told)
    if reply is None:
        # Dask's answer to what it does not know.
        raise Replaced(address, "was started anew")
    answer = unpack(reply["answer"])
    if isinstance(answer, Exception):
        raise answer
    return answer


def gather(asked: Iterable[Coroutine[Any, Any, Any]]) -> "asyncio.Future[list[Any]]":
    """The answers to all of these, for whoever awaits them; nobody need, if there is no more use for them."""
    answers = asyncio.gather(*asked)
    answers.add_done_callback(_seen)
    return answers


def _seen(done: "asyncio.Future[Any]") -> None:
    """Keep asyncio from telling of a failure that nobody waits for."""
    if not done.cancelled():
        done.exception()


async def sent() -> None:
    """What was begun to be asked is written: a call starts in one turn of the loop, and writes in the next."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def watched(connect: Connect, address: str, silence: float, operation: str, **message: Any) -> Any:
    """The reply of a worker to a message of Dask's own kind."""
    call = asyncio.ensure_future(getattr(connect(address), operation)(**message))
    call.add_done_callback(_seen)
    try:
        while not (await asyncio.wait({call}, timeout=silence / 2))[0]:
            await asyncio.wait_for(connect(address).echo(), silence / 2)
        return call.result()
    except TimeoutError as error:
        raise Lost(address, f"silent for {silence:g} s") from error
    except OSError as error:
        raise Lost(address, str(error) or type(error).__name__) from error
    finally:
        call.cancel()


async def run(connect: Connect, address: str, silence: float, function: Callable[..., Any]) -> Any:
    """What a function of this package returns on a worker, which may have another version of it, or none."""
    from distributed.core import clean_exception

    message = {"function": pack(function), "args": pack(()), "kwargs": pack({}), "wait": True}
    reply = await watched(connect, address, silence, "run", **message)
    if reply["status"] != "OK":
        error = clean_exception(**reply)[1]
        raise GibbsiteError(f"worker {address} cannot run gibbsite ({error}); install the same version there")
    return reply["result"]
