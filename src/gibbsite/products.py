"""What is published beside a scene's maps: polygons, cloud-optimised class map with style, class table."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rasterio.shutil
from numpy.typing import NDArray
from rasterio.io import MemoryFile

from gibbsite import polygons, qgis, raster, store
from gibbsite.errors import InputError
from gibbsite.ground import Floats, pixel_areas
from gibbsite.scene import Grid
from gibbsite.spectra import positions_of

TABLE_COLUMNS = (
    "code",
    "name",
    "is_known",
    "colour",
    "n_pixels",
    "share",
    "area_m2",
    "mean_probability",
    "n_polygons",
    "n_speck_pixels",
)

Classes = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class MappedScene:
    """A scene's class map with what the products need beside it."""

    name: str
    """Of the scene."""
    grid: Grid
    """Where its pixels lie."""
    code: NDArray[np.uint16]
    """Class code, 0 for none, (height, width)."""
    probability: Floats
    """Of the class, NaN where there is none, (height, width)."""
    classes: Classes
    """As in the model."""


def scene_name(class_map: Path) -> str:
    """The scene that a class map `S_class.tif` shows: S."""
    return class_map.stem.removesuffix("_class")


def read_scene(class_map: Path, probability: Path, classes: Classes) -> MappedScene:
    """The mapped scene, with map, probability and model checked against each other."""
    code, chance = raster.read_band(class_map), raster.read_band(probability)
    if code.shape != chance.shape:
        raise InputError(
            f"{probability}: found {chance.shape[0]} × {chance.shape[1]} pixels, the class map has "
            f"{code.shape[0]} × {code.shape[1]}; give both layers of one scene"
        )
    positions_of(np.unique(code), classes, str(class_map))
    return MappedScene(scene_name(class_map), raster.read_grid(class_map), code, chance, classes)


def write_products(scene: MappedScene, class_map: Path, sieved: NDArray[np.uint16], folder: Path) -> list[Path]:
    """Write all products of a scene and return their paths; polygons are those of the `sieved` class map."""
    area = pixel_areas(scene.grid)
    patch, code_of_patch = polygons.label_patches(sieved)
    layers = {"area": area, "probability": scene.probability}
    frame = polygons.class_polygons(patch, code_of_patch, layers, scene.grid, scene.classes)
    contents = {
        f"{scene.name}_classes.gpkg": polygons.geopackage(frame),
        f"{scene.name}_class.tif": cloud_optimised(class_map),
        f"{scene.name}_class.qml": qgis.class_map_style(scene.classes).encode(),
        f"{scene.name}_classes.csv": class_table(scene, area, sieved, code_of_patch).encode(),
    }
    for name, content in contents.items():
        with store.writing(folder / name) as part:
            part.write_bytes(content)
    return [folder / name for name in contents]


def cloud_optimised(class_map: Path) -> bytes:
    """The class map as bytes of a Cloud-Optimized GeoTIFF: same pixels and palette, overviews by mode.

    GDAL's own driver does it, since a detour over a warped view would lay sensor-space scenes on a map.
    """
    with MemoryFile(ext=".tif") as packed:
        with raster.open_raster(class_map) as source:
            rasterio.shutil.copy(
                source,
                packed.name,
                driver="COG",
                compress="DEFLATE",
                blocksize=raster.TILE,
                overview_resampling="MODE",
            )
        return bytes(packed.getbuffer())


def class_table(scene: MappedScene, area: Floats, sieved: NDArray[np.uint16], code_of_patch: NDArray[np.int64]) -> str:
    """The classes of one scene as CSV, absent ones too; sizes are of the map before specks are merged.

    `n_speck_pixels` are those that lie in polygons of other classes, because their own patch is too small for one.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(TABLE_COLUMNS)
    n_mapped = max(1, int((scene.code > 0).sum()))
    for item in scene.classes:
        is_here = scene.code == item["code"]
        n_pixels = int(is_here.sum())
        chance = scene.probability[is_here & np.isfinite(scene.probability)].astype(np.float64)
        size = float(area[is_here].sum())
        writer.writerow(
            (
                item["code"],
                item["name"],
                str(bool(item["is_known"])).lower(),
                item["colour"],
                n_pixels,
                f"{n_pixels / n_mapped:.6f}",
                f"{size:.1f}" if np.isfinite(size) else "",
                f"{chance.mean():.4f}" if chance.size else "",
                int((code_of_patch == item["code"]).sum()),
                int((is_here & (sieved != item["code"])).sum()),
            )
        )
    return text.getvalue()
