"""Hypothesis inputs shared by the law tests."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

features = hnp.arrays(np.float64, st.tuples(st.integers(0, 40), st.integers(1, 5)), elements=st.floats(-100.0, 100.0))
"""Feature values (n_pixels, n_features), also none, also far beyond the fixed-point range."""


@st.composite
def spectra(draw: st.DrawFn, least: int = 1) -> NDArray[np.float32]:
    """Spectra (n_spectra, n_bands), constant bands and wild values included."""
    shape = draw(st.integers(least, 60)), draw(st.integers(1, 7))
    return draw(hnp.arrays(np.float32, shape, elements=st.floats(-3.0, 30.0, width=32)))


@st.composite
def confusion(draw: st.DrawFn) -> NDArray[np.int64]:
    """A confusion matrix (n_truth, n_predicted) with at least one pixel, empty rows and columns included."""
    shape = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    counts = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 9)))
    counts[draw(st.integers(0, shape[0] - 1)), draw(st.integers(0, shape[1] - 1))] += 1
    return counts
