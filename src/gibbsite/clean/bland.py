"""Ratio to bland pixels: what all pixels of a detector column share is divided away.

Bland are the spectra nearest to a straight line. Among the lines around each pixel the blandest of its own detector
column are averaged; its own line and the two beside it are left out. In a map-projected scene the column of each pixel
comes from its IN product, and each line offers the blandest of its pixels that the column saw.
"""

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import InputError

LEAST_LINES = 100
"""A shorter scene has too few pixels in a column to find bland ones among them."""


def check(column: NDArray[np.integer], valid: NDArray[np.bool_], path: object) -> None:
    """Refuse a scene (y, x) whose pixels cannot be divided by bland ones of their own detector column."""
    n_lines = int(valid.any(axis=1).sum())
    if n_lines < LEAST_LINES:
        raise InputError(
            f"{path}: clean.ratio found {n_lines} lines with usable pixels, expected at least {LEAST_LINES} to find "
            "bland ones among them; set clean.ratio to false for this scene"
        )
    if not (valid & (column >= 0)).any():
        raise InputError(
            f"{path}: clean.ratio needs the detector column of each pixel, and none is known; put the IN product "
            "beside the cube and ingest it anew, or set clean.ratio to false"
        )
