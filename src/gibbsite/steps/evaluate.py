"""Score the maps against known truth (mean F1 of the paper)."""

import argparse
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite import evaluate, raster, store
from gibbsite.errors import InputError
from gibbsite.labels import TRAIN
from gibbsite.settings import Settings

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
        metavar="TRUTH.tif",
        help="truth rasters in the same order: 0 unknown, tags CLASS_<value>=<name>",
    )
    parser.add_argument(
        "--labels",
        nargs="+",
        type=Path,
        required=True,
        metavar="LABELS.zarr",
        help="labels stores in the same order: training pixels are not scored",
    )
    parser.add_argument("--model", type=Path, required=True, help="model store made by `select`")
    parser.add_argument("--out", type=Path, required=True, help="scores to write (JSON)")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Write the scores of all maps together."""
    del settings
    names = _names(args)
    shape = len(names.truth), len(names.predicted)
    counts = np.zeros(shape, np.int64)
    for map_path, truth_path, labels_path in _scenes(args):
        counts += _scene_confusion(map_path, truth_path, labels_path, names)
    if not counts.any():
        raise InputError(
            f"{args.truths[0]}: no pixel to score; expected some with a truth and a mapped class "
            "that were not trained on"
        )
    result = _result(counts, names)
    store.write_json(args.out, result)
    log.info("evaluate: mean F1 %.4f over %d pixels", result["mean_f1"], result["n_pixels"])
    for item in result["classes"]:
        matched = item["matched"] or "nothing"
        log.info("evaluate: %s (%d pixels) F1 %.4f with %s", item["name"], item["n_pixels"], item["f1"], matched)


def _scenes(args: argparse.Namespace) -> Sequence[tuple[Path, Path, Path]]:
    """Map, truth and labels of each scene."""
    count = len(args.maps), len(args.truths), len(args.labels)
    if len(set(count)) != 1:
        raise InputError(
            f"found {count[0]} --maps, {count[1]} --truths and {count[2]} --labels; "
            "expected one of each per scene, in the same order"
        )
    return list(zip(args.maps, args.truths, args.labels, strict=True))


def _names(args: argparse.Namespace) -> _Names:
    classes = sorted(store.read(args.model, "model").attrs["classes"], key=lambda item: int(item["code"]))
    truth = sorted({name for path in args.truths for name in _truth_tags(path).values()})
    return _Names(
        truth=tuple(truth),
        predicted=tuple(str(item["name"]) for item in classes),
        is_known=tuple(bool(item["is_known"]) for item in classes),
        code=tuple(int(item["code"]) for item in classes),
    )


def _truth_tags(path: Path) -> Mapping[int, str]:
    tags = {value: name for value, name in raster.class_names(path).items() if value > 0}
    if not tags:
        raise InputError(f"{path}: no tag CLASS_<value>; expected one per truth class, such as CLASS_1=olivine")
    return tags


def _scene_confusion(map_path: Path, truth_path: Path, labels_path: Path, names: _Names) -> NDArray[np.int64]:
    """Confusion matrix of one scene, training pixels left out."""
    code, truth = raster.read_band(map_path), raster.read_band(truth_path)
    labels = store.read(labels_path, "labels")
    role = np.asarray(labels["role"][...])
    for path, array in ((truth_path, truth), (labels_path, role)):
        if array.shape != code.shape:
            raise InputError(
                f"{path}: {array.shape[0]} × {array.shape[1]} pixels, but the map {map_path} has "
                f"{code.shape[0]} × {code.shape[1]}; give truth and labels of the same scenes in order"
            )
    if map_path.stem.removesuffix("_class") != labels.attrs["scene"]:
        raise InputError(
            f"{labels_path}: labels of scene {labels.attrs['scene']!r} stand beside the map {map_path}; "
            "give maps, truths and labels in the same order"
        )
    scored = (truth > 0) & (code > 0) & (role != TRAIN)
    tags = _truth_tags(truth_path)
    row = _index(truth[scored], [(value, names.truth.index(name)) for value, name in tags.items()], truth_path)
    column = _index(code[scored], [(value, index) for index, value in enumerate(names.code)], map_path)
    return evaluate.confusion(row, column, (len(names.truth), len(names.predicted)))


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
    return {
        "mean_f1": scores.mean,
        "classes": classes,
        "confusion": counts.tolist(),
        "truth_names": truth_names,
        "predicted_names": list(names.predicted),
        "ari": evaluate.adjusted_rand_index(counts),
        "nmi": evaluate.normalised_mutual_information(counts),
        "n_pixels": int(counts.sum()),
    }
