"""Label polygons to the known class of each pixel.

Pixel centres are brought to the coordinates of the layer, never the polygons to those of the scene: edges
stay as the user drew them, and scenes in sensor space need no other way than scenes on a map.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import geopandas
import numpy as np
import pyogrio
import shapely
import xarray as xr
from numpy.typing import NDArray
from pyogrio.errors import DataSourceError
from pyproj import CRS

from gibbsite import image, mars
from gibbsite.errors import InputError
from gibbsite.labels import NO_CLASS, KnownClasses, settle_names
from gibbsite.scene import Grid, grid_of

LINES_AT_ONCE = 256
COMPANIONS = (".dbf", ".shx", ".prj", ".cpg")
"""What may lie beside a Shapefile: attributes, index, coordinate system, encoding."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Shapes:
    """What the user drew."""

    path: Path
    """The layer's file."""
    crs: CRS
    """Its coordinate system, on Mars."""
    class_names: tuple[str, ...]
    """Sorted."""
    areas: tuple[shapely.Geometry, ...]
    """One per class, all its polygons joined."""


def is_vector(path: Path) -> bool:
    """Whether the file holds vector layers (and not a raster)."""
    if not path.exists():
        raise InputError(f"{path}: no such file; expected label polygons or a class raster")
    try:
        return len(pyogrio.list_layers(path)) > 0
    except DataSourceError:
        return False


def files(path: Path) -> list[Path]:
    """The files the polygons come from: the file, with its companions if it is a Shapefile, or all in the folder."""
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.is_file())
    others = [image.sibling(path, suffix) for suffix in COMPANIONS] if path.suffix.lower() == ".shp" else []
    return [path, *(file for file in others if file is not None)]


def read_shapes(path: Path, class_field: str) -> Shapes:
    """The polygons of the file's one layer, joined per class."""
    layer = _read_layer(path)
    if class_field not in layer.columns:
        fields = ", ".join(str(name) for name in layer.columns if name != layer.geometry.name) or "none at all"
        raise InputError(f"{path}: no field {class_field!r} (labels.class_field); its fields are {fields}")
    blank = layer[class_field].isna()
    if blank.any():
        raise InputError(
            f"{path}: found an empty class name in feature {int(np.argmax(blank)) + 1}, expected a name for "
            f"every class; fill in its field {class_field!r}"
        )
    crs = mars.coordinate_system(layer.crs, f"{path}: the layer")
    found = layer[class_field].astype(str)
    settled = settle_names(found, path)
    name_of = found.map(settled)
    class_names = tuple(sorted(settled.values()))
    areas = tuple(shapely.union_all(shapely.make_valid(layer.geometry[name_of == name].values)) for name in class_names)
    return Shapes(path, crs, class_names, areas)


def burn(shapes: Shapes, cube: xr.Dataset) -> KnownClasses:
    """The known classes of the valid pixels whose centre lies inside polygons of one class only."""
    grid = grid_of(cube)
    valid = cube["valid"].values
    known = np.full(valid.shape, NO_CLASS, np.int16)
    n_disputed = 0
    extent = np.array([np.inf, np.inf, -np.inf, -np.inf])
    for area in shapes.areas:
        shapely.prepare(area)
    for rows, x, y in _centres(shapes, cube, grid):
        n_areas = np.zeros(x.shape, np.int16)
        for index, area in enumerate(shapes.areas):
            inside = _contains(area, x, y)
            known[rows][inside] = index
            n_areas += inside
        known[rows][(n_areas != 1) | ~valid[rows]] = NO_CLASS
        n_disputed += int(((n_areas > 1) & valid[rows]).sum())
        extent = _widen(extent, x, y)
    _check_overlap(shapes, extent)
    return KnownClasses(shapes.class_names, known, n_disputed)


def _read_layer(path: Path) -> geopandas.GeoDataFrame:
    """The features with an area of the only layer that has geometries."""
    layers = [str(name) for name, geometry in pyogrio.list_layers(path) if geometry is not None]
    if len(layers) != 1:
        found = f"{len(layers)} layers with shapes ({', '.join(layers)})" if layers else "no layer with shapes"
        raise InputError(f"{path}: found {found}, expected one; save the label polygons in a file of their own")
    layer = geopandas.read_file(path, layer=layers[0])
    layer = layer[~(layer.geometry.isna() | layer.geometry.is_empty)].reset_index(drop=True)
    if layer.empty:
        raise InputError(f"{path}: empty layer {layers[0]!r}, expected polygons; draw some, or run without --shapes")
    other = sorted(set(layer.geom_type) - {"Polygon", "MultiPolygon"})
    if other:
        raise InputError(f"{path}: found {other[0]} shapes, expected polygons only; remove them or buffer them")
    return layer


def _centres(shapes: Shapes, cube: xr.Dataset, grid: Grid) -> Iterator[tuple[slice, Floats, Floats]]:
    """Some lines at a time: the lines, and x and y (lines, width) of their centres in the layer's system."""
    path = Path(str(cube.encoding.get("source", grid)))
    scene_crs = None
    if grid.transform is not None:
        scene_crs = mars.coordinate_system(grid.crs, f"{path}: the scene")
    elif "latitude" not in cube.variables or "longitude" not in cube.variables:
        raise InputError(
            f"{path}: the scene has neither a map grid nor latitudes and longitudes, so polygons cannot be "
            "placed; ingest it with its DDR, or give the labels as a raster of its pixels"
        )
    for start in range(0, grid.height, LINES_AT_ONCE):
        rows = slice(start, min(start + LINES_AT_ONCE, grid.height))
        if scene_crs is None:
            longitude, latitude = cube["longitude"][rows].values, cube["latitude"][rows].values
        else:
            x, y = _map_centres(grid, rows)
            if scene_crs.equals(shapes.crs, ignore_axis_order=True):
                yield rows, x, y
                continue
            longitude, latitude = mars.to_planetocentric(x, y, scene_crs)
        yield rows, *_in_layer(longitude, latitude, shapes)


def _map_centres(grid: Grid, rows: slice) -> tuple[Floats, Floats]:
    assert grid.transform is not None
    a, b, c, d, e, f = grid.transform
    row, col = np.mgrid[rows, 0 : grid.width] + 0.5
    return a * col + b * row + c, d * col + e * row + f


def _in_layer(longitude: Floats, latitude: Floats, shapes: Shapes) -> tuple[Floats, Floats]:
    """Coordinates in the layer's system of planetocentric longitude and latitude."""
    x, y = mars.from_planetocentric(longitude, latitude, shapes.crs)
    if shapes.crs.is_geographic:
        # The layer may count 0 to 360 where the scene counts -180 to 180: bring centres near the polygons.
        west, _, east, _ = shapely.total_bounds(shapes.areas)
        middle = (west + east) / 2
        x = middle + (x - middle + 180.0) % 360.0 - 180.0
    return x, y


def _contains(area: shapely.Geometry, x: Floats, y: Floats) -> NDArray[np.bool_]:
    """A claim per centre: it lies inside the area (not on its rim)."""
    west, south, east, north = area.bounds
    inside = (x >= west) & (x <= east) & (y >= south) & (y <= north)
    inside[inside] = shapely.contains_xy(area, x[inside], y[inside])
    return inside


def _widen(extent: Floats, x: Floats, y: Floats) -> Floats:
    """The extent (west, south, east, north), widened to hold the finite centres."""
    placed = np.isfinite(x) & np.isfinite(y)
    if not placed.any():
        return extent
    x, y = x[placed], y[placed]
    return np.array(
        [min(extent[0], x.min()), min(extent[1], y.min()), max(extent[2], x.max()), max(extent[3], y.max())]
    )


def _check_overlap(shapes: Shapes, extent: Floats) -> None:
    """Refuse polygons that lie wholly outside the scene."""
    bounds = shapely.total_bounds(shapes.areas)
    if (bounds[:2] > extent[2:]).any() or (bounds[2:] < extent[:2]).any():
        raise InputError(
            f"{shapes.path}: its polygons ({_corners(bounds)}) lie outside the scene ({_corners(extent)}); "
            "check that they belong to this scene and carry the right coordinate system"
        )


def _corners(extent: Floats) -> str:
    west, south, east, north = (f"{value:.6g}" for value in extent)
    return f"x {west} to {east}, y {south} to {north}"
