"""Class polygons of a scene: patches of one class, without the specks, as a GeoPackage."""

import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import geopandas as gpd
import numpy as np
import pyogrio
import shapely
from numpy.typing import NDArray
from rasterio import features
from scipy import ndimage

from gibbsite.ground import Floats, locate
from gibbsite.scene import Grid

LAYER = "classes"
"""Name of the GeoPackage's layer."""

FIXED_DATE = "2000-01-01T00:00:00.000Z"
"""GeoPackage demands a date of last change; a constant one keeps reruns the same bytes."""


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


def label_patches(code: NDArray[np.uint16]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Patch of each pixel, 1 .. n_patches (0 for none), and the class code of each patch, by class and place.

    Pixels belong together when they share a side.
    """
    patch = np.zeros(code.shape, dtype=np.int32)
    code_of_patch: list[int] = []
    for value in np.unique(code[code > 0]):
        of_class, n_patches = ndimage.label(code == value)
        patch[of_class > 0] = of_class[of_class > 0] + len(code_of_patch)
        code_of_patch += [int(value)] * n_patches
    return patch, np.array(code_of_patch, dtype=np.int64)


def outline(patch: NDArray[np.int32], grid: Grid) -> NDArray[np.object_]:
    """The polygon of each patch, in patch order, in the grid's coordinates (see `ground.locate`)."""
    shapes = features.shapes(patch, mask=patch > 0, connectivity=4)
    by_patch = {int(value): shapely.geometry.shape(geometry) for geometry, value in shapes}
    polygons = np.array([by_patch[index] for index in range(1, len(by_patch) + 1)], dtype=object)
    if not len(polygons):
        return polygons
    if grid.transform is None:
        # A straight side in pixels is bent on the ground, and neighbours must bend at the same points.
        polygons = shapely.segmentize(polygons, 1.0)
    placed: NDArray[np.object_] = shapely.transform(
        polygons, lambda points: np.stack(locate(grid, points[:, 0], points[:, 1]), axis=-1)
    )
    return placed


def class_polygons(
    patch: NDArray[np.int32],
    code_of_patch: NDArray[np.int64],
    layers: Mapping[str, Floats],
    grid: Grid,
    classes: Sequence[Mapping[str, Any]],
) -> gpd.GeoDataFrame:
    """One row per patch: code, name, is_known, n_pixels, area_m2, mean_probability and its polygon.

    `layers` holds `area` (m²) and `probability` of every pixel; missing probabilities do not count.
    """
    by_code = {int(item["code"]): item for item in classes}
    index, n_patches = patch.ravel(), len(code_of_patch)
    probability = layers["probability"].ravel()
    has_value = np.isfinite(probability)
    n_values = np.bincount(index[has_value], minlength=n_patches + 1)[1:]
    total = np.bincount(index[has_value], probability[has_value].astype(np.float64), n_patches + 1)[1:]
    columns = {
        "code": code_of_patch,
        "name": [by_code[code]["name"] for code in code_of_patch.tolist()],
        "is_known": np.array([by_code[code]["is_known"] for code in code_of_patch.tolist()], dtype=bool),
        "n_pixels": np.bincount(index, minlength=n_patches + 1)[1:],
        "area_m2": np.bincount(index, layers["area"].ravel(), n_patches + 1)[1:],
        "mean_probability": np.divide(total, n_values, out=np.full(n_patches, np.nan), where=n_values > 0),
    }
    return gpd.GeoDataFrame(columns, geometry=outline(patch, grid), crs=grid.crs)


def geopackage(polygons: gpd.GeoDataFrame) -> bytes:
    """The polygons as the bytes of a GeoPackage."""
    packed = io.BytesIO()
    pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": FIXED_DATE})
    try:
        with warnings.catch_warnings():
            # A scene without any reference is written in pixels; there is nothing to mend about it here.
            warnings.filterwarnings("ignore", "'crs' was not provided", UserWarning)
            pyogrio.write_dataframe(polygons, packed, driver="GPKG", layer=LAYER, geometry_type="Polygon")
    finally:
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": None})
    return packed.getvalue()
