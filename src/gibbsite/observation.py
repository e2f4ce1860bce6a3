"""A cube to ingest: the product with its companions (DDR, WA record, IN product), checked against each other."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite import bands, crism, ddr, envi, image, wavelength
from gibbsite.errors import InputError
from gibbsite.product import Product, open_product


def open_observation(cube: Path, geometry: Path | None, wavelengths: Path | None) -> Product:
    """The cube that `cube` (its .lbl, .hdr, .img or .tif, in any letter case) belongs to, with its companions.

    `geometry` is the DDR of a TRR3 or TER3 cube; `wavelengths` the WA record of a TRR3 cube, or a list for an image
    that tells none. Both may be missing.
    """
    product = open_product(cube)
    if not product.kind.has_spectra:
        raise InputError(
            f"{cube}: found product {product.name}, expected an I/F cube (TRR3, TER3 or MTR3 with _IF in its name, or "
            f"a plain ENVI or GeoTIFF cube); {product.kind.purpose}"
        )
    name = product.parts
    is_trr = name is not None and name.kind == "TRR"
    if is_trr:
        lines, samples, _ = product.shape
        product = replace(product, column=np.broadcast_to(np.arange(samples, dtype=np.int16), (lines, samples)))
    if name is not None and is_trr and product.label is not None:
        product = _with_record(product, name, wavelengths)
    else:
        product = _with_list(product, wavelengths)
    product = _with_geometry(product, name, geometry)
    if name is not None and name.kind != "TRR" and product.path.suffix.lower() == ".hdr":
        product = _with_columns(product, name)
    return _with_remarks(product)


def _with_record(product: Product, name: crism.ProductName, given: Path | None) -> Product:
    """A TRR3 cube with the wavelengths of the WA record `given` in place of its own."""
    if name.sensor not in ("L", "S"):
        raise InputError(f"{product.path}: found sensor {name.sensor} in {product.name}, expected L or S for a TRR3")
    if given is None:
        return product
    assert product.label is not None
    assert product.image is not None
    found = wavelength.of_trr3(product.label, product.image, name.sensor, given)
    return replace(
        product,
        wavelength=found.values,
        wavelength_source=found.source,
        listed_good=crism.trusted(name.sensor, found.values),
        column_wavelength=found.by_column,
        files=(product.image.path, product.label.path, *found.files),
    )


def _with_list(product: Product, given: Path | None) -> Product:
    """A cube whose wavelengths are its own, or, when it tells none, those of the list."""
    if product.wavelength is not None:
        if given is not None:
            raise InputError(
                f"{given}: --wavelengths goes with TRR3 cubes, or with cubes that tell none; {product.path.name} has "
                "it all, leave --wavelengths out"
            )
        return product
    if given is None:
        raise InputError(
            f"{product.path}: no wavelengths in its header or tags, so no spectra; add 'wavelength = {{…}}' to the "
            "header, or give a list of one number per band as --wavelengths"
        )
    path = image.locate(given)
    values = bands.read_list(path, product.listed_good)
    return replace(
        product,
        wavelength=values,
        wavelength_source=f"list {path.name}",
        listed_good=product.listed_good & crism.trusted(product.kind.sensor, values),
        files=(*product.files, path),
    )


def _with_geometry(product: Product, name: crism.ProductName | None, given: Path | None) -> Product:
    """A cube in sensor space with the place of every pixel, of its DDR; TER3 keeps its own light correction."""
    if given is None:
        return product
    if name is None or name.kind == "MTR":
        raise InputError(
            f"{given}: --ddr goes with TRR3 and TER3 cubes only; {product.path.name} has it all, leave --ddr out"
        )
    sensor = "L" if name.sensor == "J" else name.sensor
    geometry = ddr.read_geometry(given, replace(name, sensor=sensor), product.shape[:2])
    return replace(
        product,
        geometry=geometry if name.kind == "TRR" else replace(geometry, is_light_corrected=True),
        grid=ddr.ground_grid(geometry),
        files=(*product.files, geometry.path, geometry.label),
    )


def _with_columns(product: Product, name: crism.ProductName) -> Product:
    """A joined cube with the detector column of each pixel, from the IN product beside it."""
    other = re.sub(r"_if(?=\d)", "_in", product.path.name, count=1, flags=re.IGNORECASE)
    found = image.find(product.path.parent, other)
    lines, samples = product.shape[:2]
    if found is None or found == product.path:
        if name.kind == "TER":
            # In sensor space a sample is a column of the infrared detector.
            return replace(product, column=np.broadcast_to(np.arange(samples, dtype=np.int16), (lines, samples)))
        remark = f"no IN product {other} beside the cube: columns cannot be evened out"
        return replace(product, remarks=(*product.remarks, remark))
    column, files = _ir_sample(found, (lines, samples))
    return replace(product, column=column, files=(*product.files, *files))


def _ir_sample(path: Path, shape: tuple[int, int]) -> tuple[NDArray[Any], list[Path]]:
    """The band `IR Sample` of an IN product, and its files."""
    header = envi.read_header(path)
    if header.layout.shape[:2] != shape:
        raise InputError(
            f"{path}: {header.layout.shape[:2]} lines and samples do not fit the cube's {shape}; it is of "
            "another observation: fetch it anew"
        )
    stored = envi.image_file(header, path)
    band = envi.band_named(header, "IR Sample")
    return image.open_pixels(stored, header.layout)[:, :, band], [stored, path]


def _with_remarks(product: Product) -> Product:
    """The product with what the user should know of it."""
    remarks = list(product.remarks)
    if product.wavelength_source == "nominal":
        remarks.append("no WA record found: the wavelengths are nominal")
    is_copy = product.parts is not None and product.parts.kind == "TRR" and product.label is None
    if is_copy and product.geometry is not None:
        remarks.append(
            "a copy of a TRR3 cube without its label: if it was divided by cos i, set clean.incidence: false"
        )
    if product.kind.quantity == "radiance":
        remarks.append("radiance, not I/F: set ingest.valid_range to its range; spectral libraries hold reflectance")
    if product.grid.transform is None and not product.grid.ground_points:
        is_sensor = product.parts is not None and product.parts.kind in ("TRR", "TER")
        why = "no DDR given" if is_sensor else "the file has no map coordinates"
        remarks.append(f"{why}: the maps will have no coordinates")
    return replace(product, remarks=tuple(remarks))
