"""The two CRISM detectors: which wavelength each row and column sees, which columns see the scene.

The polynomials were fitted to the archived wavelength files (WA CDR, version 3 of L and 2 of S; instrument:
Murchie et al. 2007, J. Geophys. Res. 112, E05S03), quadratic in the row and in the column; they give
the archived values within 0.002 nm. Those of the map-projected product, one per row, follow within 0.01 nm.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gibbsite.simulate.fields import Floats, Integers

FILL = 65535.0
"""No data, in every image of the archive."""
COLUMNS = 640
"""Columns of a detector before binning."""
FRAME = {1: 0, 2: 1, 5: 2, 10: 3}
"""The digit that stands for a binning in the names of calibration files."""

Table = tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class Detector:
    """One of the two detectors."""

    sensor: Literal["L", "S"]
    """L: 1.0-3.9 µm, wavelength falls with the band; S: 0.36-1.06 µm, wavelength rises."""
    row: tuple[int, ...]
    """Detector row of each band."""
    scene: tuple[int, int]
    """First and one past the last unbinned column that sees the scene."""
    turn: tuple[float, float]
    """Row at which the scaled row coordinate is 0, and its unit in rows."""
    segments: tuple[tuple[int, Table, tuple[float, float, float], tuple[float, float, float]], ...]
    """From this row on: nm by powers of column and row; of the map product: nm, and band widths in nm."""

    @property
    def n_bands(self) -> int:
        """Bands of an image."""
        return len(self.row)

    def scene_columns(self, binning: int) -> NDArray[np.bool_]:
        """(n_samples) Which binned columns see the scene: those whose every unbinned column does."""
        column = np.arange(COLUMNS)
        inside = (column >= self.scene[0]) & (column < self.scene[1])
        return np.asarray(inside.reshape(-1, binning).all(axis=1))

    def wavelength(self, binning: int) -> Floats:
        """(n_bands, n_samples) Wavelength of every binned pixel in nm, in all columns."""
        column = ((np.arange(COLUMNS) - 320.0) / 320.0)[None, :]
        scaled = self._scaled_row()[:, None]
        found = np.empty((self.n_bands, COLUMNS))
        for first, table, _, _ in self.segments:
            value = sum(
                (part[0] + part[1] * scaled + part[2] * scaled**2) * column**power for power, part in enumerate(table)
            )
            here = np.array(self.row) >= first
            found[here] = np.asarray(value)[here]
        return found.reshape(self.n_bands, -1, binning).mean(axis=2)

    def map_wavelength(self) -> tuple[Floats, Floats]:
        """(n_bands) nm of each band in the map-projected product, and its width, as in the archive."""
        scaled = self._scaled_row()
        found = np.empty((2, self.n_bands))
        for first, _, centre, width in self.segments:
            here = np.array(self.row) >= first
            for line, part in enumerate((centre, width)):
                found[line, here] = (part[0] + part[1] * scaled + part[2] * scaled**2)[here]
        return found[0].round(2), found[1].round(2)

    def _scaled_row(self) -> Floats:
        return (np.array(self.row) - self.turn[0]) / self.turn[1]


L = Detector(
    "L",
    row=(*range(179), *range(187, 446)),
    scene=(29, 633),
    turn=(250.0, 250.0),
    segments=(
        (
            0,
            (
                (2285.5636914673, -1645.9498795058, 11.9001614111),
                (0.7612254999, 25.7405723363, 21.7562395765),
                (9.9925169485, -3.6678186035, -3.2771103135),
            ),
            (2285.6427592284, -1646.0228259140, 11.8373298766),
            (13.9539792104, -4.6091855016, -1.0055937187),
        ),
        (
            219,  # row of band 211: from here on the calibration is that below 2.5 µm
            (
                (2284.6308481414, -1653.4326660292, 10.3767580927),
                (-2.1755116433, -0.1357698429, -1.1578694407),
                (10.263733168, -1.1295167388, -0.0000701679),
            ),
            (2284.7178264533, -1653.4428587185, 10.3808849646),
            (13.9539792104, -4.6091855016, -1.0055937187),
        ),
    ),
)
S = Detector(
    "S",
    row=tuple(range(185, 292)),
    scene=(25, 626),
    turn=(238.0, 53.0),
    segments=(
        (
            0,
            (
                (709.708940, 345.743681, 0.654725165),
                (-1.23805008, 0.78041243, 0.82207825),
                (-7.77085461, -3.30656878, 0.0),
            ),
            (709.67844075, 345.68718093, 0.62547400559),
            (8.8200546727, 0.6491577055, 0.5027894462),
        ),
    ),
)


@dataclass(frozen=True)
class Channels:
    """The bands of an image, with what identifies each on its detector."""

    wavelength: Floats
    """(n_bands, n_samples) or (n_bands, 1), µm."""
    channel: Integers
    """(n_bands) A number that only this row of this detector has."""


def sensor_channels(detector: Detector, binning: int) -> Channels:
    """The bands of an image in sensor space, wavelength by column."""
    return Channels(detector.wavelength(binning) / 1000.0, _channel(detector, np.arange(detector.n_bands)))


def map_bands() -> tuple[tuple[Detector, Integers], ...]:
    """The bands kept in the map-projected product, wavelength rising: of S, then of L."""
    visible = np.r_[11:42, 53:100]  # 0.632-0.709 µm is left out: the boundary of two filters
    infrared = np.r_[7:173, 186:431][::-1]  # 2.66-2.80 µm is left out: the opaque core of carbon dioxide
    return (S, visible), (L, infrared)


def map_channels() -> Channels:
    """The 489 bands of the map-projected product, one wavelength each."""
    wavelength = np.concatenate([detector.map_wavelength()[0][band] for detector, band in map_bands()])
    channel = np.concatenate([_channel(detector, band) for detector, band in map_bands()])
    return Channels(wavelength[:, None] / 1000.0, channel)


def map_widths() -> Floats:
    """(489) Full widths of the bands of the map-projected product, nm."""
    return np.concatenate([detector.map_wavelength()[1][band] for detector, band in map_bands()])


def _channel(detector: Detector, band: Integers) -> Integers:
    return np.array(detector.row, dtype=np.int64)[band] + (1000 if detector.sensor == "S" else 0)
