"""Operations on strips that a vector of samples needs beside its arithmetic: masks, counts, neighbours, keys."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gibbsite.kernels.vectors import INDEX, LANES, absolute, constant, open_arrays, vector, vector_at

_NAN = float("nan")
_CACHE_LINE = 16
"""Numbers in a line of the cache."""


@intrinsic
def load_from(_typing, array, offset):
    """The vector that starts `offset` numbers into an array of float32, C-contiguous."""

    def generate(context, builder, signature, arguments):
        array, offset = open_arrays(context, builder, signature, arguments)
        return builder.load(vector_at(builder, array.data, offset), align=4)

    return vector(array, offset), generate


@intrinsic
def fetch_ahead(_typing, array, offset):
    """Ask for the vector that starts `offset` numbers into an array of float32, to be read from the cache soon."""

    def generate(context, builder, signature, arguments):
        array, offset = open_arrays(context, builder, signature, arguments)
        byte, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, whole, whole, whole])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for start in range(0, LANES, _CACHE_LINE):
            place = builder.gep(array.data, [builder.add(offset, INDEX(start))])
            # To read, into the nearest cache, of data.
            builder.call(prefetch, [builder.bitcast(place, byte), whole(0), whole(3), whole(1)])
        return context.get_dummy_value()

    return types.void(array, offset), generate


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
def any_lost(_typing, value, wanted):
    """Whether in any lane where `wanted` is a number the value is none."""

    def generate(_context, builder, _signature, arguments):
        value, wanted = arguments
        is_lost = builder.and_(builder.fcmp_unordered("uno", value, value), builder.fcmp_ordered("ord", wanted, wanted))
        return builder.icmp_unsigned("!=", builder.bitcast(is_lost, ir.IntType(LANES)), ir.IntType(LANES)(0))

    return types.boolean(value, wanted), generate


@intrinsic
def less_median_of_3(_typing, above, here, below, gap):
    """here less the median of the three; 0 where `gap` is not 0."""

    def generate(_context, builder, _signature, arguments):
        above, here, below, gap = arguments

        def lower_and_higher(a, b):
            is_lower = builder.fcmp_ordered("<", a, b)
            return builder.select(is_lower, a, b), builder.select(is_lower, b, a)

        lower, higher = lower_and_higher(above, below)
        median = lower_and_higher(lower_and_higher(lower, here)[1], higher)[0]
        is_whole = builder.fcmp_ordered("==", gap, constant(0.0))
        return builder.select(is_whole, builder.fsub(here, median), constant(0.0))

    return vector(above, here, below, gap), generate


@intrinsic
def next_lane(_typing, value, following):
    """The value of the next sample in each lane; in the last, the first of the vector that follows."""

    def generate(_context, builder, _signature, arguments):
        order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(range(1, LANES + 1)))
        return builder.shuffle_vector(*arguments, order)

    return vector(value, following), generate


@intrinsic
def ratio_of(_typing, above, below):
    """above / below; not a number where either is not positive."""

    def generate(_context, builder, _signature, arguments):
        is_positive = [builder.fcmp_ordered(">", value, constant(0.0)) for value in arguments]
        return builder.select(builder.and_(*is_positive), builder.fdiv(*arguments), constant(_NAN))

    return vector(above, below), generate


@intrinsic
def add_known(_typing, total, value):
    """total + value; total where the value is not a number."""

    def generate(_context, builder, _signature, arguments):
        total, value = arguments
        is_known = builder.fcmp_ordered("ord", value, value)
        return builder.select(is_known, builder.fadd(total, value), total)

    return vector(total, value), generate


@intrinsic
def count_within(_typing, count, value, limit):
    """count + 1 where |value| is below the limit."""

    def generate(_context, builder, _signature, arguments):
        count, value, limit = arguments
        is_within = builder.fcmp_ordered("<", absolute(builder, value), limit)
        return builder.select(is_within, builder.fadd(count, constant(1.0)), count)

    return vector(count, value, limit), generate


@intrinsic
def store_from(_typing, array, offset, value):
    """Put a vector into an array of float32, C-contiguous, from `offset` on."""

    def generate(context, builder, signature, arguments):
        array, offset, value = open_arrays(context, builder, signature, arguments)
        builder.store(value, vector_at(builder, array.data, offset), align=4)
        return context.get_dummy_value()

    return types.void(array, offset, value), generate


@intrinsic
def store_keys(_typing, keys, offset, value):
    """Put whole numbers into an array of uint16 from `offset` on, 0 for what is not a number."""

    def generate(context, builder, signature, arguments):
        keys, offset, value = open_arrays(context, builder, signature, arguments)
        known = builder.select(builder.fcmp_ordered("ord", value, value), value, constant(0.0))
        whole = builder.fptosi(known, ir.VectorType(ir.IntType(32), LANES))
        narrow = ir.VectorType(ir.IntType(16), LANES)
        builder.store(builder.trunc(whole, narrow), vector_at(builder, keys.data, offset, narrow), align=2)
        return context.get_dummy_value()

    return types.void(keys, offset, value), generate


_REGISTER = 16
"""Keys that one instruction compares. Of twice as many, AVX-512 tells the outcome in bits that must be spread out."""
SOME_KEYS = 2 * _REGISTER
"""Keys that are counted side by side: a line of the cache."""
_AT_ONCE = 2
"""Places that are counted at once: sums of their own need not wait for each other."""


@intrinsic
def count_above(_typing, keys, column, middle, count):
    """Set count[c], c from column to column + SOME_KEYS, to how many of keys[:, c] are larger than middle[c].

    All are int16; keys are (place, column), an even number of places below 32768.
    """
    kind = ir.VectorType(ir.IntType(16), _REGISTER)

    def generate(context, builder, signature, arguments):
        keys, column, middle, count = open_arrays(context, builder, signature, arguments)
        n_places, width = cgutils.unpack_tuple(builder, keys.shape)
        columns = [builder.add(column, INDEX(part)) for part in range(0, SOME_KEYS, _REGISTER)]
        limits = [builder.load(vector_at(builder, middle.data, place, kind), align=2) for place in columns]
        nothing = ir.Constant(kind, [0] * _REGISTER)
        sums = [[cgutils.alloca_once_value(builder, nothing) for _ in columns] for _ in range(_AT_ONCE)]
        with cgutils.for_range(builder, builder.udiv(n_places, INDEX(_AT_ONCE))) as loop:
            first = builder.mul(loop.index, INDEX(_AT_ONCE))
            for row, running in enumerate(sums):
                start = builder.mul(builder.add(first, INDEX(row)), width)
                for place, limit, total in zip(columns, limits, running, strict=True):
                    key = builder.load(vector_at(builder, keys.data, builder.add(start, place), kind), align=2)
                    # What is true is -1 in all bits.
                    is_above = builder.sext(builder.icmp_signed(">", key, limit), kind)
                    builder.store(builder.sub(builder.load(total), is_above), total)
        for place, *totals in zip(columns, *sums, strict=True):
            both = builder.add(*map(builder.load, totals))
            builder.store(both, vector_at(builder, count.data, place, kind), align=2)
        return context.get_dummy_value()

    return types.void(keys, column, middle, count), generate
