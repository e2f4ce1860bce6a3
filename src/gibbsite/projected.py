"""The layers of a scene's map on a common map of Mars, for as long as they are published from there."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from gibbsite import raster, store
from gibbsite.errors import InputError
from gibbsite.projection import Projection, project_map, project_scan
from gibbsite.rows import blocks_of
from gibbsite.scene import Grid
from gibbsite.settings import Products


@contextmanager
def on_common_map(class_map: Path, cube: Path, settings: Products, folder: Path) -> Iterator[Path]:
    """The class map `S_class.tif` to publish, its layers beside it, on the map that `products.crs` asks for.

    With `scene` it is the given one, untouched. Else all layers are laid on the common map, in a folder inside `folder`
    that is gone when the block ends.
    """
    if settings.crs == "scene":
        yield class_map
        return
    grid = raster.read_grid(class_map)
    laid = project(grid, cube, settings)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".map.", suffix=f".{os.getpid()}.part", dir=folder) as part:
        for layer in _layers_beside(class_map):
            values, empty = raster.read_band(layer), raster.no_data(layer)
            if values.shape != (grid.height, grid.width):
                raise InputError(
                    f"{layer}: found {values.shape[0]} × {values.shape[1]} pixels, {class_map.name} has "
                    f"{grid.height} × {grid.width}; map the scene anew"
                )
            raster.write_like(Path(part) / layer.name, layer, laid.grid, on_map(laid, values, empty))
        yield Path(part) / class_map.name


def on_map(laid: Projection, values: NDArray[Any], empty: float) -> raster.Blocks:
    """A layer of the scene on the common map, some rows at a time."""
    return ((rows.start, laid.onto(values, empty, rows)) for rows in blocks_of(laid.grid.height))


def project(grid: Grid, cube: Path, settings: Products) -> Projection:
    """The scene of the grid on the common map; in sensor space its cube knows where each pixel lies."""
    assert settings.crs != "scene"
    if grid.transform is not None:
        return project_map(grid, settings.crs, settings.resolution)
    group = store.read(cube, "cube")
    if "latitude" not in group:
        raise InputError(
            f"{cube}: no latitudes and longitudes, so no map in products.crs {settings.crs}; ingest the scene with its "
            "DDR, or set products.crs: scene"
        )
    longitude, latitude = group["longitude"][...], group["latitude"][...]
    if longitude.shape != (grid.height, grid.width):
        raise InputError(
            f"{cube}: {longitude.shape} pixels, not {(grid.height, grid.width)} as the map; give its own cube"
        )
    return project_scan(longitude, latitude, settings.crs, settings.resolution)


def _layers_beside(class_map: Path) -> list[Path]:
    """All layers S_<layer>.tif of the scene; S_1_class.tif belongs to the scene S_1, so layers have no underscore."""
    scene = class_map.stem.removesuffix("class")
    return [path for path in sorted(class_map.parent.glob(f"{scene}*.tif")) if "_" not in path.stem[len(scene) :]]
