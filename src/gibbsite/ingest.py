"""From a product to a cube store, by line blocks: memory does not grow with the scene."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

import gibbsite
from gibbsite import bands, image, store
from gibbsite.errors import InputError
from gibbsite.product import Product
from gibbsite.settings import Ingest

CHUNK_BYTES = 16 * 2**20
"""Size of one chunk of the cube, and of one block in memory."""
_MOST_GARBAGE = 0.05
"""A band with a larger share of its measurements out of range is garbage. In a real 10×-binned L cube, bands
1, 2 and 3 have 96, 19 and 7 %, all others none."""
_LEAST_COVERED = 0.5
"""A band measured in fewer of the scene's pixels than this is as good as missing."""
_MOST_LOST = 0.5
"""When the valid range takes more than this of the bands, or of the values, it does not fit their unit: the few dark
bands left are mostly noise."""
NAME_FILL = "name it: 'data ignore value = 0' in an ENVI header, nodata in a GeoTIFF"
"""What to do about pixels of nothing but 0: no instrument measures that, but it need not be written down as fill."""


@dataclass(frozen=True)
class Summary:
    """What a cube turned out to be."""

    n_lines: int
    """Lines."""
    n_samples: int
    """Samples."""
    n_bands: int
    """Bands."""
    n_good_bands: int
    """Bands fit for use."""
    n_valid: int
    """Pixels fit for use."""
    n_zero: int
    """Of these, pixels of 0 in every good band."""


def write_cube(product: Product, out: Path, settings: Ingest) -> Summary:
    """A summary of the cube that is then at `out`; an InputError, and no store, when no pixel is usable."""
    good = find_good_bands(product, settings)
    assert product.wavelength is not None
    order = bands.with_place(product.wavelength, product.listed_good)
    wavelength = product.wavelength[order]
    if not (np.isfinite(wavelength).all() and (np.diff(wavelength) > 0).all()):
        raise InputError(f"{product.files[0]}: two bands have the same wavelength, or one has none; mend the header")
    provenance = {
        "product": product.name,
        "sensor": product.kind.sensor,
        "quantity": product.kind.quantity,
        "files": [image.fingerprint(path) for path in product.files],
        "facts": product.facts,
        "wavelength_source": product.wavelength_source,
        "gibbsite": gibbsite.__version__,
    }
    n_valid = n_zero = 0
    with store.create(out, "cube", scene=out.stem, grid=product.grid.to_json(), provenance=provenance) as group:
        store.add_array(group, "wavelength", ("band",), wavelength, attributes={"units": "µm"})
        store.add_array(group, "good_band", ("band",), good[order])
        if product.column_wavelength is not None:
            by_column = product.column_wavelength[:, order]
            store.add_array(
                group, "column_wavelength", ("detector_column", "band"), by_column, attributes={"units": "µm"}
            )
        _create_planes(group, product, len(order))
        for lines in _blocks(product):
            counts = _write_block(group, product, lines, (order, good[order]), settings)
            n_valid, n_zero = n_valid + counts[0], n_zero + counts[1]
        if not n_valid:
            raise InputError(
                f"{product.files[0]}: no pixel has {1 - settings.max_bad_bands:.0%} of its good bands, "
                "so there is nothing to map; check the product, ingest.valid_range and ingest.max_bad_bands"
            )
    n_lines, n_samples, _ = product.shape
    return Summary(n_lines, n_samples, len(order), int(good.sum()), n_valid, n_zero)


def find_good_bands(product: Product, settings: Ingest) -> NDArray[np.bool_]:
    """Whether each band, in file order, is fit for use: not listed as bad, measured, not garbage."""
    n_bands = product.shape[2]
    measured, usable = np.zeros(n_bands, dtype=np.int64), np.zeros(n_bands, dtype=np.int64)
    for lines in _blocks(product):
        stored = _stored(product, lines)
        missing = ~np.isfinite(stored)
        for value in product.fill:
            missing |= stored == value
        inside = _in_range(stored, product, settings) & ~missing
        measured += np.count_nonzero(~missing, axis=(0, 1))
        usable += np.count_nonzero(inside, axis=(0, 1))
    return judge_bands(product, measured, usable, settings)


def judge_bands(
    product: Product, measured: NDArray[np.int64], usable: NDArray[np.int64], settings: Ingest
) -> NDArray[np.bool_]:
    """Whether each band is fit for use, given how many of its values were measured and how many of these are in
    range."""
    if not measured.any():
        raise InputError(f"{product.files[0]}: every pixel is fill, so there is nothing to map; check the product")
    covered = product.listed_good & (measured >= max(1.0, _LEAST_COVERED * measured.max()))
    if not covered.any():
        raise InputError(f"{product.files[0]}: all its bands are listed as bad; mend the header's list (bbl)")
    good = covered & (usable >= (1 - _MOST_GARBAGE) * measured)
    lost = 1 - min(good.sum() / covered.sum(), usable[covered].sum() / measured[covered].sum())
    if lost > _MOST_LOST:
        raise _misfit(product, covered, lost, settings)
    return good


def count_valid(product: Product, good: NDArray[np.bool_], settings: Ingest) -> int:
    """Pixels fit for use, with these good bands (in file order)."""
    order = np.arange(product.shape[2])
    blocks = (read_reflectance(product, lines, order, settings) for lines in _blocks(product))
    return sum(int(np.count_nonzero(_is_valid(reflectance, good, settings))) for reflectance in blocks)


def _is_valid(reflectance: NDArray[np.float32], good: NDArray[np.bool_], settings: Ingest) -> NDArray[np.bool_]:
    """Whether each pixel (line, sample) has enough of its good bands."""
    n_missing = np.count_nonzero(np.isnan(reflectance) & good, axis=2)
    is_valid: NDArray[np.bool_] = n_missing <= settings.max_bad_bands * np.count_nonzero(good)
    return is_valid


def _misfit(product: Product, band: NDArray[np.bool_], lost: float, settings: Ingest) -> InputError:
    """The error that names the range in which most values of the bands lie, those of the middle of the scene."""
    blocks = list(_blocks(product))
    stored = _stored(product, blocks[len(blocks) // 2])[:, :, band]
    is_value = np.isfinite(stored) & ~np.isin(stored, product.fill)
    low, high = np.percentile(stored[is_value] / product.scale, (1, 99)) if is_value.any() else (np.nan, np.nan)
    return InputError(
        f"{product.files[0]}: ingest.valid_range {list(settings.valid_range)} leaves out {lost:.0%} of its bands "
        f"or values, which run from {low:.4g} to {high:.4g} (1st to 99th percentile); expected reflectance, 0 to 1: "
        "give what it was multiplied by in the header, such as 'reflectance scale factor = 10000', "
        "or set ingest.valid_range to the range of your unit"
    )


def read_reflectance(product: Product, lines: slice, order: NDArray[np.int64], settings: Ingest) -> NDArray[np.float32]:
    """Reflectance (line, sample, band) of some lines, bands in `order`, NaN where nothing is usable."""
    stored = _stored(product, lines)
    missing = ~_in_range(stored, product, settings)
    for value in product.fill:
        missing |= stored == value
    values = np.where(missing, np.float32(np.nan), stored)
    if product.scale != 1.0:
        values = values / product.scale
    return np.ascontiguousarray(values[:, :, order], dtype=np.float32)


def _stored(product: Product, lines: slice) -> NDArray[Any]:
    """Some lines as they stand in the file."""
    assert product.pixels is not None
    return product.pixels[lines]


def _in_range(stored: NDArray[Any], product: Product, settings: Ingest) -> NDArray[np.bool_]:
    low, high = (bound * product.scale for bound in settings.valid_range)
    return (stored >= low) & (stored <= high)


def _blocks(product: Product) -> Iterator[slice]:
    """Slices of lines, each of about CHUNK_BYTES of reflectance."""
    n_lines = product.shape[0]
    step = _rows_per_chunk(product)
    for start in range(0, n_lines, step):
        yield slice(start, min(start + step, n_lines))
        image.let_go(product.pixels)


def _rows_per_chunk(product: Product) -> int:
    n_lines, n_samples, n_bands = product.shape
    return min(n_lines, max(1, CHUNK_BYTES // (4 * n_samples * n_bands)))


def _create_planes(group: zarr.Group, product: Product, n_bands: int) -> None:
    """The empty arrays of the cube that have lines and samples."""
    n_lines, n_samples, _ = product.shape
    rows = _rows_per_chunk(product)
    store.add_array(
        group,
        "reflectance",
        ("y", "x", "band"),
        shape=(n_lines, n_samples, n_bands),
        chunks=(rows, n_samples, n_bands),
        dtype="float32",
        fill_value=np.nan,
        attributes={"long_name": product.kind.quantity},
    )
    planes: list[tuple[str, str, Any]] = [("valid", "bool", False), ("detector_column", "int16", -1)]
    if product.geometry is not None:
        planes += [("latitude", "float64", np.nan), ("longitude", "float64", np.nan)]
        planes += [] if product.geometry.is_light_corrected else [("incidence", "float32", np.nan)]
    for name, dtype, fill in planes:
        layout = {
            "shape": (n_lines, n_samples),
            "chunks": (rows, n_samples),
            "dtype": dtype,
            "fill_value": fill,
        }
        store.add_array(group, name, ("y", "x"), **layout)


def _write_block(
    group: zarr.Group,
    product: Product,
    lines: slice,
    bands: tuple[NDArray[np.int64], NDArray[np.bool_]],
    settings: Ingest,
) -> tuple[int, int]:
    """Valid pixels of the block that is then in the store, and those of 0 throughout; `bands` is (order, good in that
    order)."""
    order, good = bands
    reflectance = read_reflectance(product, lines, order, settings)
    valid = _is_valid(reflectance, good, settings)
    group["reflectance"][lines] = reflectance
    group["valid"][lines] = valid
    if product.column is not None:
        group["detector_column"][lines] = detector_columns(product.column[lines])
    if product.geometry is not None:
        if not product.geometry.is_light_corrected:
            group["incidence"][lines] = product.geometry.incidence(lines)
        group["latitude"][lines] = product.geometry.latitude(lines)
        group["longitude"][lines] = product.geometry.longitude(lines)
    # Hardly any pixel is 0 in one band, so only those that are need be looked at whole.
    suspect = reflectance[valid & (reflectance[:, :, np.argmax(good)] == 0)]
    return int(np.count_nonzero(valid)), int((suspect[:, good] == 0).all(axis=1).sum())


def detector_columns(stored: NDArray[Any]) -> NDArray[np.int16]:
    """Whole detector columns, -1 where the product has fill."""
    known = np.isfinite(stored) & (stored >= 0) & (stored < np.iinfo(np.int16).max)
    return np.where(known, np.round(np.where(known, stored, 0)), -1).astype(np.int16)
