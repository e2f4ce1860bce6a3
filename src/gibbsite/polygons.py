"""Class polygons of a scene: patches of one class, without the specks, drawn a batch at a time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import geopandas as gpd
import numpy as np
import shapely
from numpy.typing import NDArray
from rasterio import features
from scipy import ndimage

from gibbsite.ground import Floats, coordinates, pixel_areas
from gibbsite.scene import Grid

BATCH_PATCHES = 20_000
"""At most about so many polygons are held at once, a few hundred megabytes."""


def without_specks(code: NDArray[np.uint16], min_pixels: int) -> NDArray[np.uint16]:
    """The class map with smaller patches merged into their largest neighbour, missing pixels untouched.

    A speck with only specks or missing pixels around it stays. Passes repeat until nothing changes, since a
    merged patch may be large enough to take in its neighbours.
    """
    if min_pixels <= 1:
        return code
    while True:
        sieved: NDArray[np.uint16] = features.sieve(code, size=min_pixels, mask=code > 0, connectivity=4)
        if np.array_equal(sieved, code):
            return code
        code = sieved


@dataclass(frozen=True, eq=False)
class Patches:
    """Connected pixels of one class (they share a side), numbered by class and place."""

    number: NDArray[np.int32]
    """Patch of each pixel, 1 .. n_patches, 0 for none, (height, width)."""
    code: NDArray[np.uint16]
    """Class of each patch, (n_patches)."""
    n_pixels: NDArray[np.int64]
    """(n_patches)."""
    area: Floats
    """m² on the planet's surface, NaN without a reference, (n_patches)."""
    mean_probability: Floats
    """Over pixels that have one, NaN when none has, (n_patches)."""


def find_patches(code: NDArray[np.uint16], probability: NDArray[np.floating], grid: Grid) -> Patches:
    """The patches of a class map, measured block by block."""
    number, code_of = label_patches(code)
    n = len(code_of) + 1
    n_pixels, n_values = np.zeros(n, np.int64), np.zeros(n, np.int64)
    area, total = np.zeros(n), np.zeros(n)
    for rows, size in pixel_areas(grid):
        index, chance = number[rows].ravel(), probability[rows].ravel()
        has_value = np.isfinite(chance)
        n_pixels += np.bincount(index, minlength=n)
        area += np.bincount(index, size.ravel(), n)
        n_values += np.bincount(index[has_value], minlength=n)
        total += np.bincount(index[has_value], chance[has_value].astype(np.float64), n)
    mean = np.divide(total, n_values, out=np.full(n, np.nan), where=n_values > 0)
    return Patches(number, code_of, n_pixels[1:], area[1:], mean[1:])


def label_patches(code: NDArray[np.uint16]) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
    """Patch of each pixel, 1 .. n_patches (0 for none), and the class code of each patch, by class and place."""
    patch = np.zeros(code.shape, dtype=np.int32)
    code_of_patch: list[NDArray[np.uint16]] = []
    n_found = 0
    for value, place in enumerate(ndimage.find_objects(code), start=1):
        if place is None:
            continue
        of_class, n_patches = ndimage.label(code[place] == value)
        is_here = of_class > 0
        patch[place][is_here] = of_class[is_here] + n_found
        code_of_patch.append(np.full(n_patches, value, np.uint16))
        n_found += n_patches
    return patch, np.concatenate([np.zeros(0, np.uint16), *code_of_patch])


def frames(patches: Patches, grid: Grid, classes: Sequence[Mapping[str, Any]]) -> Iterator[gpd.GeoDataFrame]:
    """Tables with one row per patch: code, name, is_known, n_pixels, area_m2, mean_probability and its polygon.

    Patches come by the row in which they begin. The first table is there, though empty, when there is no patch at all.
    """
    by_code = {int(item["code"]): item for item in classes}
    crs = coordinates(grid)[1]
    for index, polygons in outlines(patches.number, len(patches.code), grid):
        code = patches.code[index]
        columns = {
            "code": code.astype(np.int64),
            "name": [str(by_code[value]["name"]) for value in code.tolist()],
            "is_known": np.array([by_code[value]["is_known"] for value in code.tolist()], dtype=bool),
            "n_pixels": patches.n_pixels[index],
            "area_m2": patches.area[index],
            "mean_probability": patches.mean_probability[index],
        }
        yield gpd.GeoDataFrame(columns, geometry=polygons, crs=crs)


def outlines(
    number: NDArray[np.int32], n_patches: int, grid: Grid
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.object_]]]:
    """Positions (from 0) and polygons of some patches at a time, in the coordinates of `ground.coordinates`."""
    place, _ = coordinates(grid)
    first, last = _row_spans(number, n_patches)
    order = np.argsort(first, kind="stable")
    for batch in np.array_split(order, max(1, -(-n_patches // BATCH_PATCHES))):
        if not len(batch):
            yield batch, np.zeros(0, dtype=object)
            continue
        top, bottom = int(first[batch].min()), int(last[batch].max()) + 1
        window = number[top:bottom]
        is_drawn = np.zeros(n_patches + 1, bool)
        is_drawn[batch + 1] = True
        found = features.shapes(window, mask=is_drawn[window], connectivity=4)
        by_patch = {int(value) - 1: shapely.geometry.shape(geometry) for geometry, value in found}
        polygons = np.array([by_patch[index] for index in batch.tolist()], dtype=object)
        if grid.transform is None:
            # A straight side in pixels is bent on the ground, and neighbours must bend at the same points.
            polygons = shapely.segmentize(polygons, 1.0)
        yield batch, shapely.transform(polygons, lambda p, top=top: np.stack(place(p[:, 0], p[:, 1] + top), axis=-1))


def _row_spans(number: NDArray[np.int32], n_patches: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last row of each patch."""
    first, last = np.zeros(n_patches + 1, np.int64), np.zeros(n_patches + 1, np.int64)
    for row in range(len(number)):
        last[number[row]] = row
    for row in reversed(range(len(number))):
        first[number[row]] = row
    return first[1:], last[1:]
