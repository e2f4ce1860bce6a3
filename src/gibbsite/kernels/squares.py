"""Squares of numbers, turned in registers: rows become columns without a look at each number."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gibbsite.kernels.vectors import INDEX, open_arrays, vector_at

SIDE = 16
"""Numbers along a side: a line of the cache, a register of AVX-512."""


def _turned(builder, rows):
    """The columns of a square: corners of 8 × 8 numbers change places, in these corners of 4 × 4, and so on."""
    step = SIDE // 2
    while step:
        first = [i if not i & step else SIDE + i - step for i in range(SIDE)]
        second = [i + step if not i & step else SIDE + i for i in range(SIDE)]
        orders = [ir.Constant(ir.VectorType(ir.IntType(32), SIDE), order) for order in (first, second)]
        for i in range(SIDE):
            if not i & step:
                pair = rows[i], rows[i + step]
                rows[i], rows[i + step] = (builder.shuffle_vector(*pair, order) for order in orders)
        step //= 2
    return rows


@intrinsic
def turn_square(_typing, source, place, first, target, corner, width):
    """Put the numbers source[place[first + i] : + SIDE], i < SIDE, into the i-th column of the square of rows
    target[corner + j · width : + SIDE], j < SIDE. All are flat; source and target of one kind of number."""

    def generate(context, builder, signature, arguments):
        kind = ir.VectorType(context.get_data_type(signature.args[0].dtype), SIDE)
        source, place, first, target, corner, width = open_arrays(context, builder, signature, arguments)
        rows = []
        for i in range(SIDE):
            start = builder.load(builder.gep(place.data, [builder.add(first, INDEX(i))]))
            rows.append(builder.load(vector_at(builder, source.data, start, kind), align=4))
        for j, row in enumerate(_turned(builder, rows)):
            start = builder.add(corner, builder.mul(INDEX(j), width))
            builder.store(row, vector_at(builder, target.data, start, kind), align=4)
        return context.get_dummy_value()

    if source.dtype != target.dtype or (source.layout, target.layout) != ("C", "C"):
        return None
    return types.void(source, place, first, target, corner, width), generate
