"""What is known of the instrument CRISM: product names, bands not to trust, nominal wavelengths."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FILL = 65535.0
"""What CRISM products hold where there is no measurement."""

_NAME = re.compile(
    r"(?P<observation>[a-z]{3}[0-9a-f]{8})_(?P<counter>[0-9a-f]{2})_"
    r"(?P<activity>[a-z]{2})(?P<macro>[0-9a-z]{3})(?P<sensor>[slj])_(?P<kind>trr|ddr|ter|mtr)(?P<version>[0-9a-z])",
    re.IGNORECASE,
)
_CALIBRATION = (
    re.compile(
        r"cdr4\d{11}_(?P<kind>[a-z]{2})\d(?P<binning>[0-3])\d{4}\d(?P<sensor>[slj])_(?P<version>[0-9a-z])",
        re.IGNORECASE,
    ),
    re.compile(
        r"adr\d{11}_[0-9a-f]{5}_(?P<kind>vs)(?P<binning>[0-3])\d(?P<sensor>[slj])_(?P<version>[0-9a-z])",
        re.IGNORECASE,
    ),
)
_TILE = re.compile(
    r"(?P<tile>t\d{4})_mrr(?P<activity>[a-z]{2})_(?P<place>\d{2}[ns]\d{3})_(?P<resolution>\d{4})_(?P<version>[0-9a-z])",
    re.IGNORECASE,
)
_BINNING = {"0": 1, "1": 2, "2": 5, "3": 10}
"""Columns binned into one, by the digit in the names of calibration records."""

_BAD_NM = {
    "L": ((0.0, 1021.0), (2692.0, 2703.0), (3926.0, np.inf)),
    "S": ((0.0, 407.0), (641.0, 686.0), (1025.0, np.inf)),
}
"""Detector ends and filter seams, nm: the list of the CRISM Analysis Toolkit."""

_NOMINAL = {
    "L": ((2285.59748, -1645.14667, 12.57897), (2284.57290, -1653.43796, 10.34053)),
    "S": ((788.00607, 1632.34610, 14.85350), (788.00607, 1632.34610, 14.85350)),
}
"""Wavelength (nm) at the centre scene column, c0 + c1 t + c2 t² with t = (detector row − 250)/250, before the
seam row and from it on. Fitted to the unbinned WA records; L's is joined of two pieces at 2.5 µm."""

_SEAM_ROW = 218

_ALL_ROWS = {"L": (*range(179), *range(187, 446)), "S": tuple(range(185, 292))}
"""Detector rows of the hyperspectral bands in file order; rows 179-186 of L are the gap at 2.70-2.76 µm."""


@dataclass(frozen=True)
class ProductName:
    """The parts of a CRISM product name that say what it is and what it belongs to. All upper case."""

    observation: str
    """Class and id, such as FRT0000ACE5."""
    counter: str
    """Which image of the observation; 07 is the usual central scan."""
    activity: str
    """What it holds: IF reflectance, RA radiance, DE geometry, IN, SR, SU, …"""
    sensor: str
    """L (infrared), S (visible) or J (both joined)."""
    kind: str
    """TRR (sensor space), DDR, TER, MTR (map)."""
    macro: str
    """How the image was commanded."""
    version: str
    """Of the calibration."""


@dataclass(frozen=True)
class CalibrationName:
    """The parts of the name of a calibration record (CDR4…, ADR…)."""

    kind: str
    """WA wavelengths, VS or AT transmission of the air, …"""
    binning: int
    """Detector columns binned into one."""
    sensor: str
    """L, S or J."""
    version: str
    """Of the record."""


@dataclass(frozen=True)
class TileName:
    """The parts of the name of a multispectral map tile (MRDR)."""

    tile: str
    """Its number, such as T0897."""
    activity: str
    """What it holds: AL albedo, IF reflectance, SU summary, DE geometry, WV wavelengths."""
    place: str
    """Latitude and longitude of its corner, such as 05S113."""
    resolution: int
    """Pixels per degree."""
    version: str
    """Of the tile."""


def parse_name(text: str) -> ProductName | None:
    """The parts of a product id or file name; None when it is not that of a targeted CRISM product."""
    match = _NAME.match(text)
    if match is None:
        return None
    return ProductName(**{key: value.upper() for key, value in match.groupdict().items()})


def parse_calibration(text: str) -> CalibrationName | None:
    """The parts of the name of a calibration record; None when it is not one."""
    match = next(filter(None, (pattern.match(text) for pattern in _CALIBRATION)), None)
    if match is None:
        return None
    kind, binning, sensor, version = (match[key].upper() for key in ("kind", "binning", "sensor", "version"))
    return CalibrationName(kind, _BINNING[binning], sensor, version)


def parse_tile(text: str) -> TileName | None:
    """The parts of the name of a multispectral map tile; None when it is not one."""
    match = _TILE.match(text)
    if match is None:
        return None
    tile, activity, place, resolution, version = (part.upper() for part in match.groups())
    return TileName(tile, activity, place, int(resolution), version)


def trusted(sensor: str, wavelength: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each band (wavelength in µm) is outside the known bad ranges of the sensor."""
    good = np.ones(wavelength.shape, dtype=bool)
    for low, high in _BAD_NM.get(sensor, ()):
        good &= ~((wavelength >= low / 1000) & (wavelength <= high / 1000))
    return good


def binned(binning: int) -> str:
    """How many detector columns make one, in words."""
    return "unbinned" if binning == 1 else f"{binning}× binned"


def nominal_wavelength(sensor: str, row: NDArray[np.int64]) -> NDArray[np.float64]:
    """Wavelength (µm) of each detector row of L or S at the centre scene column, without any WA record.

    Within 0.001 nm of the unbinned WA records this was fitted to; the smile over the columns is up to 16 nm.
    """
    t = (np.asarray(row, dtype=np.float64) - 250) / 250
    above, below = (c0 + c1 * t + c2 * t * t for c0, c1, c2 in _NOMINAL[sensor])
    return np.where(np.asarray(row) < _SEAM_ROW, above, below) / 1000


def all_rows(sensor: str) -> NDArray[np.int64]:
    """Detector rows of the 438 (L) or 107 (S) hyperspectral bands, in file order."""
    return np.array(_ALL_ROWS[sensor], dtype=np.int64)
