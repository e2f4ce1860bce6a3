"""Versions of what a result is made with."""

import platform
from importlib import metadata

PACKAGES = ("gibbsite", "numpy", "scipy", "numba", "dask", "xarray", "zarr", "rasterio", "snakemake", "bokeh")
"""Told to whoever wants to make a result again."""


def installed(packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """The version of Python, and of each package that is there."""
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
