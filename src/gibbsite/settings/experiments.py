"""Settings of the paper's experiments."""

from typing import Annotated, Literal, get_args

from pydantic import Field, field_validator

from gibbsite.settings.scenes import LEAST_LINES
from gibbsite.settings.section import Count, Folder, Section

TableName = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)?$")]
Peer = Literal[
    "bayesian-mixture", "mixture-bic", "hdbscan", "lda", "forest", "label-spreading", "lda-distance", "forest-threshold"
]


class Crism(Section):
    """The simulated scene of the experiment on CRISM."""

    lines: Annotated[int, Field(ge=0)] = Field(480, description="Lines of the scene; 0: leave the experiment out.")
    binning: Literal[1, 2, 5, 10] = Field(1, description="Detector binning, as in `simulate`.")
    chains: Count = Field(2, description="Chains of each model.")
    sweeps: Count = Field(100, description="Sweeps of each chain.")

    @field_validator("lines")
    @classmethod
    def _enough(cls, lines: int) -> int:
        if 0 < lines < LEAST_LINES:
            raise ValueError(f"give 0, or {LEAST_LINES} or more")
        return lines


class Experiments(Section):
    """The paper's experiments (`snakemake experiments`)."""

    folder: Folder = Field("results/experiments", description="Folder of their results.")
    data: Folder = Field("../shared/data", description="Folder of real data; what it lacks is left out, and said so.")
    repeats: Count = Field(3, description="Seeds of every cell of the benchmarks and ablations.")
    chains: Count = Field(4, description="Chains of every fit.")
    sweeps: Count = Field(100, description="Sweeps of every chain.")
    simulated: Annotated[int, Field(ge=0)] = Field(10, description="Simulated tables of the paper's law.")
    benchmarks: list[TableName] = Field(
        ["nddg1", "flc1", "stemcell", "salinas", "segment", "vowel", "satimage", "shuttle", "dlbcl", "gvhd"],
        description="Tables of the benchmarks; gvhd: each of its samples.",
    )
    discovery: list[TableName] = Field(
        ["salinas", "gvhd"], description="Tables whose classes are hidden one at a time."
    )
    peers: list[Peer] = Field(list(get_args(Peer)), description="Other methods tried under the same protocol.")
    peer_tables: list[TableName] = Field(
        ["salinas", "segment", "vowel", "satimage", "gvhd-1"], description="Tables they are tried on."
    )
    ablations: list[TableName] = Field(
        ["salinas", "segment", "gvhd-1", "simulated-1"],
        description="Tables on which parts of the sampler are left out.",
    )
    cytometry: list[TableName] = Field(
        ["cytometry-4", "cytometry-fcs"],
        description="Searches for rare cells: their distance from the common ones, or the user's FCS files.",
    )
    cells: Annotated[int, Field(ge=2000)] = Field(280_000, description="Cells of each simulated sample.")
    crism: Crism = Crism()
