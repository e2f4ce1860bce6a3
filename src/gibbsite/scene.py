"""The cube contract: what every later step may rely on, checked once when a cube is opened.

A cube store (`cubes/{scene}.zarr`) holds

    reflectance      (y, x, band)  float32  I/F, NaN where there is no data
    wavelength       (band)        float64  µm, rising
    good_band        (band)        bool     bands fit for use
    valid            (y, x)        bool     pixels fit for use
    detector_column  (y, x)        int16    column of the detector that saw the pixel, -1 unknown
    column_wavelength (detector_column, band) float64 µm, NaN unknown; only with a WA record (optional)
    incidence        (y, x)        float32  degrees, NaN unknown               (optional)
    latitude, longitude (y, x)     float64  degrees north and east, NaN unknown (optional)

and the attributes `scene` (its name), `grid` (see Grid) and `provenance`.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gibbsite import store
from gibbsite.errors import InputError

Transform = tuple[float, float, float, float, float, float]
GroundPoint = tuple[float, float, float, float]

_CONTRACT: dict[str, tuple[tuple[str, ...], str]] = {
    "reflectance": (("y", "x", "band"), "float32"),
    "wavelength": (("band",), "float64"),
    "good_band": (("band",), "bool"),
    "valid": (("y", "x"), "bool"),
    "detector_column": (("y", "x"), "int16"),
    "column_wavelength": (("detector_column", "band"), "float64"),
    "incidence": (("y", "x"), "float32"),
    "latitude": (("y", "x"), "float64"),
    "longitude": (("y", "x"), "float64"),
}
_OPTIONAL = ("column_wavelength", "incidence", "latitude", "longitude")


@dataclass(frozen=True)
class Grid:
    """Where a scene's pixels lie: on a map (`transform`), in sensor space (`ground_points`), or unknown."""

    height: int
    """Lines, n_y."""
    width: int
    """Samples, n_x."""
    crs: str | None = None
    """The coordinate system as WKT; of the map, or of the ground points."""
    transform: Transform | None = None
    """x = a·col + b·row + c, y = d·col + e·row + f at pixel corners, as (a, b, c, d, e, f)."""
    ground_points: tuple[GroundPoint, ...] = ()
    """(row, col, longitude, latitude) of the centres of some pixels, for scenes without a map grid."""

    def corners(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Map coordinates x and y (4,) of its corners, line by line."""
        assert self.transform is not None
        a, b, c, d, e, f = self.transform
        row, col = np.array([(row, col) for row in (0, self.height) for col in (0, self.width)]).T
        return a * col + b * row + c, d * col + e * row + f

    def to_json(self) -> dict[str, Any]:
        """A mapping that `from_json` takes back."""
        return {
            "height": self.height,
            "width": self.width,
            "crs": self.crs,
            "transform": list(self.transform) if self.transform else None,
            "ground_points": [list(point) for point in self.ground_points],
        }

    @classmethod
    def from_json(cls, mapping: dict[str, Any]) -> "Grid":
        """The grid that `to_json` described."""
        transform = mapping["transform"]
        return cls(
            height=mapping["height"],
            width=mapping["width"],
            crs=mapping["crs"],
            transform=tuple(transform) if transform else None,
            ground_points=tuple(tuple(point) for point in mapping["ground_points"]),
        )


def open_cube(path: Path) -> xr.Dataset:
    """The cube as a lazy dataset that honours the contract; an InputError names the first breach."""
    store.read(path, "cube")
    try:
        with warnings.catch_warnings():
            # Snakemake keeps a file of its own in every folder that it made.
            warnings.filterwarnings("ignore", "Object at .* is not recognized", UserWarning)
            cube = xr.open_zarr(path, consolidated=False, chunks=None)
    except (OSError, KeyError, ValueError) as error:
        raise InputError(f"{path}: cube cannot be opened ({error}); ingest it anew") from None
    missing = {name for name in _CONTRACT if name not in _OPTIONAL} - set(cube.variables)
    if missing:
        raise InputError(f"{path}: cube lacks {', '.join(sorted(missing))}; ingest it anew")
    lacking = {"scene", "grid", "provenance"} - set(cube.attrs)
    if lacking:
        raise InputError(f"{path}: cube lacks the attributes {', '.join(sorted(lacking))}; ingest it anew")
    for name, expected in _CONTRACT.items():
        if name not in cube.variables:
            continue
        found = cube[name].dims, cube[name].dtype.name
        if found != expected:
            raise InputError(
                f"{path}: {name} is {found[1]} {found[0]}, expected {expected[1]} {expected[0]}; ingest anew"
            )
    wavelength = cube["wavelength"].values
    if not (np.isfinite(wavelength).all() and (np.diff(wavelength) > 0).all() and wavelength[0] > 0):
        raise InputError(f"{path}: the wavelengths do not rise; ingest it anew")
    grid = grid_of(cube)
    if (grid.height, grid.width) != (cube.sizes["y"], cube.sizes["x"]):
        raise InputError(
            f"{path}: {cube.sizes['y']} lines × {cube.sizes['x']} samples on a grid of "
            f"{grid.height} × {grid.width}; ingest it anew"
        )
    return cube


def grid_of(cube: xr.Dataset) -> Grid:
    """The cube's grid."""
    return Grid.from_json(cube.attrs["grid"])
