"""A built-in table of diagnostic absorption bands between 1.0 and 2.6 µm, and spectra made from it.

Centres are those of the sources named with each entry. Widths (full, at half depth) and depths against the entry's
deepest band are those of a clear exposure, as in the CRISM type spectra (Viviano-Beck et al. 2014). Sources:

    Adams 1974                J. Geophys. Res. 79, 4829-4836 (pyroxenes)
    Adams & Goullaud 1978     Proc. Lunar Planet. Sci. Conf. 9, 2901-2909 (plagioclase)
    Bishop & Murad 2005       Am. Mineral. 90, 1100-1107 (jarosite, alunite)
    Bishop et al. 2008        Clay Minerals 43, 35-54 (smectites, kaolinite)
    Clark et al. 1990         J. Geophys. Res. 95, 12653-12680 (clays, micas, carbonates, sulfates)
    Cloutis et al. 2006       Icarus 184, 121-157 (sulfates)
    Ehlmann et al. 2009       J. Geophys. Res. 114, E00D08 (chlorite, prehnite, zeolite, serpentine)
    Gaffey 1987               J. Geophys. Res. 92, 1429-1440 (carbonates)
    Gendrin et al. 2005       Science 307, 1587-1591 (sulfates)
    Hanley et al. 2015        J. Geophys. Res. Planets 120, 1415-1426 (perchlorates)
    Klima et al. 2007, 2011   Meteorit. Planet. Sci. 42, 235-253; 46, 379-395 (pyroxenes)
    Lichtenberg et al. 2010   J. Geophys. Res. 115, E00D17 (hydroxylated iron sulfate)
    Milliken et al. 2008      Geology 36, 847-850 (hydrated silica)
    Sunshine & Pieters 1998   J. Geophys. Res. 103, 13675-13688 (olivine)
    Viviano-Beck et al. 2014  J. Geophys. Res. Planets 119, 1403-1431 (type spectra, ices)
    Warren 1984               Appl. Optics 23, 1206-1225 (water ice)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DEEPEST = 0.2
"""Depth given to the deepest band of an entry; scores look at shapes, not at depths."""


@dataclass(frozen=True)
class Absorber:
    """A mineral or ice, by its bands."""

    name: str
    source: str
    """Where the centres are published."""
    bands: tuple[tuple[float, float, float], ...]
    """(centre µm, width µm, depth against the deepest)."""

    def spectrum(self, wavelength: Floats) -> Floats:
        """Reflectance over a flat continuum at these wavelengths (µm): a Gaussian for each band."""
        passed = np.ones_like(wavelength)
        for centre, width, depth in self.bands:
            passed = passed * (
                1.0 - DEEPEST * depth * np.exp(-4.0 * np.log(2.0) * ((wavelength - centre) / width) ** 2)
            )
        return passed


TABLE = (
    Absorber("Fe smectite (nontronite)", "Clark et al. 1990; Bishop et al. 2008",
             ((1.43, 0.08, 0.35), (1.91, 0.08, 0.9), (2.29, 0.055, 1.0), (2.40, 0.05, 0.45))),
    Absorber("Mg smectite (saponite)", "Clark et al. 1990; Bishop et al. 2008",
             ((1.39, 0.06, 0.35), (1.91, 0.08, 0.9), (2.31, 0.06, 1.0), (2.39, 0.05, 0.4))),
    Absorber("Al smectite (montmorillonite)", "Clark et al. 1990; Bishop et al. 2008",
             ((1.41, 0.06, 0.55), (1.91, 0.08, 1.0), (2.21, 0.06, 0.9))),
    Absorber("kaolinite", "Clark et al. 1990; Bishop et al. 2008",
             ((1.40, 0.055, 0.65), (1.91, 0.07, 0.35), (2.165, 0.045, 0.6), (2.205, 0.05, 1.0), (2.38, 0.05, 0.2))),
    Absorber("illite or muscovite", "Clark et al. 1990",
             ((1.41, 0.06, 0.6), (1.92, 0.09, 0.3), (2.20, 0.055, 1.0), (2.35, 0.06, 0.6), (2.44, 0.06, 0.3))),
    Absorber("margarite", "Viviano-Beck et al. 2014",
             ((1.41, 0.05, 0.5), (2.20, 0.05, 0.8), (2.35, 0.10, 1.0))),
    Absorber("chlorite", "Clark et al. 1990; Ehlmann et al. 2009",
             ((1.39, 0.05, 0.25), (2.255, 0.05, 0.5), (2.34, 0.08, 1.0))),
    Absorber("prehnite", "Ehlmann et al. 2009",
             ((1.478, 0.045, 0.5), (2.235, 0.045, 0.45), (2.353, 0.08, 1.0))),
    Absorber("epidote", "Clark et al. 1990; Viviano-Beck et al. 2014",
             ((1.545, 0.05, 0.3), (2.255, 0.045, 0.5), (2.34, 0.07, 1.0))),
    Absorber("serpentine", "Ehlmann et al. 2009",
             ((1.39, 0.04, 0.6), (2.11, 0.07, 0.3), (2.32, 0.07, 1.0), (2.51, 0.10, 0.4))),
    Absorber("talc", "Clark et al. 1990; Viviano-Beck et al. 2014",
             ((1.39, 0.035, 0.4), (2.31, 0.055, 1.0), (2.39, 0.04, 0.3), (2.46, 0.05, 0.3))),
    Absorber("analcime", "Ehlmann et al. 2009",
             ((1.42, 0.09, 0.4), (1.79, 0.05, 0.15), (1.915, 0.06, 1.0), (2.50, 0.13, 0.6))),
    Absorber("hydrated silica", "Milliken et al. 2008",
             ((1.40, 0.09, 0.4), (1.92, 0.11, 1.0), (2.22, 0.12, 0.9))),
    Absorber("Mg carbonate", "Gaffey 1987; Viviano-Beck et al. 2014",
             ((1.92, 0.10, 0.25), (2.31, 0.08, 0.85), (2.505, 0.11, 1.0))),
    Absorber("Ca or Fe carbonate", "Gaffey 1987",
             ((1.20, 0.50, 0.5), (2.335, 0.09, 0.9), (2.535, 0.11, 1.0))),
    Absorber("gypsum", "Cloutis et al. 2006",
             ((1.445, 0.09, 0.45), (1.535, 0.05, 0.2), (1.75, 0.06, 0.2), (1.945, 0.11, 1.0), (2.215, 0.09, 0.35),
              (2.45, 0.13, 0.5))),
    Absorber("bassanite", "Cloutis et al. 2006",
             ((1.425, 0.06, 0.35), (1.775, 0.045, 0.12), (1.92, 0.08, 1.0), (2.48, 0.16, 0.7))),
    Absorber("monohydrated sulfate (kieserite)", "Gendrin et al. 2005; Cloutis et al. 2006",
             ((1.60, 0.25, 0.3), (2.12, 0.15, 1.0), (2.40, 0.05, 0.5))),
    Absorber("polyhydrated sulfate", "Gendrin et al. 2005; Cloutis et al. 2006",
             ((1.44, 0.13, 0.5), (1.94, 0.12, 1.0), (2.43, 0.13, 0.6))),
    Absorber("hydroxylated Fe sulfate", "Lichtenberg et al. 2010",
             ((1.49, 0.05, 0.4), (1.82, 0.05, 0.3), (2.235, 0.04, 1.0), (2.37, 0.06, 0.35))),
    Absorber("jarosite", "Bishop & Murad 2005",
             ((1.47, 0.09, 0.35), (1.85, 0.08, 0.5), (2.265, 0.08, 1.0), (2.45, 0.12, 0.3))),
    Absorber("alunite", "Clark et al. 1990; Bishop & Murad 2005",
             ((1.44, 0.09, 0.5), (1.76, 0.06, 0.4), (2.17, 0.09, 1.0), (2.32, 0.05, 0.4), (2.47, 0.12, 0.4))),
    Absorber("hydrated perchlorate", "Hanley et al. 2015",
             ((1.43, 0.10, 0.6), (1.93, 0.10, 1.0), (2.13, 0.06, 0.35))),
    Absorber("low-calcium pyroxene", "Adams 1974; Klima et al. 2007", ((0.92, 0.22, 1.0), (1.87, 0.55, 0.9))),
    Absorber("high-calcium pyroxene", "Adams 1974; Klima et al. 2011", ((1.02, 0.28, 1.0), (2.25, 0.60, 0.9))),
    Absorber("Mg olivine", "Sunshine & Pieters 1998", ((0.86, 0.22, 0.4), (1.05, 0.32, 1.0), (1.25, 0.40, 0.7))),
    Absorber("Fe olivine", "Sunshine & Pieters 1998", ((0.88, 0.24, 0.4), (1.07, 0.38, 1.0), (1.30, 0.48, 0.9))),
    Absorber("plagioclase", "Adams & Goullaud 1978", ((1.30, 0.45, 1.0),)),
    Absorber("water ice", "Warren 1984", ((1.25, 0.10, 0.25), (1.52, 0.22, 0.9), (2.02, 0.22, 1.0))),
    Absorber("carbon dioxide ice", "Viviano-Beck et al. 2014",
             ((1.21, 0.03, 0.1), (1.43, 0.03, 0.4), (1.58, 0.08, 0.2), (1.97, 0.05, 0.6), (2.01, 0.06, 1.0),
              (2.07, 0.05, 0.6), (2.29, 0.03, 0.2), (2.34, 0.03, 0.15))),
)  # fmt: skip
"""All entries."""
