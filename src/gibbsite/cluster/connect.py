"""Clusters of every kind, and a client of theirs: embedded, existing, or started as Slurm jobs."""

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gibbsite.errors import GibbsiteError
from gibbsite.settings import Cluster

log = logging.getLogger(__name__)

CONNECT_SECONDS = 10.0
"""In which a scheduler answers, if there is one."""

ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}
"""Workers are parallel over tiles; libraries below them are not."""


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
    n_threads = settings.threads or max(1, len(os.sched_getaffinity(0)) // n_workers)
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=n_threads,
            # One worker lives in this process: numba releases the GIL, and nothing is serialised.
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

    where = settings.address or ""
    place = {"address": where} if "://" in where else {"scheduler_file": where}
    try:
        client = Client(**place, security=_security(settings), timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise GibbsiteError(f"no scheduler at {where} ({error}); start one, or mend cluster.address") from error
    with client:
        log.info("cluster: scheduler at %s", client.scheduler.address)
        yield client


@contextmanager
def _slurm(settings: Cluster) -> Iterator[Any]:
    """Workers that are Slurm jobs of our own, one job each."""
    from dask_jobqueue import SLURMCluster
    from distributed import Client

    asked = settings.slurm
    cache = os.environ.get("NUMBA_CACHE_DIR")
    environment = ONE_THREAD | ({"NUMBA_CACHE_DIR": cache} if cache else {})
    with (
        SLURMCluster(
            queue=asked.queue,
            account=asked.account,
            walltime=asked.walltime,
            memory=asked.memory,
            cores=max(1, settings.threads),
            processes=1,
            interface=asked.interface,
            job_name="gibbsite-worker",
            job_extra_directives=list(asked.directives),
            job_script_prologue=[f"export {name}={value}" for name, value in environment.items()],
            log_directory=asked.logs,
            local_directory=asked.scratch,
            security=_security(settings),
            scheduler_options={"dashboard_address": ":0"},
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        cluster.scale(jobs=max(1, settings.workers))
        log.info(
            "cluster: %d Slurm job(s) x %d thread(s) asked for", max(1, settings.workers), max(1, settings.threads)
        )
        yield client


def _security(settings: Cluster) -> Any:
    """The certificates to show and to trust; None without TLS."""
    from distributed import Security

    tls = settings.tls
    if tls.ca is None:
        return None
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
