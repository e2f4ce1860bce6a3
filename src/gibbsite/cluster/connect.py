"""Clusters of every kind, and a client of theirs: embedded, existing, or started as Slurm jobs."""

import asyncio
import json
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gibbsite import threads as cores
from gibbsite.cluster.slurm import slurm_jobs
from gibbsite.cluster.threads import ONE_THREAD
from gibbsite.errors import GibbsiteError, InputError
from gibbsite.settings import Cluster

log = logging.getLogger(__name__)

CONNECT_SECONDS = 10.0
"""In which a scheduler answers, if there is one."""


@contextmanager
def connected(settings: Cluster) -> Iterator[Any]:
    """A Dask client of the cluster that the settings ask for; what was started for it ends with the block."""
    # Imported here: steps without a cluster start faster.
    import distributed  # noqa: F401

    # distributed sets its loggers to INFO when imported; a death is told of here, in one line.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    # Workers that are killed leave semaphores, of which Python would tell the user after the last line.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker")
    os.environ.update(ONE_THREAD)
    kinds = {"local": _local, "address": _existing, "slurm": _slurm}
    with kinds[settings.kind](settings) as client:
        if link := client.dashboard_link:
            log.info("dashboard: %s", link)
        yield client


@contextmanager
def _local(settings: Cluster) -> Iterator[Any]:
    """Workers of this machine."""
    from distributed import Client, LocalCluster

    n_workers = max(1, settings.workers)
    n_threads = settings.threads or max(1, cores.n_threads() // n_workers)
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=n_threads,
            # One worker lives in this process: numba releases the GIL, and nothing goes over a socket.
            processes=n_workers > 1,
            host="127.0.0.1" if n_workers > 1 else None,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        log.info("cluster: %d worker(s) x %d thread(s)", n_workers, n_threads)
        try:
            yield client
        except KeyboardInterrupt:
            # Closing waits for workers to end their pass, which may take long.
            if n_workers > 1:
                cluster.sync(_end_workers, cluster)
            raise


async def _end_workers(cluster: Any) -> None:
    await asyncio.gather(*(nanny.close(timeout=0.5) for nanny in cluster.workers.values()))


@contextmanager
def _existing(settings: Cluster) -> Iterator[Any]:
    """Workers that somebody started, by the address of their scheduler."""
    from distributed import Client

    address, security = scheduler_address(settings.address or ""), _security(settings)
    _probe(address)
    try:
        client = Client(address, security=security, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        # The reason stands behind what Dask made of it.
        why = error.__cause__ or error
        if settings.tls.ca is not None:
            raise GibbsiteError(
                f"{address}: no TLS connection ({why}); check that cluster.tls.ca signed the scheduler's certificate "
                "and cluster.tls.cert, and that the scheduler speaks TLS"
            ) from error
        raise GibbsiteError(
            f"{address}: something answers, but not as a Dask scheduler of this version without TLS ({why}); if it "
            "wants TLS, give cluster.tls and an address with tls://"
        ) from error
    with client:
        log.info("cluster: scheduler at %s", address)
        yield client


def scheduler_address(where: str) -> str:
    """The address itself, or that in a scheduler file."""
    if "://" in where:
        return where
    try:
        return str(json.loads(Path(where).read_text(encoding="utf-8"))["address"])
    except OSError as error:
        raise InputError(
            f"{where}: cannot read the scheduler file ({error.strerror}); give cluster.address as tcp://host:port, or "
            "the file that `dask scheduler --scheduler-file` wrote"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{where}: no scheduler file: expected JSON with an address") from None


def _probe(address: str) -> None:
    """Refuse an address at which nothing listens; Dask would try for long."""
    found = urlsplit(address)
    try:
        host, port = found.hostname, found.port
    except ValueError:
        host, port = None, None
    if found.scheme not in ("tcp", "tls") or not host or not port:
        raise InputError(f"cluster.address is {address!r}; expected tcp://host:port or tls://host:port")
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError as error:
        raise GibbsiteError(
            f"{address}: no scheduler there ({error.strerror or error}); start one with `dask scheduler`, or mend "
            "cluster.address"
        ) from None


@contextmanager
def _slurm(settings: Cluster) -> Iterator[Any]:
    """Workers that are Slurm jobs of our own."""
    with slurm_jobs(settings, _security(settings)) as client:
        yield client


def _security(settings: Cluster) -> Any:
    """The certificates to show and to trust; None without TLS."""
    from distributed import Security

    tls = settings.tls
    if tls.ca is None:
        return None
    for name, path in tls:
        if not os.path.isfile(path):
            raise InputError(f"cluster.tls.{name}: no such file {path}")
    return Security(
        tls_ca_file=tls.ca,
        tls_client_cert=tls.cert,
        tls_client_key=tls.key,
        tls_scheduler_cert=tls.cert,
        tls_scheduler_key=tls.key,
        tls_worker_cert=tls.cert,
        tls_worker_key=tls.key,
        require_encryption=True,
    )
