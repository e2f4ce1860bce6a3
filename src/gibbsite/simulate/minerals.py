"""Reflectance of the minerals in the simulated scenes, from documented absorption bands.

Band centres are those of the source named with each mineral; widths and depths are those of a strong exposure
in a CRISM spectrum (compare the type spectra of Viviano-Beck et al. 2015). Sources:

    Adams 1974              J. Geophys. Res. 79, 4829-4836 (pyroxene)
    Adams & Goullaud 1978   Proc. Lunar Planet. Sci. Conf. 9, 2901-2909 (plagioclase)
    Bell et al. 2000        J. Geophys. Res. 105, 1721-1755 (dust)
    Bishop & Murad 2005     Am. Mineral. 90, 1100-1107 (jarosite, alunite)
    Bishop et al. 2008      Clay Minerals 43, 35-54 (smectites, kaolinite)
    Clark et al. 1990       J. Geophys. Res. 95, 12653-12680 (clays, carbonates, sulfates)
    Ehlmann et al. 2008     Science 322, 1828-1832 (Mg carbonate)
    Gendrin et al. 2005     Science 307, 1587-1591 (polyhydrated sulfate)
    Klima et al. 2007, 2011 Meteorit. Planet. Sci. 42, 235-253; 46, 379-395 (pyroxenes)
    Leask et al. 2018       Geophys. Res. Lett. 45, 12180-12189 (the false bands)
    McGuire et al. 2009     Planet. Space Sci. 57, 809-815 (carbon dioxide in CRISM spectra)
    Sunshine & Pieters 1998 J. Geophys. Res. 103, 13675-13688 (olivine)
    Warren 1984             Appl. Optics 23, 1206-1225 (water ice)
"""

from dataclasses import dataclass

import numpy as np

from gibbsite.simulate.fields import Floats


@dataclass(frozen=True)
class Band:
    """One absorption band."""

    centre: float
    """µm."""
    width: float
    """Full width at half depth, µm."""
    depth: float
    """Share of the light taken away at the centre."""


@dataclass(frozen=True)
class Mineral:
    """Bands over a continuum."""

    name: str
    """What a mineralogist calls it."""
    source: str
    """Where the band centres are published."""
    level: float
    """Reflectance of the continuum at 1.3 µm."""
    slope: float
    """Relative change of the continuum per µm."""
    edge: float
    """Relative drop of the continuum towards the blue, below the ferric edge at 0.58 µm."""
    bands: tuple[Band, ...]
    """The absorptions."""

    def reflectance(self, wavelength: Floats) -> Floats:
        """Reflectance at these wavelengths (µm), same shape."""
        continuum = self.level * (1.0 + self.slope * (wavelength - 1.3))
        continuum = continuum * (1.0 - self.edge / (1.0 + np.exp((wavelength - 0.58) / 0.055)))
        return continuum * transmitted(self.bands, wavelength)


def transmitted(bands: tuple[Band, ...], wavelength: Floats) -> Floats:
    """Share of the light that passes all the bands at these wavelengths (µm)."""
    passed = np.ones_like(wavelength)
    for band in bands:
        passed = passed * (1.0 - band.depth * profile(band, wavelength))
    return passed


def profile(band: Band, wavelength: Floats) -> Floats:
    """The shape of a band, 1 at its centre (a Gaussian in wavelength)."""
    return np.exp(-4.0 * np.log(2.0) * ((wavelength - band.centre) / band.width) ** 2)


def _mineral(
    name: str, source: str, continuum: tuple[float, float, float], *bands: tuple[float, float, float]
) -> Mineral:
    level, slope, edge = continuum
    return Mineral(name, source, level, slope, edge, tuple(Band(*band) for band in bands))


# (level, slope, blue edge), then bands as (centre, width, depth).
MINERALS = (
    _mineral(
        "dust", "Bell et al. 2000", (0.31, -0.02, 0.80),
        (0.53, 0.10, 0.06), (0.86, 0.16, 0.03), (3.00, 0.55, 0.45)
    ),
    _mineral(
        "plagioclase basalt", "Adams & Goullaud 1978", (0.15, -0.05, 0.45),
        (1.28, 0.40, 0.04), (3.00, 0.50, 0.22)
    ),
    _mineral(
        "low-calcium pyroxene", "Adams 1974; Klima et al. 2007", (0.20, 0.00, 0.55),
        (0.92, 0.20, 0.28), (1.85, 0.50, 0.26), (3.00, 0.50, 0.20),
    ),
    _mineral(
        "high-calcium pyroxene", "Adams 1974; Klima et al. 2011", (0.18, 0.00, 0.50),
        (1.02, 0.28, 0.28), (2.28, 0.56, 0.26), (3.00, 0.50, 0.20),
    ),
    _mineral(
        "magnesian olivine", "Sunshine & Pieters 1998", (0.24, 0.03, 0.50),
        (0.86, 0.20, 0.12), (1.05, 0.30, 0.30), (1.25, 0.36, 0.22), (3.00, 0.50, 0.18),
    ),
    _mineral(
        "iron olivine", "Sunshine & Pieters 1998", (0.21, 0.05, 0.50),
        (0.88, 0.24, 0.16), (1.07, 0.36, 0.36), (1.29, 0.44, 0.32), (3.00, 0.50, 0.18),
    ),
    _mineral(
        "nontronite", "Clark et al. 1990; Bishop et al. 2008", (0.29, -0.04, 0.78),
        (0.95, 0.18, 0.08), (1.43, 0.07, 0.08), (1.91, 0.09, 0.20), (2.29, 0.06, 0.22), (2.40, 0.06, 0.10),
        (2.95, 0.50, 0.60),
    ),
    _mineral(
        "saponite", "Clark et al. 1990; Bishop et al. 2008", (0.27, -0.03, 0.68),
        (1.39, 0.06, 0.07), (1.91, 0.09, 0.20), (2.31, 0.06, 0.22), (2.39, 0.06, 0.08), (2.95, 0.50, 0.60),
    ),
    _mineral(
        "magnesium carbonate", "Clark et al. 1990; Ehlmann et al. 2008", (0.29, 0.02, 0.60),
        (1.07, 0.45, 0.08), (1.93, 0.11, 0.06), (2.31, 0.09, 0.17), (2.51, 0.12, 0.24), (3.00, 0.45, 0.40),
        (3.42, 0.16, 0.28), (3.83, 0.20, 0.30),
    ),
    _mineral(
        "montmorillonite", "Clark et al. 1990; Bishop et al. 2008", (0.34, -0.03, 0.62),
        (1.41, 0.06, 0.11), (1.91, 0.09, 0.20), (2.21, 0.07, 0.22), (2.95, 0.50, 0.60),
    ),
    _mineral(
        "kaolinite", "Clark et al. 1990; Bishop et al. 2008", (0.36, -0.02, 0.58),
        (1.40, 0.07, 0.12), (1.91, 0.08, 0.07), (2.165, 0.045, 0.14), (2.205, 0.05, 0.22), (2.38, 0.05, 0.05),
        (2.75, 0.20, 0.40),
    ),
    _mineral(
        "polyhydrated sulfate", "Clark et al. 1990; Gendrin et al. 2005", (0.32, -0.06, 0.66),
        (1.44, 0.15, 0.15), (1.94, 0.14, 0.28), (2.43, 0.13, 0.18), (2.95, 0.60, 0.70),
    ),
    _mineral(
        "jarosite", "Bishop & Murad 2005", (0.30, 0.01, 0.80),
        (0.92, 0.20, 0.12), (1.47, 0.09, 0.09), (1.85, 0.08, 0.16), (2.265, 0.07, 0.28), (2.95, 0.45, 0.50),
    ),
    _mineral(
        "alunite", "Clark et al. 1990; Bishop & Murad 2005", (0.38, -0.01, 0.55),
        (1.44, 0.08, 0.14), (1.76, 0.06, 0.20), (2.17, 0.08, 0.32), (2.32, 0.06, 0.16), (2.95, 0.45, 0.50),
    ),
)  # fmt: skip
"""Everything the ground is made of; abundances are given in this order."""

NAMES = tuple(mineral.name for mineral in MINERALS)

WATER_ICE = (Band(1.25, 0.09, 0.12), Band(1.50, 0.19, 0.40), Band(2.02, 0.20, 0.50), Band(3.00, 0.50, 0.75))
"""Bands of fine water ice in the haze (Warren 1984)."""

CARBON_DIOXIDE = (
    Band(1.432, 0.015, 0.015), Band(1.962, 0.026, 0.14), Band(2.007, 0.030, 0.28), Band(2.060, 0.028, 0.18),
    Band(2.690, 0.090, 0.45), Band(2.770, 0.080, 0.50),
)  # fmt: skip
"""Carbon dioxide, one air mass at elevation 0: the triplet at 1.96, 2.01, 2.06 µm (McGuire et al. 2009)."""

FALSE_BAND = (Band(1.91, 0.022, 0.20), Band(2.11, 0.045, 1.00))
"""Shape of the false narrow absorption (Leask et al. 2018), deepest at 2.1 µm."""
