"""What a file is: any CRISM product, ENVI image or GeoTIFF cube, described, its pixels still on disk."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gibbsite import crism, ddr, envi, geotiff, image, mars, pds, raster, tile, wavelength
from gibbsite.errors import InputError
from gibbsite.product_kinds import Kind, kind_of
from gibbsite.scene import Grid

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Product:
    """An image in its archive form: bands in file order, values as stored."""

    path: Path
    """The file that stands for it: label, header or raster."""
    name: str
    """Product id, or the file's stem for an image without one."""
    kind: Kind
    """What it holds, and what it is for."""
    shape: tuple[int, int, int]
    """(lines, samples, bands)."""
    stored: str
    """Number type and order, for people."""
    pixels: NDArray[Any] | geotiff.TiffPixels | None
    """(line, sample, band), memory-mapped; None when there is no trustworthy image."""
    fill: tuple[float, ...]
    """Values that mean no data."""
    scale: float
    """Pixels divided by this are reflectance."""
    wavelength: NDArray[np.float64] | None
    """µm (band); None for an image whose bands are no wavelengths."""
    wavelength_source: str
    """`WA CDR <name>`, `nominal`, `header`, a table's name or the tags of a GeoTIFF."""
    listed_good: NDArray[np.bool_]
    """(band) neither in the sensor's list of bad bands nor in the header's."""
    band_names: tuple[str, ...]
    """Empty when the file names none."""
    grid: Grid
    """Where the pixels lie."""
    facts: dict[str, Any]
    """What the label says."""
    files: tuple[Path, ...]
    """All files read."""
    remarks: tuple[str, ...] = ()
    """What the user should know."""
    label: pds.Label | None = None
    """The PDS3 label."""
    image: pds.ImageFile | None = None
    """The image that the label describes."""
    geometry: ddr.Geometry | None = None
    """Incidence, latitude and longitude."""
    column: NDArray[Any] | None = None
    """Detector column (line, sample) as stored; None when unknown."""
    column_wavelength: NDArray[np.float64] | None = None
    """µm (sample, band) of every detector column, NaN unknown; None without a WA record."""

    @property
    def parts(self) -> crism.ProductName | None:
        """The parts of the name of a targeted CRISM product."""
        return crism.parse_name(self.name)


def open_product(given: Path, doubts: list[str] | None = None) -> Product:
    """The product that `given` (its .lbl, .hdr, .img or .tif, in any letter case) belongs to.

    What cannot be trusted is an InputError. With a list for `doubts` it goes there instead, as far as a description
    remains possible.
    """
    path = image.locate(given)
    if path.suffix.lower() in (".tif", ".tiff"):
        return _from_tiff(path, doubts)
    label_path, header_path = image.sibling(path, ".lbl"), envi.header_beside(path)
    if label_path is None and header_path is None:
        raise InputError(f"{path}: neither a label nor a header beside it; put {path.stem}.lbl or .hdr in its folder")
    if label_path is None:
        assert header_path is not None
        return _from_header(path, header_path, None, doubts)
    try:
        label = pds.read_label(label_path)
    except InputError:
        # Other missions keep labels of other kinds beside ENVI images, and there the header says it all.
        if header_path is None or kind_of(path.stem).is_crism:
            raise
        return _from_header(path, header_path, None, doubts)
    if kind_of(label.product_id).is_crism and not kind_of(label.product_id).has_header:
        return _from_label(path, label, doubts)
    if header_path is None and kind_of(label.product_id).has_header:
        raise InputError(f"{path}: no ENVI header beside it; put {path.stem}.hdr in the same folder")
    if header_path is None:
        return _from_label(path, label, doubts)
    return _from_header(path, header_path, label, doubts)


def _from_label(path: Path, label: pds.Label, doubts: list[str] | None) -> Product:
    """A product that its PDS3 label describes."""
    kind, shape = kind_of(label.product_id), pds.image_shape(label)
    file = _attempt(doubts, lambda: pds.image_file(label))
    if file is None:
        file = _attempt(doubts, lambda: pds.bare_image(label))
    if file and path.suffix.lower() == ".img" and path.name.lower() != file.path.name.lower():
        raise InputError(f"{label.path}: describes {file.path.name}, not {path.name}; give the label of that image")
    bands: wavelength.Wavelengths | None = None
    grid: Grid | None = None
    if kind.is_tile:
        grid = _attempt(doubts, lambda: tile.map_grid(label))
        bands = _attempt(doubts, lambda: tile.wavelengths(label)) if kind.has_spectra else None
    elif file is not None and kind.rows_of:
        bands = _attempt(doubts, lambda: wavelength.of_rows(label, file, kind.sensor, kind.rows_of))
    listed = np.ones(shape[2], bool) if bands is None else crism.trusted(kind.sensor, bands.values)
    return Product(
        path=label.path,
        name=label.product_id,
        kind=kind,
        shape=shape,
        stored=f"32-bit floats, {pds.interleave(label)}",
        pixels=None if file is None else pds.open_pixels(file),
        fill=pds.fill_values(label),
        scale=1.0,
        wavelength=None if bands is None else bands.values,
        wavelength_source="" if bands is None else bands.source,
        listed_good=listed,
        band_names=pds.band_names(label),
        grid=grid or Grid(height=shape[0], width=shape[1]),
        facts=label.facts,
        files=(*([] if file is None else [file.path]), label.path, *(() if bands is None else bands.files)),
        remarks=() if file is None else file.remarks,
        label=label,
        image=file,
        column_wavelength=None if bands is None else bands.by_column,
    )


def _from_header(given: Path, header_path: Path, label: pds.Label | None, doubts: list[str] | None) -> Product:
    """A product that its ENVI header describes: MTR3, TER3, or any other."""
    header = envi.read_header(header_path)
    shape = header.layout.shape
    if label is not None and pds.image_shape(label) != shape:
        raise InputError(
            f"{header_path}: {shape} lines, samples, bands, but {label.path.name} says "
            f"{pds.image_shape(label)}; label and header do not belong together: fetch both anew"
        )
    name = label.product_id if label is not None else header_path.stem
    kind, bands = kind_of(name), envi.wavelengths(header)
    path = _attempt(doubts, lambda: envi.image_file(header, given))
    placed = _attempt(doubts, lambda: envi.map_grid(header))
    ignored = envi.fill_value(header)
    product = Product(
        path=header_path,
        name=name,
        kind=kind,
        shape=shape,
        stored=f"{np.dtype(header.layout.dtype).name}, {header.layout.interleave}",
        pixels=None if path is None else image.open_pixels(path, header.layout),
        fill=tuple(dict.fromkeys(([crism.FILL] if kind.is_crism else []) + ([] if ignored is None else [ignored]))),
        scale=_attempt(doubts, lambda: envi.scale_factor(header)) or 1.0,
        wavelength=bands,
        wavelength_source="header" if bands is not None else "",
        listed_good=envi.listed_good(header) & (True if bands is None else crism.trusted(kind.sensor, bands)),
        band_names=envi.band_names(header),
        grid=Grid(shape[0], shape[1], *(placed or (None, None))),
        facts=label.facts if label is not None else {},
        files=(*([] if path is None else [path]), header_path, *([label.path] if label is not None else [])),
        label=label,
    )
    _attempt(doubts, lambda: _check_place(product))
    return product


def _from_tiff(path: Path, doubts: list[str] | None) -> Product:
    """A GeoTIFF cube."""
    found, grid = geotiff.read_tiff(path), raster.read_grid(path)
    kind = kind_of(path.stem)
    product = Product(
        path=path,
        name=path.stem,
        kind=kind,
        shape=found.pixels.shape,
        stored=f"{found.dtype}, GeoTIFF",
        pixels=found.pixels,
        fill=(crism.FILL,) if kind.is_crism else (),
        scale=found.scale,
        wavelength=found.wavelength,
        wavelength_source=found.source,
        listed_good=found.listed_good
        & (True if found.wavelength is None else crism.trusted(kind.sensor, found.wavelength)),
        band_names=found.band_names,
        grid=grid,
        facts={},
        files=(path,),
    )
    _attempt(doubts, lambda: _check_place(product))
    return product


def _check_place(product: Product) -> None:
    """Nothing, when the product has no coordinates, or such that later steps may count east and north in them."""
    if product.grid.crs is not None:
        mars.check_axes(product.grid.crs, f"{product.path}", must_be_mars=product.kind.is_crism)


def _attempt(doubts: list[str] | None, read: Callable[[], T]) -> T | None:
    """What `read` gives; None, when it cannot and there is a list for the reason."""
    try:
        return read()
    except InputError as error:
        if doubts is None:
            raise
        doubts.append(str(error))
        return None
