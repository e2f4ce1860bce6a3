"""Scenes that are mapped, as the steps after the map take them: cubes and class maps, pair by pair."""

import argparse
from pathlib import Path

import xarray as xr

from gibbsite import raster
from gibbsite.errors import InputError
from gibbsite.scene import open_cube


def add_arguments(parser: argparse.ArgumentParser, beside: str = "") -> None:
    """Add the flags that name the pairs; `beside` tells what else is taken from beside a map."""
    parser.add_argument(
        "--cubes", type=Path, nargs="+", required=True, metavar="CUBE.zarr", help="cubes of the ingest step"
    )
    parser.add_argument(
        "--maps",
        type=Path,
        nargs="+",
        required=True,
        metavar="S_class.tif",
        help=f"class maps of the same scenes, in the same order{beside}",
    )


def pairs(args: argparse.Namespace) -> list[tuple[Path, Path]]:
    """Cube and class map of each scene."""
    if len(args.cubes) != len(args.maps):
        raise InputError(f"found {len(args.cubes)} cubes and {len(args.maps)} class maps; give one map per cube")
    return list(zip(args.cubes, args.maps, strict=True))


def open_pair(cube_path: Path, map_path: Path) -> tuple[xr.Dataset, raster.Stored]:
    """The cube and the class map of a scene, both left on disk."""
    cube, class_map = open_cube(cube_path), raster.stored(map_path)
    if class_map.shape != cube["valid"].shape:
        raise InputError(
            f"{map_path}: found {class_map.shape[0]} × {class_map.shape[1]} pixels, the cube {cube_path.name} has "
            f"{cube.sizes['y']} × {cube.sizes['x']}; give cubes and maps in the same order"
        )
    return cube, class_map
