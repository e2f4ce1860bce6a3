"""Files for a GIS: class polygons, a cloud-optimised class map with its style, a class table."""

import argparse
import logging
from pathlib import Path

import numpy as np

from gibbsite import polygons, products, projected, store
from gibbsite.settings import Settings

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this step's flags."""
    parser.add_argument(
        "--class-map",
        type=Path,
        required=True,
        metavar="S_class.tif",
        help="class map of the map step; S names the products",
    )
    parser.add_argument(
        "--probability",
        type=Path,
        required=True,
        metavar="S_probability.tif",
        help="probability of the mapped class, of the same step",
    )
    parser.add_argument("--cube", type=Path, required=True, help="cube of the scene (where its pixels lie)")
    parser.add_argument("--model", type=Path, required=True, help="model of the select step (names and colours)")
    parser.add_argument(
        "--out-dir",
        type=Path,
        required=True,
        help="folder that receives S_classes.gpkg, S_class.tif, S_class.qml and S_classes.csv",
    )


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Write the products of one scene."""
    classes = store.read(args.model, "model").attrs["classes"]
    smallest = settings.products.min_polygon_pixels
    with projected.on_common_map(args.class_map, args.cube, settings.products, args.out_dir) as class_map:
        scene = products.read_scene(class_map, class_map.with_name(args.probability.name), classes)
        sieved = polygons.without_specks(scene.code, smallest)
        with store.writing_together(args.out_dir) as out:
            written = products.write_products(scene, class_map, sieved, out)
    log.info("%s: wrote %s to %s", scene.name, ", ".join(path.name for path in written), args.out_dir)
    lost = set(np.unique(scene.code)) - set(np.unique(sieved))
    if lost:
        names = ", ".join(str(item["name"]) for item in classes if item["code"] in lost)
        log.info("%s: no polygon of %s: no patch of products.min_polygon_pixels (%d)", scene.name, names, smallest)
