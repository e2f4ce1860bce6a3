"""The files of one observation, opened together and checked against each other, pixels still on disk."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite import crism, ddr, envi, image, pds, wavelength
from gibbsite.errors import InputError
from gibbsite.scene import Grid


@dataclass(frozen=True)
class Observation:
    """A cube in its archive form: bands in file order, values as stored."""

    product: str
    """Product id, or the file's stem for a cube without one."""
    sensor: str
    """L, S, J; empty for a cube that is not CRISM's."""
    pixels: NDArray[Any]
    """(line, sample, band), memory-mapped."""
    fill: tuple[float, ...]
    """Values that mean no data."""
    scale: float
    """Pixels divided by this are reflectance."""
    wavelength: NDArray[np.float64]
    """µm (band)."""
    wavelength_source: str
    """`WA CDR <name>`, `nominal` or `header`."""
    listed_good: NDArray[np.bool_]
    """(band) neither in the sensor's list of bad bands nor in the header's."""
    grid: Grid
    """Where the pixels lie."""
    facts: dict[str, Any]
    """What the label says."""
    files: tuple[Path, ...]
    """All files read."""
    geometry: ddr.Geometry | None = None
    """Incidence, latitude and longitude."""
    column: NDArray[Any] | None = None
    """Detector column (line, sample) as stored; None when unknown."""
    column_wavelength: NDArray[np.float64] | None = None
    """µm (sample, band) of every detector column, NaN unknown; None without a WA record."""
    remarks: tuple[str, ...] = ()
    """What the user should know."""


def open_observation(cube: Path, geometry: Path | None, wavelengths: Path | None) -> Observation:
    """The observation that `cube` (its .lbl, .hdr or .img, in any letter case) belongs to.

    `geometry` is the DDR and `wavelengths` the WA record of a TRR3 cube; both may be missing.
    """
    path = image.locate(cube)
    label_path, header_path = image.sibling(path, ".lbl"), envi.header_beside(path)
    if label_path is None and header_path is None:
        raise InputError(f"{path}: neither a label nor a header beside it; put {path.stem}.lbl or .hdr in its folder")
    label = pds.read_label(label_path) if label_path is not None else None
    name = crism.parse_name(label.product_id if label is not None else path.stem)
    _check_is_cube(path, label, name)
    if label is not None and name is not None and name.kind == "TRR":
        return _open_trr3(path, label, name, (geometry, wavelengths))
    if header_path is None:
        raise InputError(f"{path}: no ENVI header beside it; put {path.stem}.hdr in the same folder")
    for flag, given in (("--ddr", geometry), ("--wavelengths", wavelengths)):
        # MTR3 and TER3 I/F is already divided by cos(incidence), and the header has all wavelengths.
        if given is not None:
            raise InputError(f"{given}: {flag} goes with TRR3 cubes only; {path.name} has it all, leave {flag} out")
    return _open_envi(header_path, label, name)


def _check_is_cube(path: Path, label: pds.Label | None, name: crism.ProductName | None) -> None:
    """Nothing, when this is an I/F cube by its name, or an ENVI cube with a name of its own."""
    product = label.product_id if label is not None else path.stem
    if (name is None and label is not None) or (name is not None and name.activity != "IF"):
        raise InputError(
            f"{path}: found product {product}, expected an I/F cube (TRR3 or MTR3 with _IF in its name, "
            "or a plain ENVI cube); give that file"
        )


def _open_trr3(
    path: Path, label: pds.Label, name: crism.ProductName, extra: tuple[Path | None, Path | None]
) -> Observation:
    """A TRR3 cube with its DDR and WA record (`extra`, each may be missing)."""
    if name.sensor not in ("L", "S"):
        raise InputError(f"{path}: found sensor {name.sensor} in {label.product_id}, expected L or S for a TRR3")
    file = pds.image_file(label)
    if path.suffix.lower() == ".img" and path.name.lower() != file.path.name.lower():
        raise InputError(f"{label.path}: describes {file.path.name}, not {path.name}; give the label of that image")
    bands = wavelength.of_trr3(label, file, name.sensor, extra[1])
    lines, samples = file.layout.shape[:2]
    remarks = []
    if bands.source == "nominal":
        remarks.append("no WA record found: the wavelengths are nominal")
    geometry, grid, files = None, Grid(height=lines, width=samples), [file.path, label.path, *bands.files]
    if extra[0] is None:
        remarks.append("no DDR given: the maps will have no coordinates")
    else:
        geometry = ddr.read_geometry(extra[0], name, (lines, samples))
        grid = ddr.ground_grid(geometry)
        files += [geometry.path, geometry.label]
    return Observation(
        product=label.product_id,
        sensor=name.sensor,
        pixels=pds.open_pixels(file),
        fill=(crism.FILL,),
        scale=1.0,
        wavelength=bands.values,
        wavelength_source=bands.source,
        listed_good=crism.trusted(name.sensor, bands.values),
        grid=grid,
        facts=label.facts,
        files=tuple(files),
        geometry=geometry,
        column=np.broadcast_to(np.arange(samples, dtype=np.int16), (lines, samples)),
        column_wavelength=bands.by_column,
        remarks=tuple(remarks),
    )


def _open_envi(header_path: Path, label: pds.Label | None, name: crism.ProductName | None) -> Observation:
    """An ENVI cube: MTR3, TER3, or any other with wavelengths in its header."""
    header = envi.read_header(header_path)
    shape = header.layout.shape
    if label is not None and pds.image_shape(label) != shape:
        raise InputError(
            f"{header_path}: {shape} lines, samples, bands, but {label.path.name} says "
            f"{pds.image_shape(label)}; label and header do not belong together: fetch both anew"
        )
    bands = envi.wavelengths(header)
    if bands is None:
        raise InputError(f"{header_path}: no wavelengths in the header, so no spectra; add 'wavelength = {{…}}' to it")
    path = envi.image_file(header)
    placed = envi.map_grid(header)
    column, column_files, remarks = _column_product(header_path, shape[:2]) if name is not None else (None, [], [])
    if placed is None:
        remarks = [*remarks, "the header has no map info: the maps will have no coordinates"]
    ignored = envi.fill_value(header)
    sensor = name.sensor if name is not None else ""
    return Observation(
        product=label.product_id if label is not None else path.stem,
        sensor=sensor,
        pixels=image.open_pixels(path, header.layout),
        fill=tuple({crism.FILL} if name is not None else set()) + (() if ignored is None else (ignored,)),
        scale=envi.scale_factor(header),
        wavelength=bands,
        wavelength_source="header",
        listed_good=envi.listed_good(header) & crism.trusted(sensor, bands),
        grid=Grid(shape[0], shape[1], *(placed or (None, None))),
        facts=label.facts if label is not None else {},
        files=(path, header_path, *([label.path] if label is not None else []), *column_files),
        column=column,
        remarks=tuple(remarks),
    )


def _column_product(header_path: Path, shape: tuple[int, int]) -> tuple[NDArray[Any] | None, list[Path], list[str]]:
    """Detector column of each map pixel from the IN product beside an IF product, its files, and remarks."""
    other = re.sub(r"_if(?=\d)", "_in", header_path.name, count=1, flags=re.IGNORECASE)
    found = image.find(header_path.parent, other)
    if found is None or found == header_path:
        return None, [], [f"no IN product {other} beside the cube: columns cannot be evened out"]
    header = envi.read_header(found)
    if header.layout.shape[:2] != shape:
        raise InputError(
            f"{found}: {header.layout.shape[:2]} lines and samples do not fit the cube's {shape}; it is of "
            "another observation: fetch it anew"
        )
    path = envi.image_file(header)
    band = envi.band_named(header, "IR Sample")
    return image.open_pixels(path, header.layout)[:, :, band], [path, found], []
