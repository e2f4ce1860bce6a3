"""Class polygons of a scene: the outlines of its patches, drawn a batch at a time."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import shapely
from numpy.typing import NDArray
from rasterio import features

from gibbsite.ground import coordinates
from gibbsite.patches import Patches
from gibbsite.rows import BLOCK, write_plain
from gibbsite.scene import Grid
from gibbsite.zones import Sizes

BATCH_PATCHES = 20_000
"""At most about so many polygons are held at once, a few hundred megabytes."""


def frames(
    patches: Patches, sizes: Sizes, grid: Grid, classes: Sequence[Mapping[str, Any]], folder: Path
) -> Iterator[gpd.GeoDataFrame]:
    """Tables with one row per patch: code, name, is_known, n_pixels, area_m2, mean_probability and its polygon.

    Patches come by the row in which they begin. The first table is there, though empty, when there is no patch at all.
    `folder` takes what is kept on disk meanwhile.
    """
    by_code = {int(item["code"]): item for item in classes}
    crs = coordinates(grid)[1]
    for index, polygons in outlines(patches, grid, folder):
        code = patches.code[index]
        columns = {
            "code": code.astype(np.int64),
            "name": [str(by_code[value]["name"]) for value in code.tolist()],
            "is_known": np.array([by_code[value]["is_known"] for value in code.tolist()], dtype=bool),
            "n_pixels": sizes.n_pixels[index],
            "area_m2": sizes.area[index],
            "mean_probability": sizes.mean_probability[index],
        }
        yield gpd.GeoDataFrame(columns, geometry=polygons, crs=crs)


def outlines(patches: Patches, grid: Grid, folder: Path) -> Iterator[tuple[NDArray[np.int64], NDArray[np.object_]]]:
    """Positions (from 0) and polygons of some patches at a time, in the coordinates of `ground.coordinates`."""
    place, _ = coordinates(grid)
    order = np.argsort(patches.first, kind="stable")
    for batch in np.array_split(order, max(1, -(-len(order) // BATCH_PATCHES))):
        if not len(batch):
            yield batch, np.zeros(0, dtype=object)
            continue
        top = int(patches.first[batch].min())
        polygons = _trace(patches, batch, folder)
        if grid.transform is None:
            # A straight side in pixels is bent on the ground, and neighbours must bend at the same points.
            polygons = shapely.segmentize(polygons, 1.0)
        yield batch, shapely.transform(polygons, lambda p, top=top: np.stack(place(p[:, 0], p[:, 1] + top), axis=-1))


def _trace(patches: Patches, batch: NDArray[np.int64], folder: Path) -> NDArray[np.object_]:
    """Polygons of the patches of a batch, in pixels from the first row of any of them."""
    top, bottom = int(patches.first[batch].min()), int(patches.last[batch].max()) + 1
    is_drawn = np.zeros(len(patches.code) + 1, bool)
    is_drawn[batch + 1] = True
    window = [slice(start, min(start + BLOCK, bottom)) for start in range(top, bottom, BLOCK)]
    width = patches.number.shape[1]
    number = write_plain(folder / "numbers", (patches.number[rows] for rows in window), width, "int32")
    mask = write_plain(
        folder / "drawn", (is_drawn[number[slice(r.start - top, r.stop - top)]] for r in window), width, "uint8"
    )
    with number.band() as numbers, mask.band() as drawn:
        found = features.shapes(numbers, mask=drawn, connectivity=4)
        by_patch = {int(value) - 1: shapely.geometry.shape(geometry) for geometry, value in found}
    return np.array([by_patch[index] for index in batch.tolist()], dtype=object)
