"""Single-band GeoTIFFs on a scene's own grid: class maps with colours and names, and certainty layers.

Rows come in as blocks of any height and are packed one row of tiles at a time, so the bytes of a file depend
neither on the block height nor on GDAL's cache, and memory holds one row of tiles and the compressed file (at
most 4 bytes per pixel). It is packed in memory because GDAL tells of a full disk on stderr, in many lines.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyproj
import rasterio
from numpy.typing import NDArray
from rasterio.control import GroundControlPoint
from rasterio.crs import CRS
from rasterio.enums import ColorInterp
from rasterio.errors import CRSError, NotGeoreferencedWarning, RasterioIOError
from rasterio.io import MemoryFile
from rasterio.transform import Affine
from rasterio.windows import Window

from gibbsite import store
from gibbsite.errors import InputError, OutputError
from gibbsite.scene import Grid, GroundPoint, Transform

TILE = 256
"""Pixels on a side of the tiles of all rasters."""

NO_CLASS = 0
"""Value of a class map where there is no class."""

Blocks = Iterable[tuple[int, NDArray[Any]]]
"""(first row, values (rows, width)), from the top down without gaps."""

ClassFacts = Mapping[str, Any]
"""One entry of the model's `classes`, of which code, name and colour are needed here."""


def write_class_map(
    path: Path, grid: Grid, classes: Sequence[ClassFacts], blocks: Blocks, description: str = "class"
) -> None:
    """Write a uint16 map of class codes, 0 for none, with colour table and names (tags CLASS_<code>)."""
    colours = {NO_CLASS: (0, 0, 0, 0)} | {int(item["code"]): rgba(item["colour"]) for item in classes}
    with _packing(path, grid, dtype="uint16", nodata=NO_CLASS) as raster:
        raster.write_colormap(1, colours)
        raster.set_band_description(1, description)
        raster.update_tags(**{f"CLASS_{item['code']}": item["name"] for item in classes})
        _write_rows(raster, blocks, path)


def write_layer(path: Path, grid: Grid, blocks: Blocks, description: str) -> None:
    """Write a float32 layer, NaN where there is no value; `description` names the band in a GIS."""
    with _packing(path, grid, dtype="float32", nodata=float("nan"), predictor=3) as raster:
        raster.set_band_description(1, description)
        _write_rows(raster, blocks, path)


def write_like(path: Path, like: Path, grid: Grid, blocks: Blocks) -> None:
    """Write rows on another grid with the number type, no-data value, colours, name and tags of the raster `like`."""
    with open_raster(like) as source:
        profile = {"dtype": source.dtypes[0], "nodata": source.nodata}
        colours = source.colormap(1) if source.colorinterp[0] == ColorInterp.palette else None
        name, tags = source.descriptions[0], source.tags()
    tags.pop("AREA_OR_POINT", None)
    with _packing(path, grid, **profile, predictor=3 if profile["dtype"] == "float32" else 1) as raster:
        if colours is not None:
            raster.write_colormap(1, colours)
        if name:
            raster.set_band_description(1, name)
        raster.update_tags(**tags)
        _write_rows(raster, blocks, path)


def no_data(path: Path) -> float:
    """What the raster holds where it has no value; 0 when it does not say."""
    with open_raster(path) as raster:
        return 0.0 if raster.nodata is None else float(raster.nodata)


@contextmanager
def open_raster(path: Path, expected: str = "a GeoTIFF") -> Iterator[Any]:
    """The raster opened for reading; InputError, with what was `expected`, when it cannot be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        try:
            raster = rasterio.open(path)
        except RasterioIOError as error:
            found = "not a raster that GDAL reads" if path.exists() else "no such file"
            raise InputError(f"{path}: {found}; expected {expected} ({error})") from None
    with raster:
        yield raster


def read_rows(raster: Any, start: int, stop: int, band: int = 1) -> NDArray[Any]:
    """Rows start..stop-1 of a band, (rows, width); InputError when the file is broken there."""
    try:
        rows: NDArray[Any] = raster.read(band, window=Window(0, start, raster.width, stop - start))
    except RasterioIOError as error:
        raise InputError(f"{raster.name}: cannot read rows {start} to {stop - 1} ({error}); make it anew") from None
    return rows


@dataclass(frozen=True)
class Stored:
    """The first band of a raster on disk, of which some rows are read at a time."""

    path: Path
    shape: tuple[int, int]

    def __getitem__(self, rows: slice, /) -> NDArray[Any]:
        start, stop, _ = rows.indices(self.shape[0])
        with open_raster(self.path) as raster:
            return read_rows(raster, start, stop)


def stored(path: Path) -> Stored:
    """The first band of the raster at `path`, left there."""
    with open_raster(path) as raster:
        return Stored(path, (raster.height, raster.width))


def row_blocks(path: Path) -> Iterator[tuple[int, NDArray[Any]]]:
    """First row and values (rows, width) of the first band, one row of tiles at a time."""
    with open_raster(path) as raster:
        for start in range(0, raster.height, TILE):
            yield start, read_rows(raster, start, min(start + TILE, raster.height))


def read_band(path: Path) -> NDArray[Any]:
    """The whole first band, (height, width)."""
    with open_raster(path) as raster:
        return read_rows(raster, 0, raster.height)


def files(path: Path, expected: str) -> list[Path]:
    """The files a raster consists of, itself first; InputError, with what was `expected`, when it is none."""
    with open_raster(path, expected) as raster:
        return [Path(name) for name in raster.files]


def read_grid(path: Path) -> Grid:
    """The grid of a raster."""
    with open_raster(path) as raster:
        points, points_crs = raster.gcps
        crs = points_crs if points else raster.crs
        places = [(p.x, p.y) for p in points]
        if crs is not None and points and crs.is_projected:
            # Ground points are longitude and latitude wherever they are used.
            degrees = pyproj.CRS.from_wkt(crs.to_wkt()).geodetic_crs
            assert degrees is not None, "a projection is of something"
            move = pyproj.Transformer.from_crs(crs.to_wkt(), degrees, always_xy=True)
            places = [move.transform(x, y) for x, y in places]
            crs = CRS.from_wkt(degrees.to_wkt())
        has_map = not points and raster.transform != Affine.identity()
        return Grid(
            height=raster.height,
            width=raster.width,
            crs=crs.to_wkt() if crs else None,
            transform=tuple(raster.transform)[:6] if has_map else None,
            ground_points=tuple((p.row - 0.5, p.col - 0.5, x, y) for p, (x, y) in zip(points, places, strict=True)),
        )


def class_names(path: Path) -> dict[int, str]:
    """Class code -> name, rising, from the tags CLASS_<code>."""
    with open_raster(path) as raster:
        tags = raster.tags()
    codes = {key.removeprefix("CLASS_"): name for key, name in tags.items() if key.startswith("CLASS_")}
    return {int(code): codes[code] for code in sorted((c for c in codes if c.isdecimal()), key=int)}


def rgba(colour: str) -> tuple[int, int, int, int]:
    """Red, green, blue, opacity (0 to 255) of `#rrggbb`."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16), 255


def crs_of(grid: Grid) -> CRS | None:
    """The grid's coordinate system as rasterio takes it."""
    if grid.crs is None:
        return None
    try:
        return CRS.from_wkt(grid.crs)
    except CRSError as error:
        raise InputError(f"the scene's coordinate system is not valid WKT ({error}); ingest the scene anew") from None


def affine(transform: Transform) -> Affine:
    """The grid's transform as rasterio takes it."""
    return Affine(*transform)


def control_points(points: Sequence[GroundPoint]) -> list[GroundControlPoint]:
    """Ground points (row, col, x, y) as rasterio takes them."""
    return [
        # GDAL counts from the corner of the first pixel, ground points name pixels.
        GroundControlPoint(row=row + 0.5, col=col + 0.5, x=x, y=y, id=str(index))
        for index, (row, col, x, y) in enumerate(points, start=1)
    ]


@contextmanager
def _packing(path: Path, grid: Grid, **profile: Any) -> Iterator[Any]:
    """A raster on the grid to write to; its file appears at `path` when the block ends without an error."""
    layout = {
        "tiled": True,
        "blockxsize": TILE,
        "blockysize": TILE,
        "compress": "deflate",
        "bigtiff": "if_safer",
    }
    place: dict[str, Any] = {"crs": crs_of(grid)}
    if grid.transform is not None:
        place["transform"] = affine(grid.transform)
    elif grid.ground_points:
        place["gcps"] = control_points(grid.ground_points)
    with MemoryFile() as packed:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotGeoreferencedWarning)
            raster = packed.open(
                driver="GTiff", count=1, height=grid.height, width=grid.width, **layout, **place, **profile
            )
        with raster:
            yield raster
        with store.writing(path) as part:
            part.write_bytes(packed.getbuffer())


def _write_rows(raster: Any, blocks: Blocks, path: Path) -> None:
    """Write blocks of any height as whole rows of tiles."""
    n_written = 0
    for rows in _tile_rows(blocks, raster.shape, path):
        values = np.ascontiguousarray(rows, dtype=raster.dtypes[0])
        raster.write(values, 1, window=Window(0, n_written, raster.width, len(values)))
        n_written += len(values)


def _tile_rows(blocks: Blocks, shape: tuple[int, int], path: Path) -> Iterator[NDArray[Any]]:
    """The blocks' rows, TILE at a time; OutputError unless they follow each other and fill the grid."""
    height, width = shape
    held: list[NDArray[Any]] = []
    n_held = n_seen = 0
    for start, block in blocks:
        if start != n_seen or block.ndim != 2 or block.shape[1] != width:
            raise OutputError(
                f"{path}: found a block {block.shape} at row {start}, expected (rows, {width}) at row {n_seen}"
            )
        held.append(block)
        n_seen, n_held = n_seen + len(block), n_held + len(block)
        if n_held >= TILE:
            rows = np.concatenate(held)
            n_whole = n_held - n_held % TILE
            yield from np.split(rows[:n_whole], n_whole // TILE)
            held, n_held = [rows[n_whole:]], n_held % TILE
    if n_seen != height:
        raise OutputError(f"{path}: found {n_seen} rows to write, expected the scene's {height}")
    if n_held:
        yield np.concatenate(held)
