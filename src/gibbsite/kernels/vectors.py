"""One small matrix product in vector registers: what numba's loops leave on the table.

`multiply` adds 4 (or 1) rows of products to 32 lanes of as many output rows, keeping all sums in registers over the
whole loop: out[r + j, i] += Σ_a coefficient[c + j, a] · rows[a, i], a from `first` on, lanes i to i + 31. Each product
is fused with its sum (llvm.fma), which rounds the same on every machine.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 32
"""Lanes one call works on."""
WIDTH = 16
"""Lanes per vector register."""


def _make(n_rows):
    @intrinsic
    def multiply(_typing, out, out_row, coefficient, coefficient_row, rows, place):
        """place is (first row of `rows`, first lane); all arrays are C-contiguous float32."""
        if any(array.layout != "C" or array.dtype != types.float32 for array in (out, coefficient, rows)):
            return None
        signature = types.void(out, out_row, coefficient, coefficient_row, rows, place)

        def generate(context, builder, signature, arguments):
            return _generate(context, builder, signature, arguments, n_rows)

        return signature, generate

    return multiply


def _generate(context, builder, signature, arguments, n_rows):
    _, out_row, _, coefficient_row, _, place = arguments
    index = ir.IntType(64)
    vector = ir.VectorType(ir.FloatType(), WIDTH)
    arrays = [context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 2, 4)]
    out_width, coefficient_width, rows_width = (builder.extract_value(array.shape, 1) for array in arrays)
    n_terms = builder.extract_value(arrays[2].shape, 0)
    first, lane = builder.extract_value(place, 0), builder.extract_value(place, 1)

    def at(array, row, width, column):
        return builder.gep(array.data, [builder.add(builder.mul(row, width), column)])

    def vectors_at(pointer):
        shift = [builder.gep(pointer, [index(part * WIDTH)]) for part in range(LANES // WIDTH)]
        return [builder.bitcast(part, vector.as_pointer()) for part in shift]

    targets, factors = [], []
    for j in range(n_rows):
        row = builder.add(out_row, index(j))
        targets += vectors_at(at(arrays[0], row, out_width, lane))
        factors.append(at(arrays[1], builder.add(coefficient_row, index(j)), coefficient_width, index(0)))
    start = [builder.load(target, align=4) for target in targets]

    # There is one term at least, so the loop needs no test before it.
    before = builder.block
    loop = builder.append_basic_block("products")
    builder.branch(loop)
    builder.position_at_end(loop)
    term = builder.phi(index)
    term.add_incoming(first, before)
    sums = [builder.phi(vector) for _ in targets]
    fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{WIDTH}f32")
    lanes = [builder.load(part, align=4) for part in vectors_at(at(arrays[2], term, rows_width, lane))]
    spread = [_broadcast(builder, builder.load(builder.gep(factor, [term])), vector) for factor in factors]
    pairs = [(factor, part) for factor in spread for part in lanes]
    results = [builder.call(fma, [*pair, total]) for pair, total in zip(pairs, sums, strict=True)]
    following = builder.add(term, index(1))
    term.add_incoming(following, loop)
    for total, value, result in zip(sums, start, results, strict=True):
        total.add_incoming(value, before)
        total.add_incoming(result, loop)
    after = builder.append_basic_block("after")
    builder.cbranch(builder.icmp_signed("<", following, n_terms), loop, after)
    builder.position_at_end(after)
    for target, result in zip(targets, results, strict=True):
        builder.store(result, target, align=4)
    return context.get_dummy_value()


def _broadcast(builder, scalar, vector):
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.IntType(32)(0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), mask)


multiply_4 = _make(4)
multiply_1 = _make(1)
