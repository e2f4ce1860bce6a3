"""Volcano-scan records (ADR VS, and the older AT CDR): how much light the air of Mars lets through.

They were measured over Olympus Mons, its foot divided by its summit. A record has one spectrum per detector column, and
an ADR two artefact spectra more, one for each pair of wavelengths by which a scene's air is commonly scaled.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gibbsite import crism, image, pds
from gibbsite.errors import InputError

Floats = NDArray[np.float64]

SCALING_PAIRS = ((2.007, 1.980), (2.011, 1.899))
"""µm: the pair of each artefact spectrum, in the order of the record's lines (McGuire's, Pelkey's)."""

_MOST_OFF = 0.003
"""µm: half the distance of two bands. A band of the cube further than this from any of the record has none there."""


@dataclass(frozen=True, eq=False)
class VolcanoScan:
    """Transmission of the air, seen by every detector column."""

    product: str
    """Product id of the record."""
    wavelength: Floats
    """µm (band), nominal, rising."""
    transmission: Floats
    """(column, band) NaN where the record has fill; about 1 outside the gas bands, 0.45 at 2.007 µm."""
    artefact: Floats
    """(pair, column, band) I/F to add after the correction, by the pairs of SCALING_PAIRS; no pair in an AT record."""
    files: tuple[Path, ...]
    """The files read."""


def read_volcano_scan(given: Path) -> VolcanoScan:
    """The record that `given` (its .lbl or .img, in any letter case) belongs to."""
    path = image.locate(given)
    label_path = image.sibling(path, ".lbl")
    if label_path is None:
        raise InputError(f"{path}: no label beside it; put {path.stem}.LBL in the same folder")
    label = pds.read_label(label_path)
    name = crism.parse_calibration(label.product_id)
    if name is None or name.kind not in ("VS", "AT"):
        raise InputError(f"{path}: found product {label.product_id}, expected a volcano scan (ADR…_VS… or CDR…_AT…)")
    if name.sensor != "L":
        raise InputError(f"{path}: transmission of sensor {name.sensor}, expected L: the gas bands are all in L")
    file = pds.image_file(label)
    expected = 1 + len(SCALING_PAIRS) if name.kind == "VS" else 1
    row = pds.row_numbers(file)
    if row is None or file.layout.lines != expected:
        raise InputError(
            f"{path}: {file.layout.lines} lines and {file.n_rows} detector rows, expected {expected} lines "
            f"and a row for each of {file.layout.bands} bands; fetch it anew"
        )
    values = pds.open_pixels(file).astype(np.float64)
    values[values == crism.FILL] = np.nan
    wavelength = crism.nominal_wavelength("L", row)
    order = np.argsort(wavelength)
    return VolcanoScan(
        product=label.product_id,
        wavelength=wavelength[order],
        transmission=values[0][:, order],
        artefact=values[1:, :, order],
        files=(file.path, label_path),
    )


def fit_to_cube(scan: VolcanoScan, wavelength: Floats, n_columns: int) -> VolcanoScan:
    """The record on the bands (`wavelength`, µm) and the `n_columns` detector columns of a cube.

    Bands are matched by wavelength, those without a match are NaN. Columns of a finer record are averaged, NaN where
    one of them has fill, as the detector's own binning does.
    """
    n_fine = scan.transmission.shape[0]
    if n_fine % n_columns:
        raise InputError(
            f"{scan.files[0]}: {n_fine} columns do not fit the cube's {n_columns}; give the record of its binning, "
            "or the unbinned one (VS0…)"
        )
    nearest = np.abs(scan.wavelength[None, :] - wavelength[:, None]).argmin(axis=1)
    has_match = np.abs(scan.wavelength[nearest] - wavelength) <= _MOST_OFF
    if not has_match.any():
        raise InputError(
            f"{scan.files[0]}: none of its bands ({scan.wavelength[0]:.3f} to {scan.wavelength[-1]:.3f} µm) is one of "
            f"the cube's ({wavelength[0]:.3f} to {wavelength[-1]:.3f} µm); volcano scans are for L cubes"
        )

    def fitted(values: Floats) -> Floats:
        binned = values.reshape(*values.shape[:-2], n_columns, n_fine // n_columns, values.shape[-1]).mean(axis=-2)
        return np.where(has_match, binned[..., nearest], np.nan)

    return VolcanoScan(scan.product, wavelength, fitted(scan.transmission), fitted(scan.artefact), scan.files)
