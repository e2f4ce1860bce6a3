"""The files themselves: images written block of lines by block of lines, class rasters, label polygons."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import geopandas as gpd
import numpy as np
import pyogrio
from affine import Affine
from numpy.typing import NDArray
from rasterio.control import GroundControlPoint
from rasterio.io import MemoryFile
from rasterio.windows import Window
from shapely.geometry import Polygon

from gibbsite.simulate.detector import Detector
from gibbsite.simulate.fields import Floats
from gibbsite.simulate.geometry import Geometry, MapGrid
from gibbsite.simulate.keywords import Image
from gibbsite.simulate.terrain import CLASSES
from gibbsite.simulate.training import Outline

LONGITUDE_LATITUDE = "IAU_2015:49900"
"""Mars, planetocentric longitude and latitude on a sphere, degrees."""


@dataclass(frozen=True)
class BandSequentialFile:
    """An image stored band after band, into which blocks of lines are written in any order."""

    file: BinaryIO
    """Open for writing."""
    image: Image
    """Its layout."""

    def write(self, line: int, block: NDArray[np.float32]) -> None:
        """Put a block (n_bands, n_lines, n_samples) in its place, from this line on."""
        # Plain writes, not a memory map: a full disk then is an error to report, not a crash.
        for band, part in enumerate(block):
            self.file.seek((band * self.image.lines + line) * self.image.record_bytes)
            self.file.write(np.ascontiguousarray(part, dtype="<f4").tobytes())


def write_label(path: Path, text: str) -> None:
    """Write a label: ASCII, lines ended by CR and LF."""
    path.write_bytes(text.replace("\n", "\r\n").encode("ascii"))


def write_lines(file: BinaryIO, block: Floats) -> None:
    """Append lines (n_lines, n_bands, n_samples) of a line-interleaved image."""
    file.write(np.ascontiguousarray(block, dtype="<f4").tobytes())


def write_rows(file: BinaryIO, image: Image, detector: Detector, padding: bytes) -> None:
    """Append the table of detector rows, big-endian, padded to a whole record."""
    table = np.array(detector.row, dtype=">u2").tobytes()
    n_bytes = (image.file_records - image.image_records) * image.record_bytes
    file.write(table.ljust(n_bytes, padding))


@contextmanager
def sensor_raster(path: Path, geometry: Geometry) -> Iterator[Any]:
    """A class raster on the sensor's grid, tied to longitude and latitude by ground control points."""
    lines, samples = (np.linspace(0, n - 1, 5).round() for n in (geometry.lines, geometry.samples))
    points = []
    for line in lines:
        longitude, latitude = geometry.lonlat(*geometry.ground(np.full(5, line), samples))
        for sample, x, y in zip(samples, longitude, latitude, strict=True):
            points.append(GroundControlPoint(row=line + 0.5, col=sample + 0.5, x=float(x), y=float(y)))
    place = {"crs": LONGITUDE_LATITUDE, "gcps": points}
    with _class_raster(path, geometry.lines, geometry.samples, place) as raster:
        yield raster


@contextmanager
def map_raster(path: Path, grid: MapGrid, coordinates: Any) -> Iterator[Any]:
    """A class raster on the map's grid."""
    place = {"crs": coordinates, "transform": grid_transform(grid, 0)}
    with _class_raster(path, grid.height, grid.width, place) as raster:
        yield raster


def grid_transform(grid: MapGrid, row: int) -> Affine:
    """Pixel corners to map coordinates, rows counted from this one."""
    pixel = grid.geometry.pixel
    return Affine(pixel, 0.0, grid.left, 0.0, -pixel, grid.top - row * pixel)


def write_window(raster: Any, line: int, block: NDArray[np.uint8]) -> None:
    """Put a block of whole lines in its place."""
    raster.write(block, 1, window=Window(0, line, block.shape[1], block.shape[0]))


def corners(outline: Outline, geometry: Geometry) -> tuple[Floats, Floats]:
    """Longitude and latitude of a polygon's corners."""
    return geometry.lonlat(*geometry.ground(outline.line, outline.sample))


def write_polygons(path: Path, outlines: Sequence[Outline], geometry: Geometry) -> None:
    """Write the label polygons as a GeoPackage with the field `class`."""
    shapes = [Polygon(np.stack(corners(outline, geometry), axis=1)) for outline in outlines]
    names = [CLASSES[outline.code - 1].name for outline in outlines]
    frame = gpd.GeoDataFrame({"class": names}, geometry=shapes, crs=LONGITUDE_LATITUDE)
    packed = io.BytesIO()
    date = pyogrio.get_gdal_config_option("OGR_CURRENT_DATE")
    try:
        # The date of the last change would make every file different.
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": "2008-03-07T00:00:00Z"})
        # In memory first: of a full disk, SQLite tells in thousands of words.
        frame.to_file(packed, driver="GPKG", layer="labels", engine="pyogrio")
    finally:
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": date})
    path.write_bytes(packed.getvalue())


@contextmanager
def _class_raster(path: Path, height: int, width: int, place: dict[str, Any]) -> Iterator[Any]:
    layout = {"driver": "GTiff", "count": 1, "dtype": "uint8", "nodata": 0, "compress": "deflate"}
    # Packed in memory, which it hardly needs: GDAL tells of a full disk on stderr, in many lines.
    with MemoryFile() as packed:
        with packed.open(height=height, width=width, **layout, **place) as raster:
            raster.update_tags(**{f"CLASS_{code}": item.name for code, item in enumerate(CLASSES, 1)})
            yield raster
        path.write_bytes(packed.getbuffer())
