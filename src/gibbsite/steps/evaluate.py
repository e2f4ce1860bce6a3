"""Score the maps against known truth or held-out labels (mean F1 of the paper)."""

import argparse
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite import evaluate, raster, store, truth
from gibbsite.errors import InputError
from gibbsite.labels import NO_CLASS
from gibbsite.settings import Settings
from gibbsite.truth import Truth

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Names:
    """The axes of the confusion matrix."""

    truth: tuple[str, ...]
    predicted: tuple[str, ...]
    is_known: tuple[bool, ...]
    code: tuple[int, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `gibbsite evaluate`."""
    parser.add_argument(
        "--maps", nargs="+", type=Path, required=True, metavar="S_class.tif", help="class maps made by `map`"
    )
    parser.add_argument(
        "--truths",
        nargs="+",
        type=Path,
        required=True,
        metavar="TRUTH.zarr",
        help="truth stores of the same scenes, in the same order, made by `truth`",
    )
    parser.add_argument("--model", type=Path, required=True, help="model store made by `select`")
    parser.add_argument("--out", type=Path, required=True, help="scores to write (JSON)")


def run(args: argparse.Namespace, settings: Settings) -> None:  # noqa: ARG001 - every step has this shape
    """Write the scores of all maps together; null where no pixel was held out."""
    if len(args.maps) != len(args.truths):
        raise InputError(
            f"found {len(args.maps)} --maps and {len(args.truths)} --truths; expected one of each per scene, in the "
            "same order"
        )
    truths = [truth.read(path) for path in args.truths]
    names = _names(store.read(args.model, "model").attrs["classes"], truths)
    counts = np.zeros((len(names.truth), len(names.predicted)), np.int64)
    scored = []
    for map_path, of_scene in zip(args.maps, truths, strict=True):
        added = _scene_confusion(map_path, of_scene, names)
        counts += added
        facts = {"scene": of_scene.scene, "source": of_scene.source, "files": list(of_scene.files)}
        scored.append(facts | {"n_pixels": int(added.sum())})
    result = {"scored": scored} | _result(counts, names)
    store.write_json(args.out, result)
    _tell(result)


def _tell(result: Mapping[str, Any]) -> None:
    """Log the scores."""
    for item in result["scored"]:
        log.info("evaluate: %s: %d pixels scored, from the %s", item["scene"], item["n_pixels"], item["source"])
    if not result["n_pixels"]:
        log.info("evaluate: no truth raster and no held-out labels: nothing was scored")
        return
    log.info("evaluate: mean F1 %.4f over %d pixels", result["mean_f1"], result["n_pixels"])
    for item in result["classes"]:
        matched = item["matched"] or "nothing"
        log.info("evaluate: %s (%d pixels) F1 %.4f with %s", item["name"], item["n_pixels"], item["f1"], matched)


def _names(classes: Sequence[Mapping[str, Any]], truths: Sequence[Truth]) -> _Names:
    by_code = sorted(classes, key=lambda item: int(item["code"]))
    return _Names(
        truth=tuple(sorted({name for of_scene in truths for name in of_scene.class_names})),
        predicted=tuple(str(item["name"]) for item in by_code),
        is_known=tuple(bool(item["is_known"]) for item in by_code),
        code=tuple(int(item["code"]) for item in by_code),
    )


def _scene_confusion(map_path: Path, of_scene: Truth, names: _Names) -> NDArray[np.int64]:
    """Confusion matrix of one scene."""
    grid = raster.read_grid(map_path)
    if of_scene.scene != map_path.stem.removesuffix("_class") or of_scene.truth.shape != (grid.height, grid.width):
        raise InputError(
            f"{map_path}: {grid.height} × {grid.width} pixels stand beside the truth of scene {of_scene.scene!r} "
            f"with {of_scene.truth.shape[0]} × {of_scene.truth.shape[1]}; give maps and truths in the same order"
        )
    row_of_class = np.array([names.truth.index(name) for name in of_scene.class_names], np.int64)
    counts = np.zeros((len(names.truth), len(names.predicted)), np.int64)
    for start, code in raster.row_blocks(map_path):
        truth_here = of_scene.truth[start : start + len(code)]
        scored = (truth_here != NO_CLASS) & (code > 0)
        column = _index(code[scored], [(value, index) for index, value in enumerate(names.code)], map_path)
        counts += evaluate.confusion(row_of_class[truth_here[scored]], column, counts.shape)
    return counts


def _index(value: NDArray[Any], places: Sequence[tuple[int, int]], path: Path) -> NDArray[np.int64]:
    """The index of each raster value, from (value, index) pairs."""
    largest = max([int(value.max(initial=0)), *(known for known, _ in places)])
    table = np.full(largest + 1, -1, np.int64)
    for known, index in places:
        table[known] = index
    found = table[value]
    if (found < 0).any():
        raise InputError(
            f"{path}: value {int(value[found < 0][0])} belongs to no class; expected "
            f"{', '.join(str(known) for known, _ in places)}: make it anew with this model"
        )
    return found


def _result(counts: NDArray[np.int64], names: _Names) -> dict[str, Any]:
    """The scores as JSON; truth classes without a scored pixel are left out."""
    present = np.flatnonzero(counts.sum(axis=1))
    counts = counts[present]
    truth_names = [names.truth[index] for index in present]
    column = evaluate.column_of_truth(truth_names, names.predicted, names.is_known)
    scores = evaluate.class_scores(counts, column, np.array(names.is_known))
    classes = [
        {
            "name": name,
            "is_observed": bool(column[index] != evaluate.UNMATCHED),
            "f1": float(scores.f1[index]),
            "n_pixels": int(counts[index].sum()),
            "matched": names.predicted[scores.matched[index]] if scores.matched[index] >= 0 else None,
        }
        for index, name in enumerate(truth_names)
    ]
    n_pixels = int(counts.sum())
    return {
        "mean_f1": scores.mean if n_pixels else None,
        "classes": classes,
        "confusion": counts.tolist(),
        "truth_names": truth_names,
        "predicted_names": list(names.predicted),
        "ari": evaluate.adjusted_rand_index(counts) if n_pixels else None,
        "nmi": evaluate.normalised_mutual_information(counts) if n_pixels else None,
        "n_pixels": n_pixels,
    }
