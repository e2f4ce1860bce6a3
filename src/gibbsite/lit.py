"""Strips of a source's lines without gaps, as if lit from above and seen without air: what all other cleaning sees."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gibbsite import kernels
from gibbsite.blocks import padded
from gibbsite.clean import light as slant
from gibbsite.corrections import Corrections
from gibbsite.kernels import LANES
from gibbsite.sources import Lines, Source


def light(source: Source, corrections: Corrections, rows: slice) -> NDArray[np.float32]:
    """What the lines are multiplied by (line, sample); NaN in pixels that are not valid."""
    factor = np.where(source.valid[rows], np.float32(1), np.float32(np.nan))
    if corrections.divides_by_incidence and source.incidence is not None:
        factor /= slant.cosine(source.incidence[rows])
    return factor


def strips(source: Source, corrections: Corrections, rows: slice) -> Callable[[int], Lines]:
    """The strips (line, band, LANES) of the lines, by their first sample."""
    stored = source.read(rows, corrections.band, light(source, corrections, rows))
    wavelength, air = source.wavelength[corrections.band], corrections.air

    def strip(start: int) -> Lines:
        lines, has_gaps = stored(start)
        if has_gaps.any():
            kernels.bridge_gaps(lines, has_gaps, wavelength)
        if air is not None:
            column = columns(source, rows, start)
            kernels.divide_air(lines, air.log_transmission, column, air.inside, air.outside)
            kernels.add_artefact(lines, air.artefact, air.tooth, column)
        return lines

    return strip


def columns(source: Source, rows: slice, start: int) -> NDArray[np.int16]:
    """Detector columns (line, LANES) of a strip, -1 beyond the image."""
    return padded(source.column[rows], slice(start, start + LANES), -1)


def is_level(source: Source) -> bool:
    """Whether each sample was seen by the detector column of its own number."""
    return bool((source.column == np.arange(source.column.shape[1])).all())
