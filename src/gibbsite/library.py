"""Spectral libraries from disk: ENVI (.sli), CSV, and folders of CRISM type spectra (PDS3 labels with tables)."""

import csv
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gibbsite import envi, image
from gibbsite.absorptions import TABLE
from gibbsite.errors import InputError
from gibbsite.matching import Reference

Floats = NDArray[np.float64]

TYPE_COLUMNS = ("CRISM RATIOED I/F CORRECTED", "CRISM RATIOED I/F")
"""Of a type spectrum's table, the first that is there."""
FILL = 65535.0
"""Stands for no value in archive products."""
LONG_FORM = ("name", "wavelength_um")
"""Columns that tell a table with one row per spectrum and band, as the spectra step writes it."""


def built_in() -> list[Reference]:
    """The spectra of the built-in table of absorption bands."""
    wavelength = np.arange(0.95, 2.65, 0.005)
    return [Reference(item.name, item.source, wavelength, item.spectrum(wavelength)) for item in TABLE]


def read(path: Path) -> list[Reference]:
    """The spectra of a library; an InputError tells what is wrong with it."""
    if path.is_dir():
        return _read_folder(path)
    if not path.is_file():
        raise InputError(f"{path}: no such spectral library; expected a .sli or .csv file or a folder of type spectra")
    found = _read_csv(path) if path.suffix.lower() == ".csv" else _read_envi(path)
    if not found:
        raise InputError(f"{path}: a library without spectra; give another")
    return found


def _read_folder(folder: Path) -> list[Reference]:
    labels = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".lbl")
    if not labels:
        raise InputError(f"{folder}: no label (.lbl) in it; expected a folder of CRISM type spectra with their labels")
    return [_read_type_spectrum(path) for path in labels]


def _read_type_spectrum(path: Path) -> Reference:
    """The ratioed spectrum of one label and its table."""
    with warnings.catch_warnings():
        # As in pds.py: pvl warns of its own old names when it is imported.
        warnings.simplefilter("ignore")
        import pvl
    try:
        label = pvl.load(path)
        name, columns = str(label["^TABLE"]), label["TABLE"].getall("COLUMN")
        place = [str(column["NAME"]).upper() for column in columns]
        wanted = next(place.index(column) for column in TYPE_COLUMNS if column in place)
    except Exception as error:  # pvl raises many kinds for broken text; all mean the same to the user
        raise InputError(f"{path}: not the label of a CRISM type spectrum ({error!r}); leave it out") from None
    table = image.find(path.parent, name)
    if table is None:
        raise InputError(f"{path}: names the table {name}, which is not beside it; put both in one folder")
    try:
        values = np.loadtxt(table, delimiter=",", ndmin=2)
        wavelength, spectrum = values[:, place.index("WAVELENGTH")], values[:, wanted]
    except (ValueError, IndexError) as error:
        raise InputError(f"{table}: not the table that {path.name} describes ({error}); fetch it anew") from None
    phase = str(label.get("MRO:TYPESPEC_PHASE", path.stem)).replace("_", " ").lower()
    return _reference(phase, f"type spectrum {label.get('SOURCE_PRODUCT_ID', path.stem)}", wavelength, spectrum)


def _read_envi(path: Path) -> list[Reference]:
    header_path = envi.header_beside(path)
    if header_path is None:
        raise InputError(f"{path}: no header (.hdr) beside it; expected an ENVI spectral library, or a .csv file")
    header = envi.read_header(header_path)
    layout = header.layout
    wavelength = envi.wavelengths(header, layout.samples)
    names = [_text(part) for part in header.fields.get("spectra names", "").split(",")]
    if layout.bands != 1 or wavelength is None or len(names) != layout.lines:
        raise InputError(
            f"{header_path}: {layout.lines} lines, {layout.bands} bands, {len(names)} spectra names; expected an ENVI "
            "spectral library: one band, a name for every line, a wavelength for every sample"
        )
    stored = envi.image_file(header, path)
    values = np.fromfile(stored, layout.dtype, layout.lines * layout.samples, offset=layout.offset)
    fill = envi.fill_value(header)
    # As they are stored: neither -1.23e34 nor a scaled -9999 is the same number in double precision.
    is_fill = np.isin(values, [] if fill is None else np.array([fill]).astype(values.dtype))
    rows = np.where(is_fill, np.nan, values.astype(np.float64) / envi.scale_factor(header))
    rows = rows.reshape(layout.lines, layout.samples)
    return [_reference(name, path.name, wavelength, row) for name, row in zip(names, rows, strict=True)]


def _read_csv(path: Path) -> list[Reference]:
    """One row per spectrum and band (`name`, `wavelength_um`, `ratio_mean` or `value`), or one column per spectrum."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head, *rows = (row for row in csv.reader(file) if row)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{path}: cannot read the library ({error}); expected CSV with a header line") from None
    head = [part.strip() for part in head]
    try:
        if set(LONG_FORM) <= set(head):
            return _long_form(path, head, rows)
        values = np.array([[float(part or "nan") for part in row] for row in rows]).reshape(len(rows), len(head))
    except ValueError:
        raise InputError(
            f"{path}: not a table of numbers; expected a first column of wavelengths and one column per spectrum"
        ) from None
    return [_reference(name, path.name, values[:, 0], values[:, k]) for k, name in enumerate(head) if k]


def _long_form(path: Path, head: list[str], rows: list[list[str]]) -> list[Reference]:
    column = next((name for name in ("ratio_mean", "mean", "value") if name in head), None)
    if column is None:
        raise InputError(f"{path}: found the columns {', '.join(head)}; expected ratio_mean, mean or value among them")
    spectra: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        field = dict(zip(head, row, strict=True))
        spectra.setdefault(field["name"], []).append((float(field["wavelength_um"]), float(field[column] or "nan")))
    return [_reference(name, path.name, *np.array(points).T) for name, points in spectra.items()]


def _reference(name: str, source: str, wavelength: Floats, spectrum: Floats) -> Reference:
    """The reference in µm and rising order, fill taken out."""
    # No imaging spectrometer reaches 100 µm: larger numbers are nm.
    wavelength = wavelength * (1e-3 if wavelength.max(initial=0.0) > 100 else 1.0)
    order = np.argsort(wavelength, kind="stable")
    return Reference(name, source, wavelength[order], np.where(np.abs(spectrum) >= FILL, np.nan, spectrum)[order])


def _text(part: str) -> str:
    """A name from a header, which was read byte by byte."""
    raw = " ".join(part.split()).encode("latin-1")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
