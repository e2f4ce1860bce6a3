"""Pixels of a component taking sides, for splits and merges."""

import math

import numpy as np
from numba import njit

from gibbsite.kernels.lanes import _hash, _uniform


@njit(nogil=True, cache=True)
def take_sides(feature, first_rank, place, launch, key, side, log_q):
    """Fill `side` with 0 or 1 for each pixel of a proposal, and add up how likely these sides are, and the opposite.

    place holds (proposal, side) of each pixel: proposal -1 takes no part, side -1 draws. launch holds direction per
    fixed-point step, threshold, and steps per unit, in which log_q (n_proposals, 2) counts log probabilities.
    """
    proposal, fixed = place
    direction, threshold, scale = launch
    for i in range(len(proposal)):
        p = proposal[i]
        if p < 0:
            continue
        odds = -threshold[p]
        for a in range(feature.shape[1]):
            odds += direction[p, a] * feature[i, a]
        if fixed[i] >= 0:
            side[i] = fixed[i]
        else:
            side[i] = _uniform(_hash(key, np.uint64(first_rank + i))) < 1.0 / (1.0 + math.exp(-odds))
        if side[i] == 0:
            odds = -odds
        # log σ(odds), without overflow.
        smaller = -math.log1p(math.exp(-abs(odds)))
        log_q[p, 0] += np.int64(round((smaller + min(odds, 0.0)) * scale))
        log_q[p, 1] += np.int64(round((smaller + min(-odds, 0.0)) * scale))
