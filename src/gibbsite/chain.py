"""Chains on disk: the trace, the best state and the last one; a few megabytes whatever the scene's size."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from gibbsite import store
from gibbsite.components import Components
from gibbsite.gibbs import Info
from gibbsite.niw import Prior
from gibbsite.sampling import Chain
from gibbsite.start import Pins
from gibbsite.state import State
from gibbsite.statistics import Floats, Statistics
from gibbsite.tiles import Anchors

TRACES = [field.name for field in fields(Info)]
"""What is traced, one number per sweep each."""


PIN_ARRAYS = {
    "threshold": ("class",),
    "class_of": ("component",),
    "log_weight": ("component",),
    "mean": ("component", "feature"),
    "centre": ("class", "feature"),
    "whiten": ("class", "feature", "feature_2"),
}


def write_chain(path: Path, sampled: Chain, pins: Pins | None, **facts: Any) -> None:
    """Write a chain, what tells its outliers, and these facts as attributes."""
    with store.create(path, "chain", **facts) as group:
        for name in TRACES:
            values = np.array([getattr(info, name) for info in sampled.trace], np.float64)
            store.add_array(group, f"trace_{name}", ("sweep",), values)
        _write_state(group.create_group("best"), sampled.best)
        _write_state(group.create_group("last"), sampled.last)
        if pins is not None:
            _write_pins(group.create_group("pins"), pins)


def read_chain(path: Path) -> tuple[Chain, dict[str, Any]]:
    """The chain at `path` and its facts."""
    group = store.read(path, "chain")
    columns = [group[f"trace_{name}"][:] for name in TRACES]
    trace = tuple(Info(*map(float, values)) for values in zip(*columns, strict=True))  # type: ignore[arg-type]
    return Chain(_read_state(group["best"]), _read_state(group["last"]), trace), dict(group.attrs)


def moves_of(trace: Sequence[Info]) -> dict[str, tuple[Floats, Floats]]:
    """(proposed, accepted) in each sweep of every move that the trace counts in fields MOVE_proposed, MOVE_accepted."""
    names = [name.removesuffix("_proposed") for name in TRACES if name.endswith("_proposed")]

    def column(name: str) -> Floats:
        return np.array([getattr(info, name) for info in trace], np.float64)

    return {name: (column(f"{name}_proposed"), column(f"{name}_accepted")) for name in names}


def read_pins(path: Path) -> Pins | None:
    """What tells the outliers among the labelled pixels of the chain at `path`; nothing when all of them pin."""
    group = store.read(path, "chain").get("pins")
    if group is None:
        return None
    arrays = {name: group[name][...] for name in PIN_ARRAYS if name != "threshold"}
    components = Components(**arrays, log_tail=-np.inf)
    return Pins(components, group["threshold"][...], float(group.attrs["step"]))


def _write_pins(group: zarr.Group, pins: Pins) -> None:
    group.attrs["step"] = pins.step
    for name, dims in PIN_ARRAYS.items():
        owner = pins if name == "threshold" else pins.components
        store.add_array(group, name, dims, getattr(owner, name))


def _write_state(group: zarr.Group, state: State) -> None:
    prior, sums = state.prior, state.statistics
    group.attrs.update(
        {
            "sweep": state.sweep,
            "next_class_id": state.next_class_id,
            "kappa0": prior.kappa0,
            "spread": prior.spread,
            "degrees": prior.degrees,
            "alpha": prior.alpha,
            "gamma": prior.gamma,
        }
    )
    store.add_array(group, "n", ("component",), sums.n)
    store.add_array(group, "total", ("component", "feature"), sums.total)
    store.add_array(group, "outer", ("component", "feature", "feature_2"), sums.outer)
    store.add_array(group, "n_pinning", ("component", "known_class"), sums.n_pinning)
    store.add_array(group, "n_votes", ("component", "known_class"), sums.n_votes)
    store.add_array(group, "class_of", ("component",), state.class_of)
    store.add_array(group, "class_id", ("class",), state.class_id)
    store.add_array(group, "anchor_order", ("component",), state.anchors.order)
    store.add_array(group, "anchor_rank", ("component",), state.anchors.rank)
    store.add_array(group, "block_label", ("block_pixel",), state.block_label)
    store.add_array(group, "prior_mean", ("feature",), prior.mean)
    store.add_array(group, "prior_scale", ("feature", "feature_2"), prior.scale)


def _read_state(group: zarr.Group) -> State:
    facts = group.attrs
    return State(
        sweep=int(facts["sweep"]),
        statistics=Statistics(*(group[name][:] for name in ("n", "total", "outer", "n_pinning", "n_votes"))),
        class_of=group["class_of"][:],
        class_id=group["class_id"][:],
        next_class_id=int(facts["next_class_id"]),
        anchors=Anchors(group["anchor_order"][:], group["anchor_rank"][:]),
        block_label=group["block_label"][:],
        prior=Prior(
            mean=group["prior_mean"][:],
            scale=group["prior_scale"][:],
            **{name: float(facts[name]) for name in ("kappa0", "spread", "degrees", "alpha", "gamma")},
        ),
    )
