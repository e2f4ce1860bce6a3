"""The workflow on a real Slurm: the same bytes as on one machine, and no job left whatever ends it."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from command_line import ROOT, TOY
from one_node_slurm import Job, Slurm, one_node_slurm, why_not

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3600)]

HEAD = "scene\tcube\tddr\twavelengths\tlabels\ttruth\n"
ROW = "toy\tin/frt0000ace5_07_if166j_mtr3.hdr\t\t\tin/labels.gpkg\tin/mtr3_truth.tif\n"
SWEEPS = 300
"""Long enough for a worker to come, and to be lost."""
ENDLESS = 1_000_000
FIT: dict[str, Any] = TOY["fit"] | {"sweeps": SWEEPS, "split_every": 10, "label_components": 10}
CONFIG = {
    "scenes": "scenes.tsv",
    "results": "results",
    "fit": FIT,
    "select": TOY["select"],
    "simulate": TOY["simulate"] | {"folder": "in"},
}
ALONE = {"kind": "none", "threads": 1}
JOBS = {
    "kind": "slurm",
    "workers": 2,
    "min_workers": 2,
    "tile_pixels": 512,
    "checkpoint_seconds": 1,
    # A busy machine takes minutes to start a worker.
    "start_seconds": 900,
    # Loopback only; a cluster has a network of its own between its nodes.
    "slurm": {"interface": "lo", "memory": "1GB", "walltime": "00:20:00"},
}
# The test's Slurm has no accounting, and answers at once.
PATIENCE = (
    "--slurm-status-command", "squeue", "--slurm-no-account", "--slurm-init-seconds-before-status-checks", 1,
    "--seconds-between-status-checks", 1, "--retries", 0,
)  # fmt: skip
CHAIN = "results/chains/1.zarr"
LAYERS = tuple(f"results/maps/toy_{name}.tif" for name in ("class", "probability", "entropy", "unknown"))


class Site:
    """A folder in which Snakemake runs the toy, on this machine or on Slurm."""

    def __init__(self, folder: Path, slurm: Slurm) -> None:
        self.folder, self.slurm = folder, slurm
        self._started: list[subprocess.Popen[str]] = []

    def configure(self, cluster: dict[str, Any], sweeps: int = SWEEPS) -> None:
        config = CONFIG | {"fit": FIT | {"sweeps": sweeps}, "cluster": cluster}
        (self.folder / "toy.yaml").write_text(yaml.safe_dump(config))
        (self.folder / "scenes.tsv").write_text(HEAD + ROW)

    def start(self, *words: object, profile: str = "slurm") -> subprocess.Popen[str]:
        """Snakemake with this profile, in a process group of its own."""
        command = [
            "snakemake", "--snakefile", ROOT / "Snakefile", "--directory", self.folder,
            "--configfile", self.folder / "toy.yaml",
            "--workflow-profile", ROOT / "workflow" / "profiles" / profile,
            *(PATIENCE if profile == "slurm" else ()), *words,
        ]  # fmt: skip
        with (self.folder / "said.txt").open("a") as said:
            running = subprocess.Popen(
                [str(word) for word in command],
                stdout=said, stderr=said, env=self.slurm.variables(), text=True, start_new_session=True,
            )  # fmt: skip

        self._started.append(running)
        return running

    def end(self) -> None:
        """End what still runs here: a test may have failed."""
        for running in self._started:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()
        self.slurm.say("scancel", "--user=root")
        self.slurm.wait_for(lambda jobs: not jobs, 120)

    def said(self) -> str:
        """What Snakemake and the steps said."""
        logs = [
            self.folder / "said.txt",
            *self.folder.rglob("results/logs/**/*.log"),
            *self.folder.rglob("logs/slurm/*"),
        ]
        return "\n".join(f"--- {path}\n{path.read_text(errors='replace')[-4000:]}" for path in logs if path.is_file())

    def sweeps_done(self) -> int:
        """The last sweep that the fit told of."""
        log = self.folder / "results/logs/fit/1.log"
        told = re.findall(r"sweep (\d+)/", log.read_text()) if log.exists() else []
        return int(told[-1]) if told else 0

    def wait_for_sweeps(self) -> list[Job]:
        """The worker jobs, once they run and sweep."""
        end = time.monotonic() + 900
        while not self.sweeps_done():
            assert time.monotonic() < end, self.said()
            time.sleep(0.2)
        return workers(self.slurm.jobs())

    def fit_process(self) -> int:
        """The process that samples."""
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                is_ours = (entry / "cwd").resolve() == self.folder.resolve()
            except OSError:
                continue
            if is_ours and b"fit" in words[1:3] and any(word.endswith(b"gibbsite") for word in words[:2]):
                return int(entry.name)
        raise AssertionError("no process of `gibbsite fit` in this folder")


def workers(jobs: list[Job]) -> list[Job]:
    """Those jobs that are Dask workers of a fit and run."""
    return [job for job in jobs if job.name == "gibbsite-worker" and job.state == "RUNNING"]


def contents(path: Path) -> dict[str, bytes]:
    """Every file of a store, or the one file, without what Snakemake keeps there."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in files
        if file.is_file() and ".snakemake" not in file.name
    }


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    reason = why_not()
    if reason:
        pytest.skip(f"no Slurm here: {reason}")
    with one_node_slurm(tmp_path_factory.mktemp("slurm")) as running:
        yield running


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, slurm: Slurm) -> Site:
    """The toy mapped on this machine, in one process."""
    site = Site(tmp_path_factory.mktemp("local"), slurm)
    site.configure(ALONE)
    assert site.start("--cores", 2, profile="local").wait(900) == 0, site.said()
    return site


@pytest.fixture
def site(local: Site, tmp_path: Path) -> Iterator[Site]:
    """An empty place."""
    (tmp_path / "site").mkdir()
    empty = Site(tmp_path / "site", local.slurm)
    yield empty
    empty.end()


@pytest.fixture
def before_fit(local: Site, site: Site) -> Site:
    """The toy up to its features and labels; the next thing to do is to fit."""
    # What comes after the fit too: Snakemake makes nothing that only finished files would need.
    left_out = shutil.ignore_patterns(
        *("chains", "model.zarr", "logs", "maps", "spectra", "products", "figures", "report.html"),
        *("interpretation.json", "evaluation.json"),
    )
    shutil.copytree(local.folder, site.folder, ignore=left_out, dirs_exist_ok=True)
    return site


def test_the_whole_demo_on_slurm_is_the_same_bytes_though_a_worker_job_is_cancelled(local: Site, site: Site) -> None:
    site.configure(JOBS)
    running = site.start()
    cancelled = cancel_one_worker(site, running)
    assert running.wait(2400) == 0, site.said()
    assert cancelled, "no worker job ran while the fit swept"
    assert "lost" in (site.folder / "results/logs/fit/1.log").read_text(), "the fit noticed no loss"
    site.slurm.wait_for(lambda jobs: not jobs, 120)
    submitted = re.findall(r"submitted with SLURM jobid", (site.folder / "said.txt").read_text())
    # 16 steps less `all`; two groups of two rules are one job each.
    assert len(submitted) == 13
    for name in (CHAIN, "results/model.zarr", *LAYERS, "results/report.html"):
        assert contents(site.folder / name) == contents(local.folder / name), f"{name} depends on where it was made"


def cancel_one_worker(site: Site, running: subprocess.Popen[str]) -> list[Job]:
    """The worker job that was cancelled, in the first sweeps of the fit; none when Snakemake ended before."""
    while not site.sweeps_done():
        if running.poll() is not None:
            return []
        time.sleep(0.2)
    found = workers(site.slurm.jobs())[:1]
    for job in found:
        site.slurm.say("scancel", job.id)
    return found


def test_a_failed_fit_leaves_no_job(before_fit: Site) -> None:
    # No worker comes so soon: the fit gives up when its jobs wait or have just begun.
    before_fit.configure(JOBS | {"start_seconds": 0.5}, ENDLESS)
    running = before_fit.start(CHAIN)
    assert running.wait(1200) != 0
    log = (before_fit.folder / "results/logs/fit/1.log").read_text()
    assert "gibbsite: error:" in log, before_fit.said()
    assert "Slurm job(s)" in log, "the fit failed before it asked for workers"
    before_fit.slurm.wait_for(lambda jobs: not jobs, 120)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_snakemake_leaves_no_job_and_the_chain_goes_on(before_fit: Site, number: signal.Signals) -> None:
    before_fit.configure(JOBS, ENDLESS)
    running = before_fit.start(CHAIN)
    assert before_fit.wait_for_sweeps(), before_fit.said()
    running.send_signal(number)
    if number == signal.SIGTERM:
        # Snakemake then waits for the jobs it has submitted; on Ctrl-C it cancels them itself.
        before_fit.slurm.say("scancel", "--user=root")
    assert running.wait(900) != 0
    before_fit.slurm.wait_for(lambda jobs: not jobs, 120)
    assert (before_fit.folder / "results/checkpoints/1.zarr").is_dir(), "the chain so far is lost"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_fit_that_is_ended_leaves_no_job(before_fit: Site, number: signal.Signals) -> None:
    before_fit.configure(JOBS, ENDLESS)
    running = before_fit.start(CHAIN)
    assert before_fit.wait_for_sweeps(), before_fit.said()
    os.kill(before_fit.fit_process(), number)
    assert running.wait(900) != 0
    before_fit.slurm.wait_for(lambda jobs: not jobs, 120)
    assert not (before_fit.folder / CHAIN).exists()


def test_jobs_of_a_killed_snakemake_end_by_themselves_and_their_work_counts(local: Site, before_fit: Site) -> None:
    before_fit.configure(JOBS)
    running = before_fit.start(CHAIN)
    assert before_fit.wait_for_sweeps(), before_fit.said()
    os.kill(running.pid, signal.SIGKILL)
    running.wait(60)
    before_fit.slurm.wait_for(lambda jobs: not jobs, 900)
    assert contents(before_fit.folder / CHAIN) == contents(local.folder / CHAIN)
    assert before_fit.start("--unlock").wait(120) == 0
    assert before_fit.start(CHAIN).wait(900) == 0, before_fit.said()
    assert contents(before_fit.folder / CHAIN) == contents(local.folder / CHAIN)


@pytest.mark.parametrize("n_tasks", [1, 2])
def test_a_run_inside_one_allocation_is_the_same_bytes(local: Site, before_fit: Site, n_tasks: int) -> None:
    folder, slurm = before_fit.folder, before_fit.slurm
    before_fit.configure(ALONE)
    for name in ("Snakefile", "workflow", "config"):
        (folder / name).symlink_to(ROOT / name)
    asked = [f"--ntasks={n_tasks}", "--cpus-per-task=1", "--mem-per-cpu=1000", "--export=ALL,DASK_INTERFACE=lo"]
    slurm.say(
        "sbatch", "-D", folder, "-o", folder / "said.txt", *asked, ROOT / "workflow" / "allocation.sh", "toy.yaml"
    )
    slurm.wait_for(lambda jobs: not jobs, 900)
    for name in (CHAIN, *LAYERS):
        assert (folder / name).exists(), before_fit.said()
        assert contents(folder / name) == contents(local.folder / name), f"{name} depends on where it was made"
    told = (folder / "results/logs/fit/1.log").read_text()
    assert ("scheduler at" in told) == (n_tasks > 1), "the sweeps ran elsewhere than they should"
    assert list(folder.glob(".allocation*")) == []
