"""Reasons to suspect that a discovered class is the instrument's work and not the ground's.

Leask et al. 2018 (Geophys. Res. Lett. 45, 12180-12189) found false narrow absorptions at 1.9 and 2.1 µm in a few
pixels of most CRISM images; they look like perchlorate, kieserite, alunite or serpentine. Other artefacts follow
detector columns, the edges of a scene, or pixels from which many spikes were taken. Each rule answers with a
sentence, or with none.
"""

from collections.abc import Sequence

from gibbsite.continuum import Band
from gibbsite.whereabouts import EDGE, Places

FALSE_BANDS = ((1.9, 0.03, 0.06), (2.1, 0.035, 0.085))
"""Centre, reach and greatest width (µm). Bands of water at 1.9 and of monohydrated sulfate at 2.1 µm are wider."""
SHALLOW = 0.25
"""Other bands shallower than this share of the false one are those of the ground below."""
LEAST_PIXELS = 8
"""Of a class that places are judged by."""
FEW_COLUMNS = 4
ALONG = 4
"""The lines that hold these pixels must be so many times the columns: an outcrop is about as long as wide."""
AT_EDGE = 0.5
"""Share of a class's pixels that must lie at the edge, and be `STRONGER` times that of all pixels."""
STRONGER = 4.0
LEAST_AT_EDGE = (2 * EDGE) ** 2
"""A patch of fewer pixels that touches the edge lies there for the most part, whatever it is."""


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
    """Whether nearly all pixels of a class lie in a few of the scenes' detector columns, along many lines."""
    if places.n_placed < LEAST_PIXELS:
        return None
    if places.n_columns > min(FEW_COLUMNS, n_columns / 8) or places.n_lines < ALONG * places.n_columns:
        return None
    which = "one detector column" if places.n_columns == 1 else f"{places.n_columns} of {n_columns} detector columns"
    return f"{_per_cent(places.n_inside / places.n_placed)} of its pixels lie in {which}, along {places.n_lines} lines"


def edges(places: Places, usual: float) -> str | None:
    """Whether a class lies at the edges of its scenes, where only a share `usual` of all pixels does."""
    share = places.n_at_edge / max(1, places.n_pixels)
    if places.n_pixels < LEAST_AT_EDGE or share < max(AT_EDGE, STRONGER * usual):
        return None
    where = f"within {EDGE} pixels of the edge of the scene"
    return f"{_per_cent(share)} of its pixels lie {where}, where {_per_cent(usual)} of all do"


def spikes(places: Places, usual: float) -> str | None:
    """Whether a class consists of pixels from which many spikes were taken; `usual` is the share of all pixels."""
    share = places.n_spiky / max(1, places.n_pixels)
    if places.n_pixels < LEAST_PIXELS or share < max(AT_EDGE, STRONGER * usual):
        return None
    return f"{_per_cent(share)} of its pixels had unusually many values despiked, of all pixels {_per_cent(usual)}"


def _per_cent(share: float) -> str:
    return f"{share:.0%}".replace("%", "\u202f%")


def _is_false(band: Band) -> bool:
    return any(abs(band.centre - centre) <= reach and band.width <= width for centre, reach, width in FALSE_BANDS)
