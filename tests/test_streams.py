"""Random numbers: nothing is used twice."""

from itertools import product

import numpy as np

from gibbsite import streams
from gibbsite.streams import Purpose


def test_no_two_purposes_share_their_numbers() -> None:
    assert len(set(Purpose)) == len(Purpose.__members__), "a purpose is another name of another one"
    where = list(product([1, 2, 11, 12, 21], [1, 2, 11, 112, 1112], Purpose))
    keys = {int(streams.pixel_key(*place)) for place in where}
    first = {streams.generator(*place).random() for place in where}
    assert len(keys) == len(first) == len(where), "two of (seed, sweep, purpose) have the same numbers"


def test_the_same_place_has_the_same_numbers() -> None:
    for purpose in Purpose:
        assert streams.pixel_key(3, 4, purpose) == streams.pixel_key(3, 4, purpose)
        one, other = (streams.generator(3, 4, purpose).normal(size=5) for _ in range(2))
        np.testing.assert_array_equal(one, other)
