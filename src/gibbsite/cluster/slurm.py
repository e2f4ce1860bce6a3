"""Workers as Slurm jobs of our own, one job each, kept up to their number."""

import asyncio
import logging
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gibbsite.cluster.threads import ONE_THREAD
from gibbsite.errors import GibbsiteError
from gibbsite.settings import Cluster

log = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
"""From one look for missing jobs to the next."""


@contextmanager
def slurm_jobs(settings: Cluster, security: Any) -> Iterator[Any]:
    """A Dask client of workers that are Slurm jobs; they end with the block."""
    from dask_jobqueue import SLURMCluster
    from distributed import Client

    n_jobs, n_threads = max(1, settings.workers), max(1, settings.threads)
    asked = settings.slurm
    with (
        SLURMCluster(
            queue=asked.queue,
            account=asked.account,
            walltime=asked.walltime,
            memory=asked.memory,
            cores=n_threads,
            processes=1,
            interface=asked.interface,
            job_name="gibbsite-worker",
            job_extra_directives=list(asked.directives),
            job_script_prologue=[f"export {name}={value}" for name, value in _worker_environment().items()],
            log_directory=asked.logs,
            local_directory=asked.scratch,
            security=security,
            # A worker on a busy node waits for the scheduler as long as we wait for it.
            death_timeout=settings.start_seconds,
            scheduler_options={"dashboard_address": ":0"},
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        _try_job(cluster.job_script())
        log.info("cluster: %d Slurm job(s) x %d thread(s) asked for", n_jobs, n_threads)
        cluster.scale(n_jobs)
        with _watching(client, cluster, n_jobs):
            yield client


def _try_job(script: str) -> None:
    """Let Slurm judge the job without running it: a wrong partition or too much memory is told here and now."""
    try:
        verdict = _say("sbatch", "--test-only", stdin=script)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GibbsiteError(f"Slurm does not answer ({error}); cluster.kind: slurm needs a host with sbatch") from None
    if verdict.returncode:
        raise GibbsiteError(f"Slurm refuses a worker's job ({verdict.stderr.strip()}); mend cluster.slurm")


@contextmanager
def _watching(client: Any, cluster: Any, n_jobs: int) -> Iterator[None]:
    """Jobs that ended (time limit, scancel, a dead node) are asked for anew while the block lasts."""

    async def begin() -> asyncio.Task[None]:
        return asyncio.ensure_future(_keep_up(cluster, n_jobs))

    async def end() -> None:
        watching.cancel()

    watching = client.sync(begin)
    try:
        yield
    finally:
        client.sync(end)


async def _keep_up(cluster: Any, n_jobs: int) -> None:
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        # Slurm is asked only when somebody is missing: its controller serves everybody.
        if len(cluster.scheduler_info["workers"]) < n_jobs:
            # Known before Slurm is asked: a job that is submitted meanwhile is not in its answer.
            known = dict(cluster.workers)
            alive = await asyncio.to_thread(_jobs_alive)
            if alive is not None:
                for name in ended(known, alive):
                    cluster.workers.pop(name, None)
                cluster.scale(n_jobs)


def ended(jobs: dict[Any, Any], alive: set[str]) -> list[Any]:
    """Names of the jobs that Slurm no longer has. Dask itself misses only those that had reached its scheduler."""
    gone = [name for name, job in jobs.items() if job.job_id is not None and str(job.job_id) not in alive]
    for name in gone:
        log.info("Slurm job %s ended; another is asked for", jobs[name].job_id)
    return gone


def _jobs_alive() -> set[str] | None:
    """Ids of our jobs that wait or run; None when Slurm does not answer now."""
    try:
        found = _say("squeue", "--me", "--noheader", "--format=%i")
    except (OSError, subprocess.TimeoutExpired):
        return None
    return set(found.stdout.split()) if found.returncode == 0 else None


def _say(*words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, input=stdin, capture_output=True, text=True, check=False, timeout=60)


def _worker_environment() -> dict[str, str]:
    """Variables of a worker's job. Kernels are compiled once: their cache is that of this process."""
    cache = os.environ.get("NUMBA_CACHE_DIR")
    return ONE_THREAD | ({"NUMBA_CACHE_DIR": os.path.abspath(cache)} if cache else {})
