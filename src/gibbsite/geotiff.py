"""GeoTIFF cubes: wavelengths, bad bands and scale from whatever tags they carry, pixels read by blocks of lines."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rasterio.errors import RasterioIOError
from rasterio.windows import Window

from gibbsite import bands, raster
from gibbsite.errors import InputError

_NUMBER = r"(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"
_UNIT = r"(nanomet(?:er|re)s?|nm|micromet(?:er|re)s?|microns?|um|µm|μm)"
_MEASURE = re.compile(rf"{_NUMBER}\s*{_UNIT}\b", re.IGNORECASE)


@dataclass(frozen=True)
class TiffPixels:
    """The pixels of a GeoTIFF, read when they are asked for: float32, scaled, NaN where there is no data."""

    path: Path
    """The file."""
    shape: tuple[int, int, int]
    """(lines, samples, bands)."""

    def __getitem__(self, lines: slice) -> NDArray[np.float32]:
        """The pixels (line, sample, band) of these lines."""
        start, stop, _ = lines.indices(self.shape[0])
        with raster.open_raster(self.path) as source:
            try:
                stored = source.read(window=Window(0, start, self.shape[1], stop - start), masked=True)
            except RasterioIOError as error:
                raise InputError(
                    f"{self.path}: cannot read lines {start} to {stop - 1}, it is truncated or broken "
                    f"({str(error).splitlines()[0]}); fetch it anew"
                ) from None
            scales, offsets = np.array(source.scales), np.array(source.offsets)
        values = np.ma.filled(stored.astype(np.float32), np.nan)
        if (scales != 1).any() or (offsets != 0).any():
            values = (values * scales[:, None, None] + offsets[:, None, None]).astype(np.float32)
        return np.moveaxis(values, 0, 2)


@dataclass(frozen=True)
class Tiff:
    """What the tags of a GeoTIFF tell of its bands."""

    pixels: TiffPixels
    """On disk."""
    dtype: str
    """As stored."""
    wavelength: NDArray[np.float64] | None
    """µm (band); None when no tag tells."""
    source: str
    """Which tags told."""
    listed_good: NDArray[np.bool_]
    """(band) by a list of bad bands."""
    scale: float
    """What the pixels must be divided by to be reflectance."""
    band_names: tuple[str, ...]
    """Band descriptions; empty when not all bands have one."""


def read_tiff(path: Path) -> Tiff:
    """The cube at `path`; an InputError when it is no raster or its tags are broken."""
    with raster.open_raster(path, "a GeoTIFF cube") as source:
        if not source.count or np.dtype(source.dtypes[0]).kind not in "iuf":
            raise InputError(f"{path}: found {source.count} bands of {source.dtypes[:1]}, expected real numbers")
        tags = source.tags(ns="ENVI") | source.tags()
        tags = {key.lower().replace("_", " "): value for key, value in tags.items()}
        every = [source.tags(band) | source.tags(band, ns="IMAGERY") for band in source.indexes]
        names = tuple(name or "" for name in source.descriptions)
        shape, dtype = (source.height, source.width, source.count), str(source.dtypes[0])
        is_scaled = any(scale != 1.0 for scale in source.scales)
    listed = _listed(path, tags, "bbl", shape[2])
    good = np.ones(shape[2], dtype=bool) if listed is None else listed != 0
    wavelength, origin = _wavelengths(path, tags, every, good, names)
    scale = _listed(path, tags, "reflectance scale factor", 1)
    if scale is not None and scale[0] <= 0:
        raise InputError(f"{path}: found reflectance scale factor {scale[0]}, expected a number above 0")
    return Tiff(
        pixels=TiffPixels(path, shape),
        dtype=dtype,
        wavelength=wavelength,
        source=origin,
        listed_good=good,
        # A file that tells both says the same thing twice.
        scale=1.0 if scale is None or is_scaled else float(scale[0]),
        band_names=names if all(names) else (),
    )


def _wavelengths(
    path: Path, tags: dict[str, str], every: list[dict[str, Any]], good: NDArray[np.bool_], names: tuple[str, ...]
) -> tuple[NDArray[np.float64] | None, str]:
    """µm (band) and where they are from: the most exact of what bands, file and descriptions tell."""
    unit = tags.get("wavelength units", "")
    if all("wavelength" in band for band in every):
        values = _numbers(path, [band["wavelength"] for band in every])
        return bands.micrometres(values, every[0].get("wavelength_units", unit), path, good), "band tags"
    listed = _listed(path, tags, "wavelength", len(every))
    if listed is not None:
        return bands.micrometres(listed, unit, path, good), "file tags"
    measures = [_MEASURE.search(name) for name in names]
    if all(measures):
        pairs = [(float(found[1]), found[2]) for found in measures if found is not None]
        each = [bands.micrometres(np.array([value]), word, path) for value, word in pairs]
        return np.concatenate(each), "band descriptions"
    if all(re.fullmatch(_NUMBER, name.strip()) for name in names):
        values = _numbers(path, list(names))
        # 1, 2, 3, … without a unit number the bands.
        if unit or not np.array_equal(values, values[0] + np.arange(len(values))):
            return bands.micrometres(values, unit, path), "band descriptions"
    if all("CENTRAL_WAVELENGTH_UM" in band for band in every):
        values = _numbers(path, [band["CENTRAL_WAVELENGTH_UM"] for band in every])
        return bands.micrometres(values, "um", path), "band tags, rounded to nm"
    return None, ""


def _listed(path: Path, tags: dict[str, str], key: str, count: int) -> NDArray[np.float64] | None:
    """The `count` numbers of a tag; None when the file does not have it."""
    if key not in tags:
        return None
    values = _numbers(path, [part for part in re.split(r"[,\s{}]+", tags[key]) if part])
    if values.size != count:
        raise InputError(f"{path}: {values.size} numbers in the tag '{key}' for {count}; mend the tag")
    return values


def _numbers(path: Path, parts: list[str]) -> NDArray[np.float64]:
    try:
        return np.array([float(part) for part in parts])
    except ValueError as error:
        raise InputError(f"{path}: a tag holds something that is not a number ({error}); mend the tag") from None
