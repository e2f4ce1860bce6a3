"""What each part of the sampler is worth: ai2gmm with one thing changed."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Variant:
    """One thing changed."""

    title: str
    fit: dict[str, Any] = field(default_factory=dict)
    """Keys of the section `fit`."""
    estimator: dict[str, Any] = field(default_factory=dict)
    """Parameters of the classifier."""
    n_features: int | None = None
    label_share: float | None = None


VARIANTS = {
    "default": Variant("as it is"),
    "outliers": Variant("a fifth of the labels does not pin (outlier_fraction: 0.2)", {"outlier_fraction": 0.2}),
    # The scan of a block cannot be switched off: it is where new components come from in the exact sweep.
    "few-births": Variant("one row per sweep may open a component (birth_block: 1)", {"birth_block": 1}),
    "no-splits": Variant("no splits and merges (split_every: 0)", {"split_every": 0}),
    "best-sweep": Variant("the best sweep of each chain alone (averaged_sweeps: 0)", estimator={"averaged_sweeps": 0}),
    "free-kappa1": Variant("kappa1 free (kappa1_at_least_kappa0: false)", {"kappa1_at_least_kappa0": False}),
    "bind": Variant("labelled rows keep to their class (labels: bind)", {"labels": "bind"}),
    "predictive": Variant("components choose by predictive (class_rule)", estimator={"class_rule": "predictive"}),
    "evidence": Variant("components choose by evidence (class_rule)", estimator={"class_rule": "evidence"}),
    "features-5": Variant("5 principal components", n_features=5),
    "features-15": Variant("15 principal components", n_features=15),
    "labels-5": Variant("5 % of the rows labelled", label_share=0.05),
    "labels-10": Variant("10 % of the rows labelled", label_share=0.1),
    "labels-50": Variant("50 % of the rows labelled", label_share=0.5),
    "chains-1": Variant("1 chain", estimator={"chains": 1}),
    "chains-2": Variant("2 chains", estimator={"chains": 2}),
    "chains-8": Variant("8 chains", estimator={"chains": 8}),
}
"""By name, in the order in which they are told."""
