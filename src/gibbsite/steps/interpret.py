"""What each class may be, and whether it may be an artefact, as interpretation.json."""

import argparse
import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite import artefacts, interpretation, library, raster, store
from gibbsite.artefacts import Places
from gibbsite.errors import InputError
from gibbsite.scene import open_cube
from gibbsite.settings import Settings
from gibbsite.spectra import Classes, positions_of
from gibbsite.spectra_files import read_table

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this step's flags."""
    parser.add_argument("--spectra", type=Path, required=True, help="spectra.csv of the spectra step")
    parser.add_argument("--model", type=Path, required=True, help="model of the select step (its class names)")
    parser.add_argument(
        "--cubes", type=Path, nargs="+", required=True, metavar="CUBE.zarr", help="cubes of the ingest step"
    )
    parser.add_argument(
        "--maps",
        type=Path,
        nargs="+",
        required=True,
        metavar="S_class.tif",
        help="class maps of the same scenes, in the same order",
    )
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
    if len(args.cubes) != len(args.maps) or (args.features and len(args.features) != len(args.maps)):
        raise InputError(
            f"found {len(args.cubes)} cubes, {len(args.maps)} class maps and {len(args.features)} features; "
            "give one map, and one or no features, per cube"
        )
    classes = store.read(args.model, "model").attrs["classes"]
    spectra = read_table(args.spectra, classes)
    limits = interpretation.covered(spectra.wavelength, settings.spectra.wavelengths)
    references = library.built_in() if settings.interpret.built_in else []
    for path in settings.interpret.libraries:
        references += library.read(Path(path))
    shapes = interpretation.shapes_of(references, limits)
    log.info("%d of %d library spectra cover %.2f-%.2f µm", len(shapes), len(references), *limits)
    found = interpretation.interpret(spectra, classes, shapes, limits, settings.interpret.min_depth)
    places, usual = _places(args, classes)
    for item, own in zip(found, places, strict=True):
        reasons = [] if item["is_known"] else interpretation.suspicions(item["bands"], own, usual)
        item["suspected_artefact"], item["artefact_reasons"] = bool(reasons), reasons
        item["matches"] = item["matches"][: settings.interpret.candidates]
        if reasons:
            log.warning("%s is a suspected artefact: %s", item["name"], "; ".join(reasons))
    store.write_json(args.out, found)
    log.info("wrote %s", args.out)


def _places(args: argparse.Namespace, classes: Classes) -> tuple[list[Places], tuple[int, float, float]]:
    """Where each class lies, and what is usual: number of detector columns, share of edge and of spiky pixels."""
    parts: list[list[Places]] = []
    columns: set[int] = set()
    n_valid = n_edge = n_spiky = 0
    for number, (cube_path, map_path) in enumerate(zip(args.cubes, args.maps, strict=True)):
        cube = open_cube(cube_path)
        valid = cube["valid"].values
        code = raster.read_band(map_path)
        if code.shape != valid.shape:
            raise InputError(
                f"{map_path}: {code.shape} pixels for a cube of {valid.shape}; give them in the same order"
            )
        position = np.where(valid, positions_of(code, classes, str(map_path)), 0)
        layers = {
            "column": cube["detector_column"].values.astype(np.int64),
            "is_at_edge": artefacts.at_edge(valid),
            "is_spiky": artefacts.spiky(_n_despiked(args.features[number : number + 1], valid.shape), valid),
        }
        parts.append(interpretation.places_of(position, layers, len(classes)))
        columns |= set(np.unique(layers["column"][valid]).tolist()) - {-1}
        n_valid += int(valid.sum())
        n_edge, n_spiky = n_edge + int(layers["is_at_edge"].sum()), n_spiky + int(layers["is_spiky"].sum())
    own = [interpretation.joined(of_class) for of_class in zip(*parts, strict=True)]
    return own, (len(columns), n_edge / max(1, n_valid), n_spiky / max(1, n_valid))


def _n_despiked(features: list[Path], shape: tuple[int, ...]) -> NDArray[Any]:
    """Values despiked in each pixel (y, x); 0 where the features do not tell."""
    found = np.zeros(shape, np.int64)
    for path in features:
        group = store.read(path, "features")
        if "n_despiked" in group:
            found.ravel()[np.asarray(group["pixel"][:])] = np.asarray(group["n_despiked"][:])
    return found
