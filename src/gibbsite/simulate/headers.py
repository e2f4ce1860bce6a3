"""ENVI headers of the map-projected images, and their coordinate system."""

from collections.abc import Iterable

from gibbsite.simulate.detector import FILL, map_channels, map_widths
from gibbsite.simulate.geometry import Geometry, MapGrid
from gibbsite.simulate.labelling import IN_BANDS


def coordinate_system(geometry: Geometry) -> str:
    """The map's coordinate system as the archive writes it: the product's own sphere."""
    name = f"Mars_2000_IAU_IAG_custom_sphere_lat{abs(geometry.parallel):.0f}"
    return (
        f'PROJCS["{_projection(geometry)}",GEOGCS["GCS_{name}",DATUM["D_{name}",'
        f'SPHEROID["{name}",{geometry.radius!r},0.0]],PRIMEM["Reference_Meridian",0.0],'
        'UNIT["Degree",0.0174532925199433]],PROJECTION["Equidistant_Cylindrical"],'
        'PARAMETER["False_Easting",0.0],PARAMETER["False_Northing",0.0],PARAMETER["Central_Meridian",0.0],'
        f'PARAMETER["Standard_Parallel_1",{geometry.parallel:.1f}],UNIT["Meter",1.0]]'
    )


def spectral_header(grid: MapGrid) -> str:
    """Header of the map-projected I/F."""
    wavelength = map_channels().wavelength[:, 0] * 1000.0
    return (
        _header(grid, wavelength.size, "default bands = {304,122,41}", "Nanometers")
        + _listed("wavelength", (f"{value:11.6f}" for value in wavelength), 6)
        + _listed("fwhm", (f"{value:9.6f}" for value in map_widths()), 7)
        + _listed("bbl", ("1" for _ in wavelength), 26)
    )


def information_header(grid: MapGrid) -> str:
    """Header of the map of where each pixel's spectrum came from."""
    return _header(grid, len(IN_BANDS), "default bands = {1,1,1}", "Unknown") + _listed("band names", IN_BANDS, 3)


def _header(grid: MapGrid, n_bands: int, default: str, unit: str) -> str:
    geometry = grid.geometry
    datum = f"D_Mars_2000_IAU_IAG_custom_sphere_lat{abs(geometry.parallel):.0f}"
    name, size = _projection(geometry), f"{geometry.pixel:.10e}"
    sphere = f"{geometry.radius:.1f}, {geometry.parallel:.6f}, 0.000000"
    return f"""ENVI
description = {{
  Simulated by gibbsite: not a measurement of Mars}}
samples = {grid.width}
lines   = {grid.height}
bands   = {n_bands}
header offset = 0
file type = ENVI Standard
data type = 4
interleave = bsq
sensor type = Unknown
byte order = 0
map info = {{{name}, 1.0000, 1.0000, {grid.left:.4f}, {grid.top:.4f}, {size}, {size}, {datum}, units=Meters}}
projection info = {{17, {sphere}, 0.0, 0.0, {datum}, {name}, units=Meters}}
coordinate system string = {{{coordinate_system(geometry)}}}
{default}
wavelength units = {unit}
data ignore value = {FILL:.8e}
default stretch = 1.0% linear
"""


def _projection(geometry: Geometry) -> str:
    return f"MRO Mars Equirectangular [IAU 2000] [{geometry.parallel:.2f}N; 0.00E]"


def _listed(key: str, values: Iterable[str], per_line: int) -> str:
    found = list(values)
    rows = [", ".join(found[start : start + per_line]) for start in range(0, len(found), per_line)]
    return f"{key} = {{\n " + ",\n ".join(rows) + "}\n"
