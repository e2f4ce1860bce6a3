"""Burn label polygons or a class raster into the scene; choose training pixels."""

import argparse
import logging
from pathlib import Path

import numpy as np
import xarray as xr

from gibbsite import image, labels, raster, scene, shapes
from gibbsite.labels import KnownClasses
from gibbsite.settings import Settings

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `gibbsite labels`."""
    parser.add_argument("--cube", type=Path, required=True, help="cube store of the scene, made by `ingest`")
    parser.add_argument(
        "--shapes",
        type=Path,
        help="label polygons (GeoPackage, Shapefile, GeoJSON) or a raster of the scene's pixels with tags "
        "CLASS_<value>=<name>; left out: nothing is labelled",
    )
    parser.add_argument("--out", type=Path, required=True, help="labels store to write")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Write the labels of one scene."""
    cube = scene.open_cube(args.cube)
    if args.shapes is None:
        classes = labels.no_classes(scene.grid_of(cube))
        observed: list[bool] = []
        files: list[Path] = []
    else:
        classes, files = _known_classes(args.shapes, cube, settings)
        labels.check_labelled(classes, args.shapes)
        observed = labels.observed_classes(classes, settings.labels.observed)
    role = labels.choose_roles(classes, observed, settings.seed, settings.labels)
    name = str(cube.attrs["scene"])
    labels.write(args.out, name, classes, observed, role, [image.fingerprint(path) for path in files])
    _tell(name, classes, observed, role)


def _known_classes(path: Path, cube: xr.Dataset, settings: Settings) -> tuple[KnownClasses, list[Path]]:
    """The known classes, and the files they come from."""
    if shapes.is_vector(path):
        return shapes.burn(shapes.read_shapes(path, settings.labels.class_field), cube), shapes.files(path)
    files = raster.files(path, "label polygons (GeoPackage, Shapefile, GeoJSON) or a class raster (GeoTIFF)")
    return labels.read_class_raster(path, cube), files


def _tell(name: str, classes: KnownClasses, observed: list[bool], role: np.ndarray) -> None:
    """Log what was labelled."""
    if classes.n_disputed:
        log.info("labels: %d pixels under polygons of several classes were left unlabelled", classes.n_disputed)
    for index, (class_name, is_observed) in enumerate(zip(classes.class_names, observed, strict=True)):
        mine = role[classes.known == index]
        n_train = int((mine == labels.TRAIN).sum())
        shown = f"{n_train} to train on" if is_observed else "not shown to the model"
        log.info("labels: %s: %s has %d pixels, %s", name, class_name, len(mine), shown)
    if not classes.class_names:
        log.info("labels: %s: no labels", name)
