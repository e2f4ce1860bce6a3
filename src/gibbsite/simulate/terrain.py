"""What the ground is made of: geological units of irregular shape, their minerals, the planted classes."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gibbsite.settings import Simulate
from gibbsite.simulate.fields import Field, Floats, Integers, key, sharpen
from gibbsite.simulate.geometry import SWATH, Geometry
from gibbsite.simulate.minerals import NAMES
from gibbsite.simulate.planted import Artefact, Outcrops

Role = Literal["known", "never labelled", "rare", "artefact"]


@dataclass(frozen=True)
class GroundClass:
    """One class of the truth."""

    name: str
    """As in the label polygons and the truth."""
    role: Role
    """Whether the labels show it, and what it was planted for."""
    share: float
    """Share of the scene's pixels aimed at."""
    minerals: tuple[str, str] = ("dust", "dust")
    """The two minerals whose proportion changes from place to place."""
    abundance: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """Least and greatest abundance of these minerals together, and spread of its logarithm (the skew)."""
    trend: tuple[float, float] = (0.0, 0.0)
    """Preference for the east and the north of the scene."""


CLASSES = (
    GroundClass(
        "pyroxene basalt", "known", 0.29, ("low-calcium pyroxene", "high-calcium pyroxene"),
        (0.55, 0.95, 1.1), (0.3, -0.4)
    ),
    GroundClass("Fe-Mg smectite", "known", 0.17, ("nontronite", "saponite"), (0.50, 0.98, 1.2), (-0.3, 0.2)),
    GroundClass(
        "olivine", "known", 0.15, ("magnesian olivine", "iron olivine"), (0.50, 0.98, 1.1), (0.4, 0.2)
    ),
    GroundClass(
        "Mg carbonate", "known", 0.11, ("magnesium carbonate", "magnesium carbonate"), (0.50, 0.98, 1.2)
    ),
    GroundClass(
        "Al phyllosilicate", "known", 0.11, ("montmorillonite", "kaolinite"), (0.50, 0.98, 1.2), (-0.4, -0.3)
    ),
    GroundClass(
        "polyhydrated sulfate", "known", 0.10, ("polyhydrated sulfate", "polyhydrated sulfate"),
        (0.50, 0.98, 1.3), (0.1, 0.5)
    ),
    GroundClass("jarosite", "never labelled", 0.065, ("jarosite", "jarosite"), (0.5, 0.98, 1.1), (0.4, -0.1)),
    GroundClass("alunite", "rare", 0.0011, ("alunite", "alunite"), (0.80, 0.98, 1.0)),
    GroundClass("artefact 2.1 um", "artefact", 0.0045),
)  # fmt: skip
"""The classes by code, from 1: the units, then the rare class, then the artefact."""

N_UNITS = 7
RARE_CODE, ARTEFACT_CODE = 8, 9
_CONTACT = 0.05
"""Width of the contact between units, in terms of the noise that shapes them: about 100 m."""
_MINERAL = np.array([[NAMES.index(name) for name in item.minerals] for item in CLASSES[: N_UNITS + 1]])


@dataclass(frozen=True)
class Terrain:
    """The ground of one seed."""

    geometry: Geometry
    """The swath."""
    units: tuple[Field, ...]
    """One noise per unit; the strongest one wins."""
    bias: Floats
    """(n_units) What to add to each so that the units have their shares."""
    warp: tuple[Field, Field]
    """Bends the outlines."""
    texture: tuple[Field, ...]
    """Dust cover, proportion of the two minerals, abundance."""
    outcrops: Outcrops
    """Where the rare class crops out."""
    artefact: Artefact
    """Where the detector shows a false band."""

    @classmethod
    def of(cls, settings: Simulate, seed: int) -> "Terrain":
        """The ground of these settings and this seed."""
        geometry = Geometry.of(settings)
        scale = 0.26 * SWATH
        # Features smaller than two pixels would be noise, not shapes.
        octaves = int(np.clip(np.floor(np.log2(scale / (2 * geometry.pixel))) + 1, 2, 7))
        units = tuple(Field(key(seed, f"unit {item.name}"), scale, octaves, 0.52) for item in CLASSES[:N_UNITS])
        warp = Field(key(seed, "warp east"), 0.4 * scale, 3), Field(key(seed, "warp north"), 0.4 * scale, 3)
        texture = (
            Field(key(seed, "dust cover"), 0.8 * scale, octaves, 0.55),
            Field(key(seed, "proportion"), 0.5 * scale, min(octaves, 4)),
            Field(key(seed, "abundance"), 0.35 * scale, min(octaves, 4), 0.6),
        )
        artefact = Artefact.of(geometry, seed, CLASSES[ARTEFACT_CODE - 1].share)
        outcrops = Outcrops.of(geometry, seed, CLASSES[RARE_CODE - 1].share, artefact.columns)
        plain = cls(geometry, units, np.zeros(N_UNITS), warp, texture, outcrops, artefact)
        return cls(geometry, units, _balanced(plain), warp, texture, outcrops, artefact)

    def strength(self, line: Integers, sample: Integers) -> Floats:
        """(n_units, n_pixels) How strongly each unit claims each pixel."""
        east, north = self._ground(line, sample)
        reach = 0.12 * SWATH
        bent_east = east + 0.25 * reach * self.warp[0](east, north)
        bent_north = north + 0.25 * reach * self.warp[1](east, north)
        claims = []
        for unit, item, bias in zip(self.units, CLASSES, self.bias, strict=False):
            trend = np.tanh(item.trend[0] * east / (0.5 * SWATH)) + np.tanh(item.trend[1] * north / (0.5 * SWATH))
            claims.append(unit(bent_east, bent_north) + trend + bias)
        return np.stack(claims)

    def fractions(self, line: Integers, sample: Integers) -> Floats:
        """(n_units + 1, n_pixels) Share of each unit and of the rare class in each pixel; contacts mix."""
        claim = self.strength(line, sample) / _CONTACT
        claim = np.exp(claim - claim.max(axis=0))
        claim /= claim.sum(axis=0)
        rare = self.outcrops.share(line, sample)
        return np.concatenate([claim * (1.0 - rare), rare[None]])

    def classes(self, line: Integers, sample: Integers) -> NDArray[np.uint8]:
        """(n_pixels) Code of the class that holds the majority, 0 where none does."""
        return majority(self.fractions(line, sample), self.artefact.depth(line, sample))

    def abundances(self, line: Integers, sample: Integers, share: Floats) -> Floats:
        """(n_minerals, n_pixels) Abundance of every mineral; they add up to 1."""
        east, north = self._ground(line, sample)
        # Two modes of cover, bright and dark, and of proportion; abundance is lopsided within a class.
        dust = 0.12 + 0.76 * sharpen(self.texture[0](east, north) + 0.15, 5.0)
        proportion = 0.2 + 0.6 * sharpen(self.texture[1](east, north), 4.0)
        richness = self.texture[2](east, north)
        found = np.zeros((len(NAMES), np.size(line)))
        for code, part in enumerate(share):
            least, greatest, skew = CLASSES[code].abundance
            # Lognormal, cut at the greatest: much ground with little, little ground with much.
            amount = part * (least + (greatest - least) * np.minimum(np.exp(skew * (richness - 1.8)), 1.0))
            found[_MINERAL[code, 0]] += amount * (1.0 - proportion)
            found[_MINERAL[code, 1]] += amount * proportion
        rest = 1.0 - found.sum(axis=0)
        found[NAMES.index("dust")] += rest * dust
        found[NAMES.index("plagioclase basalt")] += rest * (1.0 - dust)
        return found

    def _ground(self, line: Integers, sample: Integers) -> tuple[Floats, Floats]:
        return self.geometry.ground(line.astype(np.float64), sample.astype(np.float64))


def majority(share: Floats, false_band: Floats) -> NDArray[np.uint8]:
    """(n_pixels) Code of the class with at least half of the pixel, 0 if none; a false band hides it."""
    code = np.where(share.max(axis=0) >= 0.5, share.argmax(axis=0) + 1, 0)
    return np.where(false_band > 0, ARTEFACT_CODE, code).astype(np.uint8)


def _balanced(terrain: Terrain) -> Floats:
    """The bias of each unit that gives the units their shares, on a fixed sample of the scene's pixels."""
    geometry = terrain.geometry
    line = np.linspace(0, geometry.lines - 1, min(geometry.lines, 96)).round().astype(np.int64)
    sample = np.linspace(0, geometry.samples - 1, min(geometry.samples, 96)).round().astype(np.int64)
    rows, columns = np.meshgrid(line, sample, indexing="ij")
    claim = terrain.strength(rows.ravel(), columns.ravel())
    aim = np.array([item.share for item in CLASSES[:N_UNITS]])
    aim /= aim.sum()
    bias = np.zeros(N_UNITS)
    for round_number in range(300):
        won = np.bincount((claim + bias[:, None]).argmax(axis=0), minlength=N_UNITS) / claim.shape[1]
        bias += 3.0 / (1.0 + 0.05 * round_number) * (aim - won)
    return bias - bias.mean()
