"""One entrance to the products of all scenes: a STAC collection, and a QGIS project with everything in its style."""

import argparse
import json
import logging
from pathlib import Path
from typing import Any

from gibbsite import qgis_project, stac, store
from gibbsite.errors import InputError
from gibbsite.settings import Settings

log = logging.getLogger(__name__)

PROJECT = "gibbsite.qgs"
"""Name of the QGIS project."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this step's flags."""
    parser.add_argument(
        "--items", type=Path, nargs="+", required=True, metavar="S_item.json", help="catalogue items made by `products`"
    )
    parser.add_argument(
        "--out-dir",
        type=Path,
        required=True,
        help=f"folder of the items, which receives {stac.COLLECTION} and {PROJECT}",
    )


def run(args: argparse.Namespace, settings: Settings) -> None:  # noqa: ARG001 - every step has this shape
    """Write the collection and the project."""
    items = {path.name: read_item(path) for path in args.items}
    for path in args.items:
        if path.resolve().parent != args.out_dir.resolve():
            raise InputError(f"{path}: not in {args.out_dir}; links are relative, so give the folder of the items")
    project = qgis_project.project(list(items.values()), args.out_dir, "gibbsite")
    with store.writing_together(args.out_dir) as out:
        store.write_json(out / stac.COLLECTION, stac.collection(items))
        store.write_text(out / PROJECT, project)
    log.info("wrote %s and %s of %d scenes to %s", stac.COLLECTION, PROJECT, len(items), args.out_dir)


def read_item(path: Path) -> dict[str, Any]:
    """The item at `path`; InputError when it is none of `products`."""
    try:
        item = json.loads(path.read_text(encoding="utf-8"))
        known = item["type"] == "Feature" and {"class", "polygons"} <= set(item["assets"])
    except OSError as error:
        why = "no such file" if not path.exists() else error.strerror
        raise InputError(f"{path}: cannot read the item ({why}); run products first") from None
    except (ValueError, TypeError, KeyError):
        known = False
    if not known:
        raise InputError(f"{path}: not a catalogue item of products; run products anew")
    return dict(item)
