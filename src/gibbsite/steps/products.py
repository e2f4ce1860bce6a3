"""Files for a GIS and for people: cloud-optimised maps with styles, polygons, class table, catalogue item."""

import argparse
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gibbsite import class_layers, class_table, patches, products, projected, raster, store
from gibbsite.rows import Rows, blocks_of
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
    parser.add_argument("--cube", type=Path, required=True, help="cube of the scene (place, time, checksums)")
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
    with projected.on_common_map(args.class_map, args.cube, settings.products, args.out_dir) as class_map:
        scene = products.read_scene(class_map, args.model, args.cube)
        meaning = class_table.read_interpretation(args.interpretation, scene.classes) if args.interpretation else {}
        with store.writing_together(args.out_dir) as out:
            assets = products.write_layers(scene, out)
            with tempfile.TemporaryDirectory(dir=out) as scratch:
                sieved = patches.without_specks(scene.code, settings.products.min_polygon_pixels, Path(scratch))
                assets |= products.write_rest(scene, sieved, meaning, out, Path(scratch))
                _tell_lost(scene, sieved, settings.products.min_polygon_pixels)
            if args.class_probabilities:
                each_class = _class_layers(args, settings, scene)
                assets |= products.write_class_layers(scene, each_class, out / f"{scene.name}_probabilities")
            store.write_json(out / f"{scene.name}_item.json", products.catalogue_item(scene, assets))
    log.info("%s: wrote %d files to %s", scene.name, len(assets) + 1, args.out_dir)


def _class_layers(
    args: argparse.Namespace, settings: Settings, scene: products.MappedScene
) -> Callable[[int], raster.Blocks]:
    """A function from the code of a class to its probability on the grid of the products, some rows at a time."""
    grid = raster.read_grid(args.class_map)
    shape = grid.height, grid.width
    group = store.read(args.class_probabilities, "probabilities")
    class_layers.check(group, args.class_probabilities, scene.name, len(scene.classes), shape)
    layer = class_layers.layers(group, shape)
    if settings.products.crs == "scene":
        return lambda code: ((rows.start, layer(code)[rows]) for rows in blocks_of(grid.height))
    laid = projected.project(grid, args.cube, settings.products)
    return lambda code: projected.on_map(laid, layer(code)[:], np.nan)


def _tell_lost(scene: products.MappedScene, sieved: Rows, smallest: int) -> None:
    """Name the classes that have no polygon because all their patches are too small."""
    lost = set(products.codes_of(scene.code)) - set(products.codes_of(sieved))
    if lost:
        names = ", ".join(str(item["name"]) for item in scene.classes if item["code"] in lost)
        log.info("%s: no polygon of %s: no patch of products.min_polygon_pixels (%d)", scene.name, names, smallest)
