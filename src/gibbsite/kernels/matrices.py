"""Factors and inverses of small positive definite matrices.

There are many of them in a sweep, and calls of a library would take longer than the work. Loops are written out, which
numba compiles in a fraction of the time of array expressions; inner ones run along rows. So the client's part of a
chain is the same whatever library numpy was built with.
"""

import math

import numpy as np
from numba import njit


@njit(cache=True, fastmath={"contract"})
def factorise(scale):
    """Make of Ψ, in place, the upper triangular R with RᵀR = Ψ, and return log |Ψ|."""
    n_features, log_det = len(scale), 0.0
    for a in range(n_features):
        if not scale[a, a] > 0.0:
            raise ValueError("the scale matrix of a class is not positive definite")
        log_det += math.log(scale[a, a])
        pivot = 1.0 / math.sqrt(scale[a, a])
        for b in range(a, n_features):
            scale[a, b] *= pivot
        for c in range(a + 1, n_features):
            weight = scale[a, c]
            for b in range(c, n_features):
                scale[c, b] -= weight * scale[a, b]
    return log_det


@njit(cache=True, fastmath={"contract"})
def factorise_back(scale):
    """Make of Ψ, in place, the upper triangular C with CCᵀ = Ψ; what lies below the diagonal is spoilt."""
    for a in range(len(scale) - 1, -1, -1):
        if not scale[a, a] > 0.0:
            raise ValueError("the scale matrix of a class is not positive definite")
        # The column of C, first as a row of the lower half, where loops are fast.
        pivot = 1.0 / math.sqrt(scale[a, a])
        for b in range(a + 1):
            scale[a, b] *= pivot
        for c in range(a):
            weight = scale[a, c]
            for b in range(c + 1):
                scale[c, b] -= weight * scale[a, b]
    for a in range(len(scale)):
        for b in range(a):
            scale[b, a] = scale[a, b]


@njit(cache=True, fastmath={"contract"})
def invert(factor, inverse):
    """Set the inverse of RᵀR: with the rows of R⁻ᵀ, which is lower triangular, it is Σ_a row_aᵀ row_a."""
    n_features = len(factor)
    rows = np.zeros((n_features, n_features))
    for a in range(n_features):
        rows[a, a] += 1.0
        pivot = 1.0 / factor[a, a]
        for b in range(a + 1):
            rows[a, b] *= pivot
        for c in range(a + 1, n_features):
            weight = factor[a, c]
            for b in range(a + 1):
                rows[c, b] -= weight * rows[a, b]
    for a in range(n_features):
        for b in range(n_features):
            inverse[a, b] = 0.0
    for a in range(n_features):
        for c in range(a + 1):
            weight = rows[a, c]
            for b in range(a + 1):
                inverse[c, b] += weight * rows[a, b]


@njit(cache=True, fastmath={"contract"})
def add_outer(matrix, values, weight):
    """Add w v vᵀ."""
    for a in range(len(values)):
        pull = weight * values[a]
        for b in range(len(values)):
            matrix[a, b] += pull * values[b]


@njit(cache=True, fastmath={"contract"})
def weigh(matrix, values):
    """The form vᵀ A v."""
    total = 0.0
    for a in range(len(values)):
        row = 0.0
        for b in range(len(values)):
            row += matrix[a, b] * values[b]
        total += row * values[a]
    return total


@njit(cache=True, fastmath={"contract"})
def solve_upper(factor, values):
    """Make of v, in place, U⁻¹ v of an upper triangular U."""
    for a in range(len(values) - 1, -1, -1):
        rest = values[a]
        for b in range(a + 1, len(values)):
            rest -= factor[a, b] * values[b]
        values[a] = rest / factor[a, a]
