"""What each class may be, and whether it may be a mixture of others or an artefact, as interpretation.json."""

import argparse
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gibbsite import interpretation, library, mapped_scenes, raster, store, whereabouts
from gibbsite.errors import InputError
from gibbsite.model import read_model
from gibbsite.rows import Listed, Rows, blocks_of, edges_of
from gibbsite.settings import Settings
from gibbsite.spectra import Classes, positions_of
from gibbsite.spectra_files import read_table
from gibbsite.whereabouts import Extent, Places, Tally

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this step's flags."""
    parser.add_argument("--spectra", type=Path, required=True, help="spectra.csv of the spectra step")
    parser.add_argument("--model", type=Path, required=True, help="model of the select step")
    mapped_scenes.add_arguments(parser)
    parser.add_argument(
        "--features",
        type=Path,
        nargs="+",
        default=[],
        metavar="FEATURES.zarr",
        help="features of the same scenes, which may tell how many values of a pixel were despiked; left out: none",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="interpretation.json", help="the file to write")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Write interpretation.json."""
    pairs = mapped_scenes.pairs(args)
    if args.features and len(args.features) != len(pairs):
        raise InputError(f"found {len(args.features)} features for {len(pairs)} cubes; give one per cube, or none")
    model = read_model(args.model)
    classes = model.classes
    spectra = read_table(args.spectra, classes)
    limits = interpretation.covered(spectra.wavelength, settings.spectra.wavelengths)
    references = library.built_in() if settings.interpret.built_in else []
    for path in settings.interpret.libraries:
        references += library.read(Path(path))
    shapes = interpretation.shapes_of(references, limits)
    log.info("%d of %d library spectra cover %.2f-%.2f µm", len(shapes), len(references), *limits)
    found = interpretation.interpret(spectra, classes, shapes, limits, settings.interpret.min_depth)
    scenes = [read_scene(pair, features) for pair, features in zip_longest(pairs, args.features)]
    places, usual = _places(scenes, classes)
    with threadpool_limits(1):
        mixtures = interpretation.mixtures(model)
    for item, mixed, own in zip(found, mixtures, places, strict=True):
        item.update(mixed)
        reasons = [] if item["is_known"] else interpretation.suspicions(item["bands"], own, usual)
        item["suspected_artefact"], item["artefact_reasons"] = bool(reasons), reasons
        item["matches"] = item["matches"][: settings.interpret.candidates]
        if reasons:
            log.warning("%s is a suspected artefact: %s", item["name"], "; ".join(reasons))
    n_new, n_mixed = len(classes) - model.n_known, sum(item["suspected_mixture"] for item in found)
    log.info("%d of %d discovered classes may be mixtures of others", n_mixed, n_new)
    store.write_json(args.out, found)
    log.info("wrote %s", args.out)


@dataclass(frozen=True, eq=False)
class Scene:
    """What is asked of a scene, (y, x); all but two flags of each pixel stay on disk."""

    class_map: raster.Stored
    column: xr.DataArray
    """Detector column, -1 unknown."""
    n_despiked: Rows
    """Values of each pixel that were despiked."""
    valid: NDArray[np.bool_]
    is_at_edge: NDArray[np.bool_]

    def blocks(self, classes: Classes) -> Iterator[tuple[slice, NDArray[np.intp], NDArray[np.int16]]]:
        """Rows, and class position (0 for none) and detector column of their pixels."""
        for rows in blocks_of(len(self.valid)):
            position = positions_of(self.class_map[rows], classes, str(self.class_map.path))
            yield rows, np.where(self.valid[rows], position, 0), self.column[rows].values

    def usual_spikes(self) -> float:
        """How many despiked values are usual."""
        count = np.zeros(2**16, np.int64)
        for rows in blocks_of(len(self.valid)):
            count += np.bincount(self.n_despiked[rows][self.valid[rows]], minlength=len(count))
        return whereabouts.usual_spikes(count)


def read_scene(pair: tuple[Path, Path], features: Path | None) -> Scene:
    """The scene of a cube and a class map, and of features, which may tell of despiked values."""
    cube, class_map = mapped_scenes.open_pair(*pair)
    group = store.read(features, "features") if features else {}
    n_despiked: Rows = np.broadcast_to(np.uint16(0), class_map.shape)
    if "n_despiked" in group:
        pixel, told = group["pixel"], group["n_despiked"]
        n_despiked = Listed(
            pixel, edges_of(pixel, class_map.shape), lambda part: told[part], class_map.shape, np.uint16(0)
        )
    valid = cube["valid"].values
    return Scene(class_map, cube["detector_column"], n_despiked, valid, whereabouts.at_edge(valid))


def _places(scenes: Sequence[Scene], classes: Classes) -> tuple[list[Places], tuple[int, float, float]]:
    """Where each class lies, and what is usual: number of detector columns, share of edge and of spiky pixels."""
    seen = np.zeros(2**15, bool)
    for scene in scenes:
        for rows in blocks_of(len(scene.valid)):
            column = scene.column[rows].values[scene.valid[rows]]
            seen[column[column >= 0]] = True
    tally = Tally.none(len(classes), int(np.flatnonzero(seen).max(initial=-1)) + 1)
    n_valid = n_edge = n_spiky = 0
    for scene in scenes:
        usual = scene.usual_spikes()
        for rows, position, column in scene.blocks(classes):
            is_spiky = (scene.n_despiked[rows] > usual) & scene.valid[rows]
            tally.add(position, column, scene.is_at_edge[rows], is_spiky)
            n_spiky += int(is_spiky.sum())
        n_valid, n_edge = n_valid + int(scene.valid.sum()), n_edge + int(scene.is_at_edge.sum())
    n_lines = _lines_in_columns(scenes, classes, tally.needed())
    return tally.places(n_lines), (int(seen.sum()), n_edge / max(1, n_valid), n_spiky / max(1, n_valid))


def _lines_in_columns(scenes: Sequence[Scene], classes: Classes, needed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Lines, or samples if these are more, that hold pixels of each position in its needed columns, in all scenes."""
    n_lines = np.zeros((2, len(needed)), np.int64)
    for scene in scenes:
        extent = Extent.none(len(classes), scene.class_map.shape)
        for rows, position, column in scene.blocks(classes):
            extent.add(rows.start, position, column, needed)
        n_lines += extent.lines.sum(axis=1), extent.samples.sum(axis=1)
    most: NDArray[np.int64] = n_lines.max(axis=0)
    return most
