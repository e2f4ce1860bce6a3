"""The fitted model on disk: the structure, its polish draws, and the table of classes."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite import palette, store
from gibbsite.statistics import Floats, Integers

if TYPE_CHECKING:
    from gibbsite.components import Components


@dataclass(frozen=True)
class Model:
    """Draws of one structure. Classes are in the order of their code, known ones first."""

    class_of: Integers
    """(n_components,) class index (code − 1)."""
    log_weight: Floats
    """(n_draws, n_components)."""
    mean: Floats
    """(n_draws, n_components, n_features)."""
    centre: Floats
    """(n_draws, n_classes, n_features)."""
    whiten: Floats
    """(n_draws, n_classes, n_features, n_features)."""
    step: float
    """Fixed-point step of the features."""
    basis: str
    """Fingerprint of the basis the features were made with."""
    classes: list[dict[str, Any]]
    """code, name, is_known, colour, n_pixels, n_classified, n_new_component, n_components of each class."""

    @property
    def n_known(self) -> int:
        """Known classes; they come first."""
        return sum(facts["is_known"] for facts in self.classes)

    def moments(self) -> tuple[Floats, Floats]:
        """Mean (n_classes, n_features) of each class and its variance (n_classes,), that of an average feature.

        Both are NaN of a known class that no component is left of.
        """
        mean = np.full((len(self.classes), self.mean.shape[2]), np.nan)
        variance = np.full(len(mean), np.nan)
        for index in np.unique(self.class_of):
            own = self.class_of == index
            # The weights of a class may all be tiny.
            share = np.exp(self.log_weight[:, own] - self.log_weight[:, own].max(axis=1, keepdims=True))
            share = (share / share.sum(axis=1, keepdims=True))[..., None]
            mean[index] = (share * self.mean[:, own]).sum(axis=1).mean(axis=0)
            apart = (share * (self.mean[:, own] - mean[index]) ** 2).sum(axis=1)
            # The trace of Σ = U⁻¹U⁻ᵀ is the sum of the squares in U⁻¹.
            variance[index] = apart.mean() + (np.linalg.inv(self.whiten[:, index]) ** 2).sum(axis=2).mean()
        return mean, variance

    def draws(self) -> "list[Components]":
        """The draws as components."""
        # With it come the kernels: who only reads a model need not load them.
        from gibbsite.components import Components

        parts = zip(self.log_weight, self.mean, self.centre, self.whiten, strict=True)
        return [Components(self.class_of, *part, log_tail=-np.inf) for part in parts]


ARRAYS = {
    "class_of": ("component",),
    "log_weight": ("draw", "component"),
    "mean": ("draw", "component", "feature"),
    "centre": ("draw", "class", "feature"),
    "whiten": ("draw", "class", "feature", "feature_2"),
}


def write_model(path: Path, model: Model, **facts: Any) -> None:
    """Write a model with these further facts as attributes."""
    facts |= {"step": model.step, "basis": model.basis, "classes": model.classes}
    with store.create(path, "model", **facts) as group:
        for name, dims in ARRAYS.items():
            store.add_array(group, name, dims, getattr(model, name))


def read_model(path: Path) -> Model:
    """The model at `path`."""
    group = store.read(path, "model")
    arrays = {name: group[name][...] for name in ARRAYS}
    return Model(**arrays, step=group.attrs["step"], basis=group.attrs["basis"], classes=group.attrs["classes"])


def named_components(classes: Sequence[dict[str, Any]], class_of: Integers) -> list[dict[str, Any]]:
    """Code (from 1), name, is_known and colour (a shade of its class's) of every component."""
    components = []
    for position, facts in enumerate(classes):
        own = np.flatnonzero(class_of == position)
        for number, (index, colour) in enumerate(zip(own, palette.shades(facts["colour"], len(own)), strict=True), 1):
            name = f"{facts['name']}, component {number}"
            components.append({"code": int(index) + 1, "name": name, "is_known": facts["is_known"], "colour": colour})
    return components


def fingerprint(path: Path) -> str:
    """SHA-256 of all that decides a map: the arrays of the model and its classes."""
    model = read_model(path)
    digest = hashlib.sha256(json.dumps([model.classes, model.step, model.basis], sort_keys=True).encode())
    for name in ARRAYS:
        array = np.ascontiguousarray(getattr(model, name))
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
