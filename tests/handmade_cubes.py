"""Small hand-made cube stores as their contract says: taller than wide, no symmetry."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS

from gibbsite import store
from gibbsite.scene import Grid

HEIGHT, WIDTH, N_BANDS = 23, 9, 14
PIXEL = 18.0
CENTRE = (74.7, -21.3)

MAP_SYSTEM = CRS.from_dict({"proj": "eqc", "lat_ts": -20, "lon_0": 70, "R": 3_394_839.8133}).to_wkt()
"""A product's own sphere, as MTR3 has: not the radius of IAU_2015."""


def map_grid(height: int = HEIGHT, width: int = WIDTH) -> Grid:
    """A map grid whose north-west corner lies at CENTRE."""
    radius, lat_ts = 3_394_839.8133, np.radians(-20.0)
    x = radius * np.cos(lat_ts) * np.radians(CENTRE[0] - 70.0)
    y = radius * np.radians(CENTRE[1])
    return Grid(height, width, crs=MAP_SYSTEM, transform=(PIXEL, 0.0, float(x), 0.0, -PIXEL, float(y)))


def degrees_of(grid: Grid) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Longitude and latitude (height, width) of the centres of a `map_grid`, by the projection's formula."""
    a, _, c, _, e, f = grid.transform
    x = a * (np.arange(grid.width) + 0.5) + c
    y = e * (np.arange(grid.height) + 0.5) + f
    radius = 3_394_839.8133
    longitude = 70.0 + np.degrees(x / (radius * np.cos(np.radians(-20.0))))
    latitude = np.degrees(y / radius)
    return np.broadcast_to(longitude, (len(y), len(x))), np.broadcast_to(latitude[:, None], (len(y), len(x)))


def spectra(height: int = HEIGHT, width: int = WIDTH, n_bands: int = N_BANDS, seed: int = 5) -> NDArray[np.float32]:
    """Reflectance (height, width, n_bands): a few spectral shapes in skewed amounts, plus noise."""
    random = np.random.Generator(np.random.Philox(key=seed))
    shape = np.cumsum(random.normal(size=(4, n_bands)), axis=1) * 0.01
    amount = random.gamma(2.0, size=(height * width, 4)) * [1.0, 0.7, 0.4, 0.2]
    noise = random.normal(size=(height * width, n_bands)) * 0.003
    return (0.2 + amount @ shape + noise).reshape(height, width, n_bands).astype(np.float32)


@dataclass(frozen=True)
class Cube:
    """What goes into a cube store; the parts left out are made up."""

    reflectance: NDArray[np.float32]
    grid: Grid
    chunk_lines: int = 4
    longest: float = 2.5
    extra: dict[str, NDArray] = field(default_factory=dict)


def write_cube(path: Path, cube: Cube) -> Path:
    """Write the store and give back its path."""
    height, width, n_bands = cube.reflectance.shape
    arrays = {
        "wavelength": np.linspace(1.05, cube.longest, n_bands),
        "good_band": np.ones(n_bands, bool),
        "valid": np.ones((height, width), bool),
        "detector_column": np.full((height, width), -1, np.int16),
    } | cube.extra
    facts = {"scene": path.stem, "grid": cube.grid.to_json(), "provenance": {"product": "hand-made"}}
    with store.create(path, "cube", **facts) as group:
        chunks = (min(cube.chunk_lines, height), width, n_bands)
        store.add_array(group, "reflectance", ("y", "x", "band"), cube.reflectance, chunks=chunks)
        for name, array in arrays.items():
            dims = ("detector_column", "band") if name == "column_wavelength" else ("y", "x")
            store.add_array(group, name, ("band",) if array.ndim == 1 else dims, array)
    return path
