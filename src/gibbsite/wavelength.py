"""The wavelengths of a TRR3 cube: from its WA record, or nominal.

On the detector the wavelength of a band drifts over the columns (smile, about 10 nm in L). The cube has the wavelengths
of the centre scene column, and beside them, with a WA record, those of every column.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gibbsite import crism, image, pds
from gibbsite.errors import InputError


@dataclass(frozen=True)
class Wavelengths:
    """Wavelengths in file order, and where they are from."""

    values: NDArray[np.float64]
    """µm (band)."""
    source: str
    """`WA CDR <name>` or `nominal`."""
    by_column: NDArray[np.float64] | None = None
    """µm (sample, band), NaN where the record has fill; None without a record."""
    files: tuple[Path, ...] = ()
    """The files read for them."""


def of_trr3(label: pds.Label, cube: pds.ImageFile, sensor: str, given: Path | None) -> Wavelengths:
    """Wavelengths of the cube: of the WA record `given`, else of the one its label names, else nominal.

    The record that the label names counts only when it is in the label's folder.
    """
    row = _detector_rows(label, cube, sensor)
    record = given if given is not None else _named_record(label)
    if record is None:
        return Wavelengths(crism.nominal_wavelength(sensor, row), "nominal")
    return _from_record(image.locate(record), label, cube, sensor)


def of_rows(label: pds.Label, file: pds.ImageFile, sensor: str, rows_of: str) -> Wavelengths | None:
    """Wavelengths of an image with detector rows behind it: a `cube`, or a calibration `record` (nominal).

    None, when the record has no rows, or is of a sensor that has no nominal wavelengths.
    """
    if rows_of == "cube":
        return of_trr3(label, file, sensor, None)
    row = pds.row_numbers(file)
    if row is None or sensor not in ("L", "S"):
        return None
    return Wavelengths(crism.nominal_wavelength(sensor, row), "nominal")


def _detector_rows(label: pds.Label, cube: pds.ImageFile, sensor: str) -> NDArray[np.int64]:
    """Detector row of each band: from the table behind the image, else those of a hyperspectral image."""
    row = pds.row_numbers(cube)
    if row is None:
        row = crism.all_rows(sensor)
    low, high = crism.all_rows(sensor).min(), crism.all_rows(sensor).max()
    is_plausible = row.size == cube.layout.bands == np.unique(row).size and low <= row.min() and row.max() <= high
    if not is_plausible:
        raise InputError(
            f"{cube.path}: the detector rows behind the image are not those of {cube.layout.bands} {sensor} "
            f"bands; the image and {label.path.name} do not belong together: fetch both anew"
        )
    return row


def _named_record(label: pds.Label) -> Path | None:
    """The label (or image) of the WA record that the cube's label names, if it is in the same folder."""
    name = label.facts.get("MRO:WAVELENGTH_FILE_NAME")
    found = image.find(label.path.parent, str(name)) if name else None
    return found if found is not None and image.sibling(found, ".lbl") else None


def _from_record(path: Path, label: pds.Label, cube: pds.ImageFile, sensor: str) -> Wavelengths:
    record_label_path = image.sibling(path, ".lbl")
    if record_label_path is None:
        raise InputError(f"{path}: no label beside it; put {path.stem}.LBL in the same folder")
    record_label = pds.read_label(record_label_path)
    if "_WA" not in record_label.product_id:
        raise InputError(f"{path}: found product {record_label.product_id}, expected a WA (wavelength) record")
    record = pds.image_file(record_label)
    _check_match(record_label, record, cube, sensor)
    nm = pds.open_pixels(record)[0].astype(np.float64)
    nm[nm == crism.FILL] = np.nan
    row = _detector_rows(label, cube, sensor)
    values = _centre_column(nm, crism.nominal_wavelength(sensor, row) * 1000, path)
    source, files = f"WA CDR {record_label.product_id}", (record_label.path, record.path)
    return Wavelengths(values / 1000, source, nm / 1000, files)


def _check_match(label: pds.Label, record: pds.ImageFile, cube: pds.ImageFile, sensor: str) -> None:
    """Nothing, when the record is of the cube's sensor, binning and bands."""
    found_sensor = str(label.facts.get("MRO:SENSOR_ID", sensor)).upper()
    if found_sensor != sensor:
        raise InputError(f"{label.path}: wavelengths of sensor {found_sensor}, but the cube is of sensor {sensor}")
    expected = (1, cube.layout.samples, cube.layout.bands)
    if record.layout.shape != expected:
        raise InputError(
            f"{label.path}: {record.layout.shape} lines, samples, bands do not fit the cube's {expected}; "
            "give the WA record of the cube's binning and wavelength filter"
        )
    theirs, ours = pds.row_numbers(record), pds.row_numbers(cube)
    if theirs is not None and ours is not None and not np.array_equal(theirs, ours):
        raise InputError(f"{label.path}: other detector rows than the cube's; give the WA record of its filter")


def _centre_column(nm: NDArray[np.float64], nominal: NDArray[np.float64], path: Path) -> NDArray[np.float64]:
    """Wavelengths (band) at the middle of the columns (sample, band) that have any, without holes.

    Real L records hold fill for the first band; it gets the nominal value shifted as its neighbour is.
    """
    columns = np.flatnonzero(np.isfinite(nm).any(axis=1))
    if not columns.size:
        raise InputError(f"{path}: the WA record holds only fill; fetch it anew")
    values = nm[(columns[0] + columns[-1]) // 2]
    known = np.flatnonzero(np.isfinite(values))
    if not known.size:
        raise InputError(f"{path}: the centre column of the WA record holds only fill; fetch it anew")
    holes = np.flatnonzero(~np.isfinite(values))
    nearest = known[np.abs(holes[:, None] - known).argmin(axis=1)]
    whole = values.copy()
    whole[holes] = nominal[holes] + (values - nominal)[nearest]
    return whole
