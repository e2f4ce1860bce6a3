"""Operations on strips that a vector of samples needs beside its arithmetic: masks, counts, neighbours, keys."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gibbsite.kernels.vectors import LANES, Vector, constant, open_arrays, vector, vector_at

_NAN = float("nan")


@intrinsic
def load_from(_typing, array, offset):
    """The vector that starts `offset` numbers into an array of float32, C-contiguous."""

    def generate(context, builder, signature, arguments):
        array, offset = open_arrays(context, builder, signature, arguments)
        return builder.load(vector_at(builder, array.data, offset), align=4)

    return vector(array, offset), generate


@intrinsic
def mask_beyond(_typing, value, low, high, fill):
    """The value; not a number where it is beyond the range from `low` to `high`, or `fill`."""

    def generate(_context, builder, _signature, arguments):
        value, low, high, fill = arguments
        is_value = builder.and_(builder.fcmp_ordered(">=", value, low), builder.fcmp_ordered("<=", value, high))
        is_value = builder.and_(is_value, builder.fcmp_unordered("!=", value, fill))
        return builder.select(is_value, value, constant(_NAN))

    return vector(value, low, high, fill), generate


@intrinsic
def count_missing(_typing, count, value):
    """count + 1 where the value is not a number."""

    def generate(_context, builder, _signature, arguments):
        count, value = arguments
        is_missing = builder.fcmp_unordered("uno", value, value)
        return builder.select(is_missing, builder.fadd(count, constant(1.0)), count)

    return vector(count, value), generate


@intrinsic
def next_lane(_typing, value):
    """The value of the next sample in each lane; the last keeps its own."""

    def generate(_context, builder, _signature, arguments):
        order = [*range(1, LANES), LANES - 1]
        return builder.shuffle_vector(arguments[0], arguments[0], ir.Constant(ir.VectorType(ir.IntType(32), LANES), order))

    return vector(value), generate


@intrinsic
def store_keys(_typing, keys, offset, value, above, below):
    """Put whole numbers from 0 to 65535 into an array of uint16 from `offset` on, 0 where above or below is not positive."""

    def generate(context, builder, signature, arguments):
        keys, offset, value, above, below = open_arrays(context, builder, signature, arguments)
        zero = constant(0.0)
        is_known = builder.and_(builder.fcmp_ordered(">", above, zero), builder.fcmp_ordered(">", below, zero))
        whole = builder.fptosi(builder.select(is_known, value, zero), ir.VectorType(ir.IntType(32), LANES))
        narrow = ir.VectorType(ir.IntType(16), LANES)
        builder.store(builder.trunc(whole, narrow), vector_at(builder, keys.data, offset, narrow), align=2)
        return context.get_dummy_value()

    assert Vector.ir_type.count == LANES
    return types.void(keys, offset, value, above, below), generate
