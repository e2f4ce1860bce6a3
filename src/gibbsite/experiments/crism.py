"""What the pipeline made of the simulated CRISM scene under one model."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gibbsite import interpretation, store
from gibbsite.errors import InputError
from gibbsite.experiments import published
from gibbsite.experiments.table import Floats
from gibbsite.spectra_files import read_table

ARTEFACT = "artefact 2.1 um"
"""Name of the planted artefact in the truth."""


@dataclass(frozen=True, eq=False)
class Mapped:
    """The map of one model, judged."""

    held_out: Mapping[str, Any]
    """Scores against the labels held out, as in the paper."""
    truth: Mapping[str, Any]
    """Scores against all pixels of the simulated truth."""
    n_new: int
    n_unmixed: int
    """New classes that lie near no mixture of others."""
    flagged: Mapping[str, str]
    """New class that is suspected to be an artefact -> why."""
    wavelength: Floats
    spectra: Mapping[str, Floats]
    """New class, the largest first -> mean ratio without continuum (n_bands)."""

    @property
    def stands_for(self) -> dict[str, str]:
        """New class -> true class that it was matched with."""
        return {item["matched"]: item["name"] for item in self.truth["classes"] if not item["is_observed"]}

    def f1(self, name: str) -> float:
        """F1 of a true class over the whole scene."""
        return next((float(item["f1"]) for item in self.truth["classes"] if item["name"] == name), np.nan)

    @property
    def artefact_class(self) -> str | None:
        """The new class that holds most of the artefact's pixels."""
        return next((item["matched"] for item in self.truth["classes"] if item["name"] == ARTEFACT), None)


def read(folder: Path) -> Mapped:
    """The results in the folder of one model."""
    classes = store.read(folder / "model.zarr", "model").attrs["classes"]
    told = interpretation.read(folder / "interpretation.json", classes)
    found = read_table(folder / "spectra" / "spectra.csv", classes)
    new = [k for k, item in enumerate(classes) if not item["is_known"]]
    return Mapped(
        held_out=_scores(folder / "evaluation_held_out.json"),
        truth=_scores(folder / "evaluation_truth.json"),
        n_new=len(new),
        n_unmixed=sum(not told[k]["suspected_mixture"] for k in new),
        flagged={
            classes[k]["name"]: "; ".join(told[k]["artefact_reasons"]) for k in new if told[k]["suspected_artefact"]
        },
        wavelength=found.wavelength,
        spectra={classes[k]["name"]: found.ratio.removed[k] for k in new},
    )


def table(mapped: Mapping[str, Mapped]) -> pd.DataFrame:
    """One line per model: scores beside the paper's, what was planted and found, what was flagged."""
    lines = []
    for model, result in mapped.items():
        own = result.artefact_class
        planted = {item["name"]: round(item["f1"], 3) for item in result.truth["classes"] if not item["is_observed"]}
        lines.append(
            {
                "model": model,
                "held_out_f1": _rounded(result.held_out["mean_f1"]),
                "paper": published.CRISM[model],
                "held_out_pixels": result.held_out["n_pixels"],
                "scene_f1": _rounded(result.truth["mean_f1"]),
                "new_classes": result.n_new,
                "no_mixtures": result.n_unmixed,
                **{f"f1 {name}": value for name, value in planted.items()},
                "artefact_is": own,
                "artefact_flagged": "yes" if own in result.flagged else "no",
                "flagged_classes": len(result.flagged),
            }
        )
    return pd.DataFrame(lines)


def _rounded(score: float | None) -> float | None:
    """None where no pixel was scored, as when all labelled ones were for training."""
    return None if score is None else round(score, 3)


def _scores(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot read the scores ({error}); run the evaluate step") from None
