"""Reasons to suspect that a discovered class is the instrument's work and not the ground's.

Leask et al. 2018 (Geophys. Res. Lett. 45, 12180-12189) found false narrow absorptions at 1.9 and 2.1 µm in a few
pixels of most CRISM images; they look like perchlorate, kieserite, alunite or serpentine. Other artefacts follow
detector columns, the edges of a scene, or pixels from which many spikes were taken. Each rule answers with a
sentence, or with none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_fill_holes, distance_transform_edt

from gibbsite.continuum import Band

FALSE_BANDS = ((1.9, 0.03, 0.06), (2.1, 0.035, 0.085))
"""Centre, reach and greatest width (µm). Bands of water at 1.9 and of monohydrated sulfate at 2.1 µm are wider."""
SHALLOW = 0.25
"""Other bands shallower than this share of the false one are those of the ground below."""
LEAST_PIXELS = 8
"""Of a class that places are judged by."""
MOST = 0.8
"""Share of a class's pixels that must lie in few columns."""
FEW_COLUMNS = 4
ALONG = 4
"""The lines that hold these pixels must be so many times the columns: an outcrop is about as long as wide."""
EDGE = 3
"""Pixels from the edge of the scene."""
AT_EDGE = 0.5
"""Share of a class's pixels that must lie at the edge, and be `STRONGER` times that of all pixels."""
STRONGER = 4.0
SPIKY = 0.95
"""Pixels with more despiked values than this share of the scene are spiky."""


@dataclass(frozen=True, eq=False)
class Places:
    """Where the pixels of a class lie; arrays (n_pixels)."""

    line: NDArray[np.int64]
    sample: NDArray[np.int64]
    column: NDArray[np.int64]
    """Detector column, -1 unknown."""
    is_at_edge: NDArray[np.bool_]
    is_spiky: NDArray[np.bool_]


def at_edge(valid: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which pixels (y, x) lie within EDGE pixels of the outline of the valid ones; holes have no outline."""
    inside = np.pad(binary_fill_holes(valid), 1)
    return np.asarray(distance_transform_edt(inside)[1:-1, 1:-1] <= EDGE) & valid


def spiky(n_despiked: NDArray[np.integer], valid: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which pixels (y, x) had more values despiked than nearly all of the scene."""
    usual = np.quantile(n_despiked[valid], SPIKY) if valid.any() else 0
    return np.asarray((n_despiked > usual) & valid)


def false_bands(bands: Sequence[Band]) -> str | None:
    """Whether a class shows narrow absorptions at 1.9 or 2.1 µm and hardly anything else."""
    if not bands:
        return None
    deepest = max(band.depth for band in bands)
    telling = [band for band in bands if band.depth >= SHALLOW * deepest]
    if not all(_is_false(band) for band in telling):
        return None
    places = " and ".join(f"{band.centre:.2f}" for band in telling)
    return (
        f"its only clear absorption is narrow and at {places} µm, where CRISM images have false ones "
        "(Leask et al. 2018)"
    )


def few_columns(places: Places, n_columns: int) -> str | None:
    """Whether nearly all pixels of a class lie in a few detector columns, along many lines."""
    known = places.column >= 0
    if known.sum() < LEAST_PIXELS:
        return None
    needed = _needed(places.column[known])
    inside = np.isin(places.column, needed)
    n_lines = max(len(np.unique(places.line[inside])), len(np.unique(places.sample[inside])))
    if len(needed) > min(FEW_COLUMNS, n_columns / 8) or n_lines < ALONG * len(needed):
        return None
    share = inside.sum() / known.sum()
    which = "one detector column" if len(needed) == 1 else f"{len(needed)} of {n_columns} detector columns"
    return f"{share:.0%} of its pixels lie in {which}, along {n_lines} lines".replace("%", "\u202f%")


def edges(places: Places, usual: float) -> str | None:
    """Whether a class lies at the edges of its scenes, where only a share `usual` of all pixels does."""
    share = float(places.is_at_edge.mean()) if places.is_at_edge.size else 0.0
    if places.is_at_edge.size < LEAST_PIXELS or share < max(AT_EDGE, STRONGER * usual):
        return None
    return (
        f"{share:.0%} of its pixels lie within {EDGE} pixels of the edge of the scene, where {usual:.0%} of all do"
    ).replace("%", "\u202f%")


def spikes(places: Places, usual: float) -> str | None:
    """Whether a class consists of pixels from which many spikes were taken; `usual` is the share of all pixels."""
    share = float(places.is_spiky.mean()) if places.is_spiky.size else 0.0
    if places.is_spiky.size < LEAST_PIXELS or share < max(AT_EDGE, STRONGER * usual):
        return None
    return (f"{share:.0%} of its pixels had unusually many values despiked, of all pixels {usual:.0%}").replace(
        "%", "\u202f%"
    )


def _is_false(band: Band) -> bool:
    return any(abs(band.centre - centre) <= reach and band.width <= width for centre, reach, width in FALSE_BANDS)


def _needed(column: NDArray[np.int64]) -> NDArray[np.int64]:
    """The fewest columns that together hold MOST of the pixels."""
    value, count = np.unique(column, return_counts=True)
    order = np.argsort(-count, kind="stable")
    n_needed = int(np.searchsorted(np.cumsum(count[order]), MOST * column.size - 1e-9)) + 1
    return np.sort(value[order[:n_needed]])
