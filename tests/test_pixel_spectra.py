"""Spectra rebuilt from a few bytes."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from gibbsite.pixel_spectra import GRAIN, STEP, fill, fit_coder
from handmade_cubes import spectra


def test_a_rebuilt_spectrum_is_as_near_as_the_coder_says() -> None:
    own = spectra(40, 30, 60).reshape(-1, 60)
    coder = fit_coder(own)
    rebuilt = coder.decode(coder.encode(own))
    rest = np.sqrt(np.square(rebuilt - own).mean(axis=1))
    assert_allclose(np.median(rest), coder.error, rtol=0.05)
    assert coder.error < 0.003, "no more than the noise that was put in"


def test_what_the_page_computes_is_what_decode_gives() -> None:
    own = spectra(20, 10, 30).reshape(-1, 30)
    coder = fit_coder(own)
    code = coder.encode(own[7:8])
    by_hand = coder.mean.copy()
    for n, axis in enumerate(coder.axis):
        by_hand += code[n, 0] * STEP * GRAIN * axis
    assert_allclose(coder.decode(code)[0], by_hand, atol=1e-12)


def test_few_spectra_and_few_bands_are_fine() -> None:
    one = fit_coder(spectra(1, 1, 4).reshape(1, 4))
    assert one.axis.shape == (0, 4)
    assert one.error < 1e-6
    assert fit_coder(np.zeros((0, 5), np.float32)).axis.shape == (0, 5)


def test_gaps_are_bridged_and_spectra_without_values_are_zero() -> None:
    found = fill(np.array([[1, np.nan, 3], [np.nan] * 3, [4, 5, 6]], np.float32), np.array([1.0, 1.1, 1.2]))
    assert_array_equal(found, [[1, 2, 3], [0, 0, 0], [4, 5, 6]])
