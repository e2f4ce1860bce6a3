"""The command `gibbsite`, called in this process or as its own, and the toy observation it works on."""

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gibbsite.cli import STEPS, main

ROOT = Path(__file__).resolve().parents[1]
"""Of the repository."""

BIN = Path(sys.executable).parent
"""Where `gibbsite` and `snakemake` of this environment are."""

PIPELINE = tuple(step for step in STEPS if step not in {"trial", "experiments", "verify"})
"""Steps from an archive's files to the report."""

TOY: dict[str, Any] = {
    "simulate": {"lines": 48, "binning": 10},
    "fit": {"sweeps": 6, "chains": 1, "pre_sweeps": 5, "start_components": 12},
    "select": {"polish_sweeps": 2},
    "cluster": {"kind": "none", "threads": 1},
}
"""Settings under which the whole pipeline takes seconds."""


def gibbsite(*words: object, settings: Mapping[str, Any] | None = None) -> int:
    """The exit code of `gibbsite WORDS`, run in this process."""
    arguments = [str(word) for word in words]
    if settings is not None:
        arguments += ["--settings", json.dumps(settings)]
    handler = signal.getsignal(signal.SIGTERM)
    try:
        return main(arguments)
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        signal.signal(signal.SIGTERM, handler)
        logging.captureWarnings(False)


def typed(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """What a command of this environment does when typed into a shell."""
    return subprocess.run(
        [str(BIN / str(words[0])), *map(str, words[1:])],
        text=True, capture_output=True, check=False, timeout=1200, env=environment(), **options,
    )  # fmt: skip


def environment() -> dict[str, str]:
    """The variables of a shell in which this environment is active."""
    return os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}


@dataclass(frozen=True)
class Run:
    """Where the files of one run of the pipeline over one scene lie."""

    folder: Path
    """Of all results."""
    observation: Path
    """Folder of the simulated files."""
    scene: str = "toy"
    """Its name."""

    @property
    def cube(self) -> Path:
        return self.folder / "cubes" / f"{self.scene}.zarr"

    @property
    def basis(self) -> Path:
        return self.folder / "basis.zarr"

    @property
    def features(self) -> Path:
        return self.folder / "features" / f"{self.scene}.zarr"

    @property
    def labels(self) -> Path:
        return self.folder / "labels" / f"{self.scene}.zarr"

    @property
    def truth(self) -> Path:
        return self.folder / "truths" / f"{self.scene}.zarr"

    @property
    def chain(self) -> Path:
        return self.folder / "chains" / "1.zarr"

    @property
    def model(self) -> Path:
        return self.folder / "model.zarr"

    @property
    def spectra(self) -> Path:
        return self.folder / "spectra" / "spectra.csv"

    @property
    def interpretation(self) -> Path:
        return self.folder / "interpretation.json"

    @property
    def evaluation(self) -> Path:
        return self.folder / "evaluation.json"

    @property
    def item(self) -> Path:
        return self.folder / "products" / f"{self.scene}_item.json"

    @property
    def mtr3(self) -> Path:
        return self.observation / "frt0000ace5_07_if166j_mtr3.hdr"

    @property
    def trr3(self) -> Path:
        return self.observation / "frt0000ace5_07_if166l_trr3.lbl"

    @property
    def ddr(self) -> Path:
        return self.observation / "frt0000ace5_07_de166l_ddr1.lbl"

    @property
    def shapes(self) -> Path:
        return self.observation / "labels.gpkg"

    def layer(self, name: str) -> Path:
        return self.folder / "maps" / f"{self.scene}_{name}.tif"

    def words(self, step: str, out: "Run") -> list[object]:
        """The words of a step that reads this run's files and writes into `out`; the scene is the MTR3."""
        fitted = ["--features", self.features, "--labels", self.labels]
        mapped = ["--maps", self.layer("class"), "--model", self.model]
        return {
            "simulate": ["simulate", "--out", out.observation],
            "inspect": ["inspect", self.mtr3, "--out", out.folder / "look.png"],
            "ingest": ["ingest", self.mtr3, "--out", out.cube],
            "basis": ["basis", self.cube, "--out", out.basis],
            "features": ["features", self.cube, "--basis", self.basis, "--out", out.features],
            "labels": ["labels", "--cube", self.cube, "--shapes", self.shapes, "--out", out.labels],
            "fit": ["fit", *fitted, "--chain", 1, "--out", out.chain],
            "select": ["select", "--chains", self.chain, *fitted, "--out", out.model],
            "map": ["map", "--features", self.features, "--model", self.model, "--out-dir", out.folder / "maps"],
            "spectra": ["spectra", "--cubes", self.cube, *mapped, "--out-dir", out.folder / "spectra"],
            "interpret": [
                "interpret", "--cubes", self.cube, *mapped, "--features", self.features,
                "--spectra", self.spectra, "--out", out.interpretation,
            ],
            "products": [
                "products", "--class-map", self.layer("class"), "--model", self.model, "--cube", self.cube,
                "--out-dir", out.folder / "products",
            ],
            "catalogue": ["catalogue", "--items", self.item, "--out-dir", out.folder / "products"],
            "truth": [
                "truth", "--cube", self.cube, "--labels", self.labels,
                "--raster", self.observation / "mtr3_truth.tif", "--out", out.truth,
            ],
            "evaluate": ["evaluate", *mapped, "--truths", self.truth, "--out", out.evaluation],
            "report": [
                "report", *mapped, "--chains", self.chain, "--cubes", self.cube, "--labels", self.labels,
                "--spectra", self.spectra, "--interpretation", self.interpretation, "--evaluation", self.evaluation,
                "--figures", out.folder / "figures", "--out", out.folder / "report.html",
            ],
        }[step]  # fmt: skip
