"""Files for a GIS and for people: cloud-optimised maps with styles, polygons, class table, catalogue item."""

import argparse
import logging
from pathlib import Path

import numpy as np

from gibbsite import class_table, polygons, products, store
from gibbsite.settings import Settings

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this step's flags."""
    parser.add_argument(
        "--class-map",
        type=Path,
        required=True,
        metavar="S_class.tif",
        help="class map of the map step, its other layers beside it; S names the products",
    )
    parser.add_argument("--model", type=Path, required=True, help="model of the select step (names and colours)")
    parser.add_argument("--cube", type=Path, required=True, help="cube of the scene (time and checksums of its files)")
    parser.add_argument(
        "--class-probabilities",
        type=Path,
        metavar="S_probabilities.zarr",
        help="probability of every class, of the map step with map.class_probabilities; published as S_probabilities/",
    )
    parser.add_argument(
        "--interpretation", type=Path, metavar="JSON", help="what each class may be, for the class table"
    )
    parser.add_argument(
        "--out-dir",
        type=Path,
        required=True,
        help="folder that receives S_class.tif and the other layers, S_classes.gpkg, S_classes.csv, S_item.json, …",
    )


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Write the products of one scene."""
    scene = products.read_scene(args.class_map, args.model, args.cube)
    meaning = class_table.read_interpretation(args.interpretation, scene.classes) if args.interpretation else {}
    each_class = store.read(args.class_probabilities, "probabilities") if args.class_probabilities else None
    sieved = polygons.without_specks(scene.code, settings.products.min_polygon_pixels)
    with store.writing_together(args.out_dir) as out:
        assets = products.write_layers(scene, out)
        assets |= products.write_rest(scene, sieved, meaning, out)
        if each_class is not None:
            assets |= products.write_class_layers(scene, each_class, out / f"{scene.name}_probabilities")
        store.write_json(out / f"{scene.name}_item.json", products.catalogue_item(scene, assets))
    log.info("%s: wrote %d files to %s", scene.name, len(assets) + 1, args.out_dir)
    _tell_lost(scene, sieved, settings.products.min_polygon_pixels)


def _tell_lost(scene: products.MappedScene, sieved: np.ndarray, smallest: int) -> None:
    """Name the classes that have no polygon because all their patches are too small."""
    lost = set(np.unique(scene.code)) - set(np.unique(sieved))
    if lost:
        names = ", ".join(str(item["name"]) for item in scene.classes if item["code"] in lost)
        log.info("%s: no polygon of %s: no patch of products.min_polygon_pixels (%d)", scene.name, names, smallest)
