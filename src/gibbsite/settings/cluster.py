"""Settings of where sweeps run. None of them changes a result."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from gibbsite.settings.section import Count, Positive, Section, Written


class Tls(Section):
    """Certificates, as paths of PEM files; all three or none."""

    ca: str | None = Field(None, description="Certificate of the authority to trust.")
    cert: str | None = Field(None, description="Certificate to show.")
    key: str | None = Field(None, description="Its private key.")

    @model_validator(mode="after")
    def _together(self) -> "Tls":
        if len({value is None for value in (self.ca, self.cert, self.key)}) > 1:
            raise ValueError("give ca, cert and key, or none of them")
        return self


class Slurm(Section):
    """Workers as Slurm jobs: `cluster.workers` jobs of `cluster.threads` cores each."""

    queue: str | None = Field(None, description="Partition; no value: the cluster's default.")
    account: str | None = Field(None, description="Account to charge; no value: yours.")
    walltime: Annotated[str, Field(pattern=r"^(\d+-)?\d+(:\d\d){0,2}$")] = Field(
        "01:00:00", description="Longest time of a worker's job; a fit goes on with new jobs after it."
    )
    memory: Annotated[str, Field(pattern=r"^\d+(\.\d+)? ?([KMGT]i?)?B$")] = Field(
        "4GB", description="Memory of a worker's job."
    )
    interface: str | None = Field(None, description="Network interface between the jobs, such as ib0.")
    directives: Annotated[list[str], Field()] = Field([], description="Further #SBATCH lines, without the #SBATCH.")
    logs: str = Field("logs/slurm", description="Folder of the jobs' logs.")
    scratch: str | None = Field(None, description="Folder on the node for temporary files; no value: Dask's choice.")


class Cluster(Section):
    """Where sweeps run."""

    kind: Literal["local", "none", "address", "slurm"] = Field(
        "local", description="Embedded Dask cluster, this process alone, an existing scheduler, or Slurm jobs."
    )
    workers: Annotated[int, Field(ge=0)] = Field(
        1, description="Worker processes (local; 1: threads in this process) or jobs (slurm)."
    )
    threads: Annotated[int, Field(ge=0)] = Field(0, description="Threads per worker; 0: all cores shared out.")
    tile_pixels: Annotated[int, Field(ge=256, le=4194304)] = Field(
        65536, description="Pixels per tile. The result does not depend on it."
    )
    checkpoint_seconds: Annotated[float, Field(ge=0.0)] = Field(
        60.0, description="At least so long from one checkpoint of a chain to the next; 0: after every sweep."
    )
    min_workers: Count = Field(1, description="Sweeps start when so many workers are there; others join later.")
    start_seconds: Annotated[Positive, Written] = Field(
        300.0, description="How long to wait for workers, at the start and when all are lost."
    )
    timeout_seconds: Annotated[Positive, Written] = Field(
        60.0, description="A worker that gives no sign of life for so long counts as lost."
    )
    address: str | None = Field(
        None, description="address: of the scheduler, tcp://host:8786 or tls://host:8786, or its scheduler file."
    )
    tls: Tls = Tls()
    slurm: Slurm = Slurm()

    @model_validator(mode="after")
    def _complete(self) -> "Cluster":
        if self.kind == "address" and not self.address:
            raise ValueError("kind: address needs the scheduler's address, such as tcp://host:8786, or scheduler file")
        if (self.address or "").startswith("tls://") and self.tls.ca is None:
            raise ValueError("an address with tls:// needs tls.ca, tls.cert and tls.key")
        return self
