"""Tables by name: which there are, which file holds them, which are at hand. Light: the workflow reads it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

N_SIMULATED_CLASSES = 10
FCS = "cytometry-fcs"


@dataclass(frozen=True)
class Source:
    """A table of real data."""

    title: str
    file: str
    """In the folder of data."""
    observed: tuple[int, ...]
    """Numbers of observed classes that are tried, those of the paper where it has the table."""
    n_features: int
    """Principal components kept."""


SOURCES = {
    "nddg1": Source("NDDg1", "nddg1.csv", (0, 2, 4, 6, 7), 12),
    "flc1": Source("FLC1", "flc1.csv", (0, 2, 4, 6, 9), 12),
    "stemcell": Source("stemcell", "stemcell.csv", (0, 2, 4), 6),
    "salinas": Source("Salinas-A", "scenes/salinasA.npz", (0, 3, 6), 10),
    "segment": Source("segment", "tables/uci_segment.npz", (0, 3, 7), 8),
    "vowel": Source("vowel", "tables/uci_vowel.npz", (0, 5, 11), 10),
    "satimage": Source("satimage", "tables/uci_satimage.npz", (0, 3, 6), 10),
    "shuttle": Source("shuttle", "tables/uci_shuttle.npz", (0, 3, 7), 9),
    "dlbcl": Source("DLBCL", "tables/dlbcl.npz", (0, 1, 2), 3),
    **{
        f"gvhd-{n}": Source(f"GvHD {n}", "tables/gvhd.npz", (0, 2, n_populations), 6)
        for n, n_populations in enumerate((4, 4, 4, 4, 4, 3, 5, 4, 5, 3, 3, 3), 1)
    },
}


def each(names: Sequence[str]) -> list[str]:
    """The tables called so; `gvhd` stands for all its samples."""
    samples = [name for name in SOURCES if name.startswith("gvhd-")]
    return [table for name in names for table in (samples if name == "gvhd" else [name])]


def title(name: str) -> str:
    """The table's name for people."""
    return SOURCES[name].title if name in SOURCES else name.replace("-", " ")


def files(name: str, folder: Path) -> list[Path]:
    """The files a table is read from; none for simulated ones."""
    if name == FCS:
        return [folder / "cytometry" / file for file in ("known.fcs", "mixed.fcs", "mixed.csv")]
    return [folder / SOURCES[name].file] if name in SOURCES else []


def is_at_hand(name: str, folder: Path) -> bool:
    """Whether a table can be had: its first file is there, or it is simulated."""
    return all(path.is_file() for path in files(name, folder)[:1])


def observed_numbers(name: str) -> tuple[int, ...]:
    """Numbers of observed classes tried on a table."""
    return SOURCES[name].observed if name in SOURCES else tuple(range(0, N_SIMULATED_CLASSES + 1, 2))
