"""Class spectra on disk: long-form CSV, ENVI spectral libraries and netCDF. The same spectra give the same bytes."""

import csv
import io
import re
from collections.abc import Iterator
from math import isfinite
from pathlib import Path

import numpy as np
import xarray as xr

from gibbsite import store
from gibbsite.errors import InputError
from gibbsite.spectra import Classes, ClassSpectra, Floats, Statistics

HEAD = ("code", "name", "is_known", "wavelength_um", "n_pixels")
QUANTITIES = {
    "": ("reflectance", "I/F"),
    "ratio_": ("ratio", "I/F over that of bland pixels"),
}
"""Prefix of the columns -> field of ClassSpectra, and what it is."""
STATISTICS = {"mean": "mean", "std": "std", "low": "low", "high": "high", "continuum_removed": "removed"}
"""Column -> field of Statistics."""
COLUMNS = (*HEAD, *(prefix + name for prefix in QUANTITIES for name in STATISTICS))
"""Of the long-form table: one row per class and band."""


def write_all(folder: Path, spectra: ClassSpectra, classes: Classes, quantiles: tuple[float, float]) -> None:
    """Write spectra.csv, spectra.nc and three spectral libraries (.sli with .hdr) into the folder."""
    store.write_text(folder / "spectra.csv", table_text(spectra, classes))
    write_library(folder / "spectra.sli", spectra.wavelength, spectra.reflectance.mean, classes)
    write_library(folder / "spectra_ratio.sli", spectra.wavelength, spectra.ratio.mean, classes)
    write_library(folder / "spectra_continuum_removed.sli", spectra.wavelength, spectra.ratio.removed, classes)
    write_netcdf(folder / "spectra.nc", spectra, classes, quantiles)


def table_text(spectra: ClassSpectra, classes: Classes) -> str:
    """The long-form CSV: one row per class and band, empty fields where a class has no value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    values = np.stack([values for _, _, values in _layers(spectra)], axis=-1)
    for k, item in enumerate(classes):
        head = (item["code"], item["name"], str(bool(item["is_known"])).lower())
        for b, wavelength in enumerate(spectra.wavelength.tolist()):
            row = [f"{value:.7g}" if isfinite(value) else "" for value in values[k, b].tolist()]
            writer.writerow((*head, f"{wavelength:.6f}", int(spectra.n_pixels[k, b]), *row))
    return text.getvalue()


def read_table(path: Path, classes: Classes) -> ClassSpectra:
    """The spectra of these classes, in their order, from a table of the spectra step."""
    rows: dict[int, list[dict[str, str]]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                rows.setdefault(int(row["code"]), []).append(row)
        columns = [rows[int(item["code"])] for item in classes]
        number = {name: _numbers(columns, name) for name in COLUMNS[3:]}
    except OSError as error:
        raise InputError(f"{path}: cannot read the spectra ({error.strerror}); run the spectra step") from None
    except (KeyError, IndexError, TypeError, ValueError):
        raise InputError(
            f"{path}: not a table of the spectra of this model's {len(classes)} classes; run the spectra step anew"
        ) from None
    quantities = {
        field: Statistics(**{own: number[prefix + name] for name, own in STATISTICS.items()})
        for prefix, (field, _) in QUANTITIES.items()
    }
    wavelength = number["wavelength_um"][0] if classes else np.zeros(0)
    return ClassSpectra(wavelength, number["n_pixels"].astype(np.int64), **quantities)


def write_library(path: Path, wavelength: Floats, values: Floats, classes: Classes) -> None:
    """Write the values (n_classes, n_bands) as an ENVI spectral library: `path` (.sli) and its header (.hdr)."""
    # A header has no way to quote a comma or a brace within a name.
    names = [re.sub(r"[{}]", "'", re.sub(r"[,\s]+", " ", str(item["name"]))) for item in classes]
    header = {
        "description": "{class spectra, NaN where a class has no value}",
        "samples": len(wavelength),
        "lines": len(classes),
        "bands": 1,
        "header offset": 0,
        "file type": "ENVI Spectral Library",
        "data type": 4,
        "interleave": "bsq",
        "byte order": 0,
        "data ignore value": "NaN",
        "wavelength units": "Micrometers",
        "spectra names": "{" + ", ".join(names) + "}",
        "wavelength": "{" + ", ".join(f"{value:.6f}" for value in wavelength) + "}",
    }
    with store.writing(path) as part:
        part.write_bytes(np.ascontiguousarray(values, "<f4").tobytes())
    fields = "".join(f"{key} = {value}\n" for key, value in header.items())
    store.write_text(path.with_suffix(".hdr"), f"ENVI\n{fields}")


def write_netcdf(path: Path, spectra: ClassSpectra, classes: Classes, quantiles: tuple[float, float]) -> None:
    """Write everything as netCDF (version 3), with dimensions class and band."""
    variables = {
        f"{field}_{name}": (("class", "band"), values, {"long_name": f"{name.replace('_', ' ')} of {quantity}"})
        for (field, quantity), name, values in _layers(spectra)
    }
    dataset = xr.Dataset(
        {"n_pixels": (("class", "band"), spectra.n_pixels.astype(np.int32)), **variables},
        coords={
            "wavelength": ("band", spectra.wavelength, {"units": "micrometer"}),
            "code": ("class", np.array([item["code"] for item in classes], np.int32)),
            "name": ("class", np.array([item["name"] for item in classes], dtype=object)),
            "is_known": ("class", np.array([item["is_known"] for item in classes], np.int8)),
        },
        attrs={"low_quantile": quantiles[0], "high_quantile": quantiles[1]},
    )
    with store.writing(path) as part:
        dataset.to_netcdf(part, engine="scipy")


def _layers(spectra: ClassSpectra) -> Iterator[tuple[tuple[str, str], str, Floats]]:
    """Quantity, name and values (n_classes, n_bands) of all statistics, in the order of the columns."""
    for quantity in QUANTITIES.values():
        for name, own in STATISTICS.items():
            yield quantity, name, getattr(getattr(spectra, quantity[0]), own)


def _numbers(columns: list[list[dict[str, str]]], name: str) -> Floats:
    rows = [[float(row[name] or "nan") for row in column] for column in columns]
    return np.array(rows, dtype=np.float64).reshape(len(columns), len(columns[0]) if columns else 0)
