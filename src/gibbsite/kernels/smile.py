"""Weights of polynomials through neighbouring bands, column by column."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def nearest_bands(by_column, wanted, points):
    """The first of the `points` bands (column, n_out) about each wanted place (n_out), of columns whose bands lie at
    `by_column` (column, band); both rise."""
    n_columns, n_bands = by_column.shape
    first = np.empty((n_columns, len(wanted)), np.int64)
    for c in range(n_columns):
        b = 0
        for k in range(len(wanted)):
            while b < n_bands and by_column[c, b] < wanted[k]:
                b += 1
            first[c, k] = min(max(b - points // 2, 0), n_bands - points)
    return first


@njit(nogil=True, cache=True, error_model="numpy")
def polynomial_weights(by_column, wanted, points, first, start, column, weight):
    """Put into weight (n_out, width, column) what bands weigh in the polynomials through `points` of them, from `first`
    (row, n_out) on, at the wanted places (n_out). Each row of `by_column` (row, band) has its `column` (row) there, and
    its bands are counted from `start` (n_out) on.

    A place outside its nodes counts as the nearest of them: polynomials run away there.
    """
    for c in range(len(column)):
        for k in range(len(wanted)):
            node = by_column[c, first[c, k] : first[c, k] + points]
            held = min(max(wanted[k], node[0]), node[-1])
            for p in range(points):
                share = 1.0
                for other in range(points):
                    if other != p:
                        share *= (held - node[other]) / (node[p] - node[other])
                weight[k, first[c, k] - start[k] + p, column[c]] = share
