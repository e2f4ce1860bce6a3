"""Whether a raster lies on a scene's own pixels."""

from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gibbsite import mars
from gibbsite.errors import InputError
from gibbsite.scene import Grid, grid_of

SAME_PLACE = 0.01
"""Ground points of the same pixel may differ by this much, in degrees; another scene's differ by more."""
SAME_CORNER = 0.1
"""Corners of the same map grid may differ by this much, in pixels."""


def check(path: Path, found: Grid, cube: xr.Dataset) -> None:
    """Refuse a raster, with the grid found, that does not lie on the cube's pixels."""
    expected = grid_of(cube)
    if (found.height, found.width) != (expected.height, expected.width):
        raise InputError(
            f"{path}: {found.height} lines × {found.width} samples, expected the scene's {expected.height} × "
            f"{expected.width}; draw the raster on the scene's own pixels, or give polygons"
        )
    if expected.transform is not None:
        _check_map(path, found, expected)
    elif found.transform is not None:
        raise InputError(f"{path}: is on a map grid, but the scene is not projected; give a raster of its own pixels")
    else:
        _check_ground_points(path, found, cube)


def _check_map(path: Path, found: Grid, expected: Grid) -> None:
    if found.transform is None or (found.crs is None and expected.crs is not None):
        raise InputError(f"{path}: has no map coordinates, expected those of the scene; save it with georeference")
    assert expected.transform is not None
    pixel = np.hypot(expected.transform[0], expected.transform[3])
    apart = np.linalg.norm(_corners(found, path, expected) - _corners(expected, path, expected), axis=1).max()
    if apart > SAME_CORNER * pixel:
        raise InputError(
            f"{path}: its corners lie up to {apart:.4g} m ({apart / pixel:.3g} pixels) from the scene's; "
            "resample it to the scene's own map grid, or give polygons"
        )


def _corners(grid: Grid, path: Path, scene: Grid) -> NDArray[np.float64]:
    """Places (4, 2) of the grid's corners in the coordinates of the scene."""
    x, y = grid.corners()
    if not _is_same(grid.crs, scene.crs, path):
        crs = mars.coordinate_system(grid.crs, f"{path}: the raster")
        scene_crs = mars.coordinate_system(scene.crs, "the scene")
        x, y = mars.from_planetocentric(*mars.to_planetocentric(x, y, crs), scene_crs)
    return np.stack([x, y], axis=1)


def _is_same(found: str | None, expected: str | None, path: Path) -> bool:
    """Whether coordinates in the one system are those in the other, of whatever body."""
    if found is None or expected is None:
        return found == expected
    crs = mars.read_system(found, f"{path}: the raster")
    return crs.equals(mars.read_system(expected, "the scene"), ignore_axis_order=True)


def _check_ground_points(path: Path, found: Grid, cube: xr.Dataset) -> None:
    if not found.ground_points or "latitude" not in cube.variables:
        return
    row, col, longitude, latitude = np.array(found.ground_points).T
    at = (
        np.clip(np.rint(row).astype(int), 0, found.height - 1),
        np.clip(np.rint(col).astype(int), 0, found.width - 1),
    )
    off_latitude = np.abs(cube["latitude"].values[at] - latitude)
    off_longitude = np.abs((cube["longitude"].values[at] - longitude + 180.0) % 360.0 - 180.0)
    if np.nanmax(np.maximum(off_latitude, off_longitude * np.cos(np.radians(latitude))), initial=0.0) > SAME_PLACE:
        raise InputError(f"{path}: its ground points lie elsewhere than the scene's pixels; give this scene's raster")
