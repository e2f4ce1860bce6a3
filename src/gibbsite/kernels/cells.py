"""Sums of products of small whole numbers: exact, and several times as fast as in float64.

A processor multiplies 16-bit numbers in pairs, adds the two products and adds that to a 32-bit sum in one instruction;
LLVM takes it for what is written here. A sum has room for some such pairs only, and is then carried over to 64 bits.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from gibbsite.kernels.vectors import INDEX, LANES, aligned, open_arrays, vector_at

_WIDTH = 32
"""Numbers that are multiplied at once: a register of AVX-512."""
_SIDE = 4 if LANES == 64 else 2
"""Rows and columns of products whose sums fit into the registers."""
_MOST = 512
"""Columns of a piece: with some hundred rows it stays in the second-level cache."""


@njit(nogil=True, cache=True)
def cell_products(cell, largest):
    """Σ x xᵀ (row + 1, row + 1) int64 over the columns x of cell (row, column) int16, each with a 1 at its end, so that
    the last row is Σ x and how many there are. No number is larger than `largest` in size."""
    n_rows, n_columns = cell.shape
    n_all = n_rows + 1
    room = -(-n_all // _SIDE) * _SIDE
    # A lane adds two products of every _WIDTH columns.
    piece = min(_MOST, _WIDTH * (2147483647 // (2 * largest * largest)))
    mine = aligned(2 * room * piece).view(np.int16).reshape(room, piece)
    mine[:] = 0
    total = np.zeros((room, room), np.int64)
    for first in range(0, n_columns, piece):
        n = min(piece, n_columns - first)
        mine[:n_rows, :n] = cell[:, first : first + n]
        mine[:n_rows, n:] = 0
        mine[n_rows, :n] = 1
        mine[n_rows, n:] = 0
        for i in range(0, room, _SIDE):
            for j in range(0, i + _SIDE, _SIDE):
                _add_products(mine, i, j, total)
    for i in range(n_all):
        for j in range(i):
            total[j, i] = total[i, j]
    return total[:n_all, :n_all].copy()


@intrinsic
def _add_products(_typing, cell, i, j, total):
    """Add to total[i + k, j + l], k and l < _SIDE, the sums of products of rows i + k and j + l of cell."""
    number, sums = ir.VectorType(ir.IntType(16), _WIDTH), ir.VectorType(ir.IntType(32), _WIDTH // 2)
    halves = [ir.Constant(ir.VectorType(ir.IntType(32), _WIDTH // 2), list(range(half, _WIDTH, 2))) for half in (0, 1)]

    def generate(context, builder, signature, arguments):
        cell, i, j, total = open_arrays(context, builder, signature, arguments)
        width = builder.extract_value(cell.shape, 1)
        starts = [[builder.mul(builder.add(row, INDEX(k)), width) for k in range(_SIDE)] for row in (i, j)]
        nothing = ir.Constant(sums, [0] * sums.count)
        running = [[cgutils.alloca_once_value(builder, nothing) for _ in range(_SIDE)] for _ in range(_SIDE)]
        with cgutils.for_range(builder, builder.udiv(width, INDEX(_WIDTH))) as loop:
            place = builder.mul(loop.index, INDEX(_WIDTH))

            def load(start):
                here = builder.load(vector_at(builder, cell.data, builder.add(start, place), number), align=2)
                return builder.sext(here, ir.VectorType(ir.IntType(32), _WIDTH))

            some, others = ([load(start) for start in both] for both in starts)
            for one, row in zip(some, running, strict=True):
                for other, sum_of in zip(others, row, strict=True):
                    product = builder.mul(one, other)
                    pairs = builder.add(*(builder.shuffle_vector(product, product, half) for half in halves))
                    builder.store(builder.add(builder.load(sum_of), pairs), sum_of)
        _carry_over(builder, running, total, (i, j))
        return context.get_dummy_value()

    return types.void(cell, i, j, total), generate


def _carry_over(builder, running, total, corner):
    """Add all lanes of the sums to 64-bit numbers from total[corner] on."""
    wide = ir.VectorType(ir.IntType(64), _WIDTH // 2)
    kind = ir.FunctionType(ir.IntType(64), [wide])
    reduce = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.add.v{wide.count}i64")
    length = builder.extract_value(total.shape, 1)
    for k, row in enumerate(running):
        start = builder.add(builder.mul(builder.add(corner[0], INDEX(k)), length), corner[1])
        for offset, sum_of in enumerate(row):
            place = builder.gep(total.data, [builder.add(start, INDEX(offset))])
            added = builder.call(reduce, [builder.sext(builder.load(sum_of), wide)])
            builder.store(builder.add(builder.load(place), added), place)
