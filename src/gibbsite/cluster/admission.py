"""Whom a client works with: workers that run what it runs, can be reached, and have room for their tiles."""

import asyncio
import functools
import sys
from importlib import metadata
from typing import Any

from gibbsite.cluster.calls import Connect, watched
from gibbsite.errors import GibbsiteError

SAME = ("gibbsite", "numpy", "numba", "llvmlite", "distributed", "cloudpickle")
"""Packages that decide what a worker computes, or whether it understands what it is told."""

REACH_SECONDS = 5.0
"""In which a worker answers the client directly, if it ever does."""


async def reach(client: Any, worker: str) -> Connect:
    """How to speak to workers: directly or, where there is no way through the network, by the scheduler."""
    from distributed.actor import ProxyRPC

    direct: Connect = client.rpc
    try:
        await asyncio.wait_for(direct(worker).echo(), REACH_SECONDS)
    except (TimeoutError, OSError):
        return functools.partial(ProxyRPC, client.scheduler)
    return direct


async def check_versions(connect: Connect, worker: str, silence: float) -> None:
    """Refuse a worker that has other versions."""
    found = (await watched(connect, worker, silence, "versions", packages=list(SAME)))["packages"]
    python = "{}.{}".format(*sys.version_info)
    theirs = ".".join(str(found["python"]).split(".")[:2])
    different = [] if theirs == python else [f"python {theirs} instead of {python}"]
    for name in SAME:
        here = metadata.version(name)
        if found[name] != here:
            different.append(f"{name} {found[name] or 'missing'} instead of {here}")
    if different:
        raise GibbsiteError(
            f"worker {worker} has {', '.join(different)}; start workers from the environment this runs in"
        )
