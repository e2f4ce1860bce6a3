"""A real Slurm of one node, started for a test: its own munge key, ports and folders, nothing outside of them.

The commands of Slurm take their configuration from `SLURM_CONF`, which Snakemake's executor removes from the
environment of its jobs. So the test's folder has scripts of the same names that set it, first on the path.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from command_line import environment

DAEMONS = ("munged", "slurmctld", "slurmd")
COMMANDS = ("sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo", "sacct")

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
KillWait=10
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SchedulerParameters=sched_min_interval=500000,batch_sched_delay=0
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}/spool
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=16000
PartitionName=main Nodes={host} Default=YES
"""


@dataclass(frozen=True)
class Job:
    """A job that is waiting, running or ending."""

    id: str
    name: str
    state: str


@dataclass(frozen=True)
class Slurm:
    """A running Slurm."""

    folder: Path
    """Of all its files."""

    @property
    def path(self) -> Path:
        """Folder of its commands."""
        return self.folder / "bin"

    def say(self, command: str, *words: object) -> str:
        """What a command of Slurm answers."""
        typed = [str(self.path / command), *map(str, words)]
        return subprocess.run(
            typed, capture_output=True, text=True, check=True, timeout=60, env=self.variables()
        ).stdout

    def variables(self) -> dict[str, str]:
        """The environment in which Slurm's commands are these, and `gibbsite` and `snakemake` this environment's."""
        around = environment()
        return around | {"PATH": f"{self.path}{os.pathsep}{around['PATH']}"}

    def jobs(self) -> list[Job]:
        """All jobs in the queue."""
        return [Job(*line.split("|")) for line in self.say("squeue", "-h", "-o", "%i|%j|%T").splitlines()]

    def wait_for(self, claim: Callable[[list[Job]], object], seconds: float) -> list[Job]:
        """The queue as soon as the claim about it is true; an AssertionError with the queue when that takes longer."""
        end = time.monotonic() + seconds
        while not claim(queue := self.jobs()):
            assert time.monotonic() < end, f"after {seconds} s the queue holds {queue}"
            time.sleep(0.2)
        return queue


def why_not() -> str | None:
    """Why no Slurm can be started here; None when it can."""
    missing = [name for name in (*DAEMONS, *COMMANDS[:5]) if shutil.which(name, path=_search_path()) is None]
    if missing:
        return f"{', '.join(missing)} not installed (Debian: slurmctld slurmd slurm-client munge)"
    return None if os.geteuid() == 0 else "slurmctld and slurmd are started as root, which this user is not"


@contextmanager
def one_node_slurm(folder: Path) -> Iterator[Slurm]:
    """A Slurm that takes jobs; ended, with all jobs in it, when the block ends."""
    slurm = Slurm(folder)
    _write_files(slurm)
    try:
        _start("munged", "--force", *(f"--{kind}-file={folder}/munge.{kind}" for kind in ("key", "pid", "log", "seed")),
               f"--socket={folder}/munge.sock")  # fmt: skip
        _start("slurmctld", "-f", folder / "slurm.conf")
        _start("slurmd", "-f", folder / "slurm.conf", "-N", socket.gethostname())
        _wait_until(lambda: slurm.say("sinfo", "-h", "-o", "%T").strip() == "idle", "the node is not idle")
        yield slurm
        slurm.say("scancel", "--user=root")
        slurm.wait_for(lambda jobs: not jobs, 30)
    finally:
        for name in ("slurmd", "slurmctld", "munge"):
            _end(folder / f"{name}.pid")


def _search_path() -> str:
    # Daemons are not on every user's path.
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


def _write_files(slurm: Slurm) -> None:
    folder = slurm.folder
    for name in ("spool", "state", "bin"):
        (folder / name).mkdir(parents=True)
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o600)
    controller_port, node_port = _free_ports()
    host = socket.gethostname()
    text = CONFIGURATION.format(folder=folder, host=host, controller_port=controller_port, node_port=node_port)
    (folder / "slurm.conf").write_text(text)
    for name in COMMANDS:
        found = shutil.which(name, path=_search_path()) or f"{name}-is-not-installed"
        script = slurm.path / name
        script.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {found} "$@"\n')
        script.chmod(0o755)


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def _start(name: str, *words: object) -> None:
    """Start a daemon, which goes into the background by itself."""
    found = shutil.which(name, path=_search_path())
    assert found is not None
    done = subprocess.run([found, *map(str, words)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, f"{name} does not start: {done.stdout}{done.stderr}"


def _wait_until(claim: Callable[[], bool], otherwise: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            if claim():
                return
        except subprocess.SubprocessError:
            pass
        assert time.monotonic() < end, otherwise
        time.sleep(0.2)


def _end(pid_file: Path) -> None:
    """End the daemon that wrote this file, if it did."""
    try:
        pid = int(pid_file.read_text())
        os.kill(pid, signal.SIGTERM)
    except (OSError, ValueError):
        return
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists():
            return
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
