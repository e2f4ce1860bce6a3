"""Known classes from rasters on the scene's own pixels.

A GeoTIFF of class numbers, named by tags CLASS_<value>, by its category names or, with a colour table alone, by their
numbers; a mask per class, as bands of one GeoTIFF or as files of one folder; an ENVI classification image. 0 is always
"no class".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gibbsite import envi, image, raster, raster_grid
from gibbsite.errors import InputError
from gibbsite.labels import Claim, Found
from gibbsite.scene import Grid

EXPECTED = "a raster of classes (GeoTIFF with tags CLASS_<value>=<name>, or an ENVI classification image)"
NO_NAME = {"unclassified", "unlabelled", "unlabeled", "background", "masked pixels", "none", "no data", "nodata", ""}
"""How files call pixels without a class, in small letters."""
NO_COLOUR = (0, 0, 0)
"""GDAL fills the entries of a colour table that nobody set with black."""
SUFFIXES = (".tif", ".tiff")
"""Of masks in a folder."""


@dataclass(frozen=True, eq=False)
class _Numbers:
    """A raster of class numbers."""

    value: NDArray[Any]
    """(y, x) 0 for none."""
    names: Mapping[int, str]
    """Of the numbers above 0."""
    colours: Mapping[int, str] = field(default_factory=dict)
    """`#rrggbb` of the numbers that have one."""


def read(path: Path, cube: xr.Dataset, expected: str = EXPECTED) -> tuple[Found, list[Path]]:
    """What the raster, or the folder of masks, gives to each class, and the files it consists of."""
    if path.is_dir():
        return _read_folder(path, cube)
    if path.suffix.lower() == ".hdr" or _is_envi(path, expected):
        return _read_envi(path, cube)
    files = raster.files(path, expected)
    raster_grid.check(path, raster.read_grid(path), cube)
    with raster.open_raster(path) as opened:
        n_bands = opened.count
    claims = _band_masks(path) if n_bands > 1 else _claims(path, _read_numbers(path))
    return Found(claims), files


def _claims(path: Path, numbers: _Numbers) -> list[Claim]:
    if not np.issubdtype(numbers.value.dtype, np.integer):
        raise InputError(
            f"{path}: found {numbers.value.dtype} values, expected whole class numbers; save it as uint8 or uint16"
        )
    flat = numbers.value.ravel()
    unnamed = sorted(set(np.unique(flat[flat > 0]).tolist()) - set(numbers.names))
    if unnamed:
        raise InputError(
            f"{path}: value {unnamed[0]} has no name; add it (a tag CLASS_{unnamed[0]}, in ENVI one of the class "
            "names), or set it to 0"
        )
    number_of: dict[str, int] = {}
    for number, name in numbers.names.items():
        if number_of.setdefault(name, number) != number:
            raise InputError(
                f"{path}: class named twice, {number_of[name]} and {number} are both {name!r}; "
                "give each value its own name"
            )
    return [Claim(name, np.flatnonzero(flat == n), numbers.colours.get(n)) for n, name in numbers.names.items()]


# --- GeoTIFF


def _read_numbers(path: Path) -> _Numbers:
    value, colours = _read_band(path, 1), _colour_table(path)
    names = raster.class_names(path) or _category_names(path)
    names = {number: name for number, name in names.items() if number > 0}
    if not names and colours and np.issubdtype(value.dtype, np.integer):
        # A colour table says that numbers are classes, though not which.
        names = {int(number): str(number) for number in np.unique(value[value > 0])}
    if not names:
        raise InputError(f"{path}: no tag CLASS_<value>; expected one per class, such as CLASS_1=olivine")
    return _Numbers(value, names, colours)


def _read_band(path: Path, number: int) -> NDArray[Any]:
    """The band (y, x), 0 where it has no data."""
    with raster.open_raster(path) as opened:
        value = raster.read_rows(opened, 0, opened.height, number)
        nodata = opened.nodatavals[number - 1]
    absent = np.zeros(value.shape, bool) if nodata is None else value == nodata
    if np.issubdtype(value.dtype, np.floating):
        absent |= np.isnan(value)
    return np.where(absent, value.dtype.type(0), value)


def _colour_table(path: Path) -> dict[int, str]:
    with raster.open_raster(path) as opened:
        try:
            table = opened.colormap(1)
        except ValueError:
            return {}
    return {
        number: f"#{red:02x}{green:02x}{blue:02x}"
        for number, (red, green, blue, opacity) in table.items()
        if opacity and (red, green, blue) != NO_COLOUR
    }


def _category_names(path: Path) -> dict[int, str]:
    """Class number -> name as GDAL keeps category names, in a file beside the raster."""
    side = image.find(path.parent, path.name + ".aux.xml")
    if side is None:
        return {}
    try:
        root = ElementTree.parse(side).getroot()
    except ElementTree.ParseError as error:
        raise InputError(f"{side}: not readable as XML ({error}); save the raster anew, or remove it") from None
    listed = root.findall("PAMRasterBand[@band='1']/CategoryNames/Category")
    names = {number: (item.text or "").strip() for number, item in enumerate(listed)}
    return {number: name for number, name in names.items() if name.lower() not in NO_NAME}


# --- masks


def _band_masks(path: Path) -> list[Claim]:
    with raster.open_raster(path) as opened:
        names = opened.descriptions
    if not all(names) or len(set(names)) < len(names):
        raise InputError(
            f"{path}: found {len(names)} bands named {', '.join(map(repr, names))}, expected one band of class "
            "numbers, or a mask per class with the class as its band's description"
        )
    return [_mask(path, name, _read_band(path, number)) for number, name in enumerate(names, start=1)]


def _read_folder(path: Path, cube: xr.Dataset) -> tuple[Found, list[Path]]:
    masks = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
    if not masks:
        raise InputError(f"{path}: a folder without masks; expected a GeoTIFF per class, named after it")
    claims, files = [], []
    for mask in masks:
        files += raster.files(mask, "the mask of a class (GeoTIFF)")
        raster_grid.check(mask, raster.read_grid(mask), cube)
        with raster.open_raster(mask) as opened:
            if opened.count != 1:
                raise InputError(f"{mask}: found {opened.count} bands, expected one, the mask of class {mask.stem!r}")
        claims.append(_mask(mask, mask.stem, _read_band(mask, 1)))
    return Found(claims), files


def _mask(path: Path, name: str, value: NDArray[Any]) -> Claim:
    found = np.unique(value[value != 0])
    if len(found) > 1:
        raise InputError(
            f"{path}: the mask of class {name!r} holds {found[0]:g} and {found[1]:g}; expected 0 and one other value"
        )
    return Claim(name, np.flatnonzero(value))


# --- ENVI


def _is_envi(path: Path, expected: str) -> bool:
    with raster.open_raster(path, expected) as opened:
        return bool(opened.driver == "ENVI")


def _read_envi(path: Path, cube: xr.Dataset) -> tuple[Found, list[Path]]:
    """An ENVI classification image; not by GDAL, which reads a truncated one as zeros."""
    given = image.locate(path)
    beside = envi.header_beside(given)
    if beside is None:
        raise InputError(f"{path}: no ENVI header beside it; fetch it too")
    header = envi.read_header(beside)
    names = [" ".join(name.split()) for name in header.fields.get("class names", "").split(",")]
    if "class names" not in header.fields or header.layout.bands != 1:
        raise InputError(
            f"{header.path}: not an ENVI classification image (found {header.layout.bands} bands and "
            f"{'' if 'class names' in header.fields else 'no '}class names); expected one band and class names"
        )
    stated = header.fields.get("classes", "")
    if stated.isdecimal() and int(stated) != len(names):
        raise InputError(
            f"{header.path}: found {len(names)} class names ({', '.join(names)}), but classes = {stated}; names are "
            "parted by commas, so none may have one: mend the header"
        )
    place = envi.map_grid(header)
    grid = Grid(header.layout.lines, header.layout.samples, *(place or ()))
    raster_grid.check(path, grid, cube)
    pixels = envi.image_file(header, given)
    value = np.asarray(image.open_pixels(pixels, header.layout)[:, :, 0])
    fill = envi.fill_value(header)
    value = value if fill is None else np.where(value == fill, value.dtype.type(0), value)
    if names[0].lower() not in NO_NAME and (value == 0).any():
        raise InputError(
            f"{header.path}: class 0 is named {names[0]!r}, but 0 stands for pixels without a class; "
            "number the classes from 1 and call the first Unclassified"
        )
    named = {number: name for number, name in enumerate(names) if number and name.lower() not in NO_NAME}
    value = np.where(np.isin(value, [n for n, name in enumerate(names) if name.lower() in NO_NAME]), 0, value)
    colours = _lookup(header, len(names))
    numbers = _Numbers(value, named, {n: colour for n, colour in enumerate(colours) if n in named})
    return Found(_claims(header.path, numbers)), [header.path, pixels]


def _lookup(header: envi.Header, n_classes: int) -> list[str]:
    """The colours of the header's `class lookup`, one per class; none when it has none."""
    if "class lookup" not in header.fields:
        return []
    parts = header.fields["class lookup"].replace(",", " ").split()
    is_right = len(parts) == 3 * n_classes and all(part.isdecimal() and int(part) < 256 for part in parts)
    if not is_right:
        raise InputError(
            f"{header.path}: found {len(parts)} entries in 'class lookup' for {n_classes} class names, expected "
            f"{3 * n_classes} numbers from 0 to 255; save it anew"
        )
    level = [int(part) for part in parts]
    return [f"#{level[i]:02x}{level[i + 1]:02x}{level[i + 2]:02x}" for i in range(0, len(level), 3)]
