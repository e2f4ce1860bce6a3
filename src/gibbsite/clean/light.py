"""Slant sunlight: what spectra are divided by to be as if lit from above."""

import numpy as np
from numpy.typing import NDArray

STEEPEST_INCIDENCE = 85.0
"""Degrees. Beyond it the light is mostly the sky's, and 1/cos would blow noise up more than 11-fold."""


def cosine(incidence: NDArray[np.floating]) -> NDArray[np.float32]:
    """The cosine of incidence angles in degrees; NaN where unknown. Beyond STEEPEST_INCIDENCE they count as that."""
    return np.cos(np.deg2rad(np.minimum(incidence, STEEPEST_INCIDENCE))).astype(np.float32)
