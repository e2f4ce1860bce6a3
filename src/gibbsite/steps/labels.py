"""Read the labels of a scene, whatever their format; choose training pixels."""

import argparse
import logging
from pathlib import Path

import numpy as np

from gibbsite import image, label_files, labels, scene
from gibbsite.labels import KnownClasses
from gibbsite.settings import Settings

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `gibbsite labels`."""
    parser.add_argument("--cube", type=Path, required=True, help="cube store of the scene, made by `ingest`")
    parser.add_argument(
        "--shapes",
        type=Path,
        help="label polygons or points (GeoPackage, Shapefile, GeoJSON), regions of ENVI (XML or text), a CSV of "
        "points, a class raster (GeoTIFF, ENVI classification image) or a folder of masks; left out: no labels",
    )
    parser.add_argument(
        "--one-of-several",
        action="store_true",
        help="the scene is one of several that are fitted together: classes of labels.observed may be absent here",
    )
    parser.add_argument("--out", type=Path, required=True, help="labels store to write")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Write the labels of one scene."""
    cube = scene.open_cube(args.cube)
    classes = labels.no_classes(scene.grid_of(cube))
    files: list[Path] = []
    if args.shapes is not None:
        classes, files = label_files.read(args.shapes, cube, settings.labels)
        labels.check_labelled(classes, args.shapes)
        if not args.one_of_several:
            labels.check_wanted(settings.labels.observed, classes.class_names)
    observed = labels.observed_classes(classes, settings.labels.observed)
    role = labels.choose_roles(classes, observed, settings.seed, settings.labels)
    name = str(cube.attrs["scene"])
    fingerprints = [image.fingerprint(path) for path in files]
    labels.write(args.out, classes, observed, role, scene=name, wanted=settings.labels.observed, files=fingerprints)
    _tell(name, classes, observed, role, settings.labels.min_train)


def _tell(name: str, classes: KnownClasses, observed: list[bool], role: np.ndarray, least: int) -> None:
    """Log what was labelled, what was not, and classes with fewer pixels than the least that should train."""
    for remark in classes.remarks:
        log.warning("labels: %s: %s", name, remark)
    for index, (class_name, is_observed) in enumerate(zip(classes.class_names, observed, strict=True)):
        mine = role[classes.known == index]
        n_train = int((mine == labels.TRAIN).sum())
        shown = f"{n_train} to train on" if is_observed else "not shown to the model"
        log.info("labels: %s: %s has %d pixels, %s", name, class_name, len(mine), shown)
        if is_observed and len(mine) < least:
            few = f"{class_name} has fewer labelled pixels ({len(mine)}) than labels.min_train ({least})"
            log.warning("labels: %s: %s: all train, none is held out; label more of it if you can", name, few)
    if not classes.class_names:
        log.info("labels: %s: no labels", name)
