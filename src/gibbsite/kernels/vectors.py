"""Many pixels side by side: a numba type for a vector of float32, one pixel in each lane.

Numba's own loops fill half a register of the machines we meet, and put every sum back into memory. A `Vector` is
several registers long, and LLVM splits it into those the machine has. All operations work lane by lane, and products
are fused with their sums (llvm.fma), so a pixel's numbers depend neither on its lane nor on the length of a vector.
Arrays of lanes are (n, LANES) float32, C-contiguous, in memory from `aligned`.
"""

import operator

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.core import cgutils, codegen
from numba.extending import intrinsic, models, overload, register_model

_IS_WIDE = "+avx512f" in (config.CPU_FEATURES or codegen.get_host_cpu_features())

LANES = 64 if _IS_WIDE else 16
"""Pixels in a vector: 4 registers of AVX-512 or of NEON, 2 of AVX2."""

INDEX = ir.IntType(64)
_BITS = ir.IntType(32)
TO_WHOLE = 12582912.0
"""1.5 · 2^23: a small float32 added to it is rounded to a whole number, which then stands in the lowest bits."""
_POWER = (9.5701019e-3, 5.5917862e-2, 2.4024745e-1, 6.9312181e-1, 9.9999926e-1)
"""2^f for |f| ≤ 1/2, highest power first: the polynomial of its degree with the smallest relative error, 3·10⁻⁶."""
_LOWEST = -100.0
"""Powers of two end here: smaller odds pick nothing, and denormal numbers would halve the speed."""


class Vector(types.Type):
    """LANES float32."""

    ir_type = ir.VectorType(ir.FloatType(), LANES)

    def __init__(self):
        super().__init__("Vector")


vector = Vector()
_WHOLE = ir.VectorType(_BITS, LANES)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, front_end_type):
        super().__init__(manager, front_end_type, Vector.ir_type)


@njit(inline="always")
def aligned(n_bytes):
    """Uninitialised memory at a multiple of 64 bytes, where no register's worth lies across two lines of the cache."""
    memory = np.empty(n_bytes + 64, np.uint8)
    skip = 64 - np.int64(memory.ctypes.data) % 64
    return memory[skip : skip + n_bytes]


@njit(inline="always")
def aligned_lines(n_lines, n_bands):
    """Uninitialised lines (line, band, LANES) float32 in such memory."""
    return aligned(4 * n_lines * n_bands * LANES).view(np.float32).reshape(n_lines, n_bands, LANES)


@intrinsic
def stay_apart(_typing):
    """Keep the function that calls this out of its callers, whose many arrays would take the registers it needs."""

    def generate(context, builder, _signature, _arguments):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


# ------------------------------------------------------------------------- for generators of code, here and in products


def open_arrays(context, builder, signature, arguments):
    """The arguments, with fields to look into where they are arrays."""
    return [
        context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


def vector_at(builder, pointer, offset, ir_type=Vector.ir_type):
    """The pointer to a vector that starts `offset` numbers after a pointer."""
    return builder.bitcast(builder.gep(pointer, [offset]), ir_type.as_pointer())


def spread_scalar(builder, scalar, ir_type=Vector.ir_type):
    """A vector with the same number in all lanes."""
    nothing = ir.Constant(ir_type, ir.Undefined)
    first = builder.insert_element(nothing, scalar, _BITS(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_BITS, ir_type.count), [0] * ir_type.count))


def fuse(builder, a, b, c):
    """a · b + c, rounded once."""
    name = f"llvm.fma.v{a.type.count}f{32 if isinstance(a.type.element, ir.FloatType) else 64}"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(a.type, [a.type] * 3), name)
    return builder.call(function, [a, b, c])


def larger(builder, a, b):
    """The larger of two in each lane; b where either is not a number."""
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def absolute(builder, value):
    """The magnitude in each lane."""
    name, kind = f"llvm.fabs.v{LANES}f32", Vector.ir_type
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), name)
    return builder.call(function, [value])


def constant(number, ir_type=Vector.ir_type):
    """A vector with this number in all lanes."""
    return ir.Constant(ir_type, [number] * ir_type.count)


# --------------------------------------------------------------------------------------------- between memory and lanes


@intrinsic
def spread(_typing, number):
    """A vector with the same float32 in all lanes."""
    return vector(number), lambda _context, builder, _signature, arguments: spread_scalar(builder, arguments[0])


@intrinsic
def load(_typing, array, row):
    """The vector array[row] of an array of lanes."""

    def generate(context, builder, signature, arguments):
        array, row = open_arrays(context, builder, signature, arguments)
        return builder.load(vector_at(builder, array.data, builder.mul(row, INDEX(LANES))), align=4)

    return vector(array, row), generate


@intrinsic
def store(_typing, array, row, value):
    """Set array[row] of an array of lanes."""

    def generate(context, builder, signature, arguments):
        array, row, value = open_arrays(context, builder, signature, arguments)
        builder.store(value, vector_at(builder, array.data, builder.mul(row, INDEX(LANES))), align=4)
        return context.get_dummy_value()

    return types.void(array, row, value), generate


@intrinsic
def load_feature(_typing, plane, a, first, step, out):
    """Set out[a] to step times plane[a, first], plane[a, first + 1], ...; plane (d, n) int16, C-contiguous."""

    def generate(context, builder, signature, arguments):
        plane, a, first, step, out = open_arrays(context, builder, signature, arguments)
        start = builder.add(builder.mul(a, builder.extract_value(plane.shape, 1)), first)
        whole = builder.load(vector_at(builder, plane.data, start, ir.VectorType(ir.IntType(16), LANES)), align=2)
        scaled = builder.fmul(builder.sitofp(whole, Vector.ir_type), spread_scalar(builder, step))
        builder.store(scaled, vector_at(builder, out.data, builder.mul(a, INDEX(LANES))), align=4)
        return context.get_dummy_value()

    if plane.layout != "C" or plane.dtype != types.int16:
        return None
    return types.void(plane, a, first, step, out), generate


# ----------------------------------------------------------------------------------------------------------- arithmetic


def _give_operator(function, instruction):
    @intrinsic
    def apply(_typing, a, b):
        return vector(a, b), lambda _context, builder, _signature, pair: getattr(builder, instruction)(*pair)

    @overload(function, inline="always")
    def implement(a, b):
        if isinstance(a, Vector) and isinstance(b, Vector):

            def lane_by_lane(a, b):
                return apply(a, b)

            return lane_by_lane
        return None


_give_operator(operator.add, "fadd")
_give_operator(operator.sub, "fsub")
_give_operator(operator.mul, "fmul")
_give_operator(operator.truediv, "fdiv")


@intrinsic
def hold(_typing, value, low, high):
    """The value, or the end of the range from `low` to `high` that it is beyond; not a number where it is none."""

    def generate(_context, builder, _signature, arguments):
        value, low, high = arguments
        value = builder.select(builder.fcmp_ordered(">", low, value), low, value)
        return builder.select(builder.fcmp_ordered("<", high, value), high, value)

    return vector(value, low, high), generate


@intrinsic
def add_product(_typing, total, a, b):
    """total + a · b, rounded once."""
    return vector(total, a, b), lambda _context, builder, _signature, given: fuse(builder, *given[1:], given[0])


@intrinsic
def size(_typing, value):
    """|value|."""
    return vector(value), lambda _context, builder, _signature, arguments: absolute(builder, arguments[0])


@intrinsic
def larger_size(_typing, a, b):
    """The larger of |a| and |b|."""

    def generate(_context, builder, _signature, pair):
        return larger(builder, *(absolute(builder, some) for some in pair))

    return vector(a, b), generate


@intrinsic
def any_beyond(_typing, value, limit):
    """Whether |value| exceeds the limit in any lane."""

    def generate(_context, builder, _signature, arguments):
        is_beyond = builder.fcmp_ordered(">", absolute(builder, arguments[0]), arguments[1])
        return builder.icmp_unsigned("!=", builder.bitcast(is_beyond, ir.IntType(LANES)), ir.IntType(LANES)(0))

    return types.boolean(value, limit), generate


@intrinsic
def exp2(_typing, t):
    """2^t for t ≤ 0, never below 2^-100; not a number where t is none."""

    def generate(_context, builder, _signature, arguments):
        t = larger(builder, constant(_LOWEST), arguments[0])
        shifted = builder.fadd(t, constant(TO_WHOLE))
        fraction = builder.fsub(t, builder.fsub(shifted, constant(TO_WHOLE)))
        power = constant(_POWER[0])
        for coefficient in _POWER[1:]:
            power = fuse(builder, power, fraction, constant(coefficient))
        # The whole part is added to the exponent, which begins at bit 23.
        exponent = builder.shl(builder.bitcast(shifted, _WHOLE), constant(23, _WHOLE))
        return builder.bitcast(builder.add(builder.bitcast(power, _WHOLE), exponent), Vector.ir_type)

    return vector(t), generate


@intrinsic
def count_reached(_typing, count, running, goal):
    """count + 1 where running ≤ goal, count elsewhere."""

    def generate(_context, builder, _signature, arguments):
        count, running, goal = arguments
        is_reached = builder.fcmp_ordered("<=", running, goal)
        return builder.select(is_reached, builder.fadd(count, constant(1.0)), count)

    return vector(count, running, goal), generate


@intrinsic
def move_others_away(_typing, square, known, k, trust):
    """`square` plus the float32 trust where known (LANES,) int32 is a class other than k, `square` elsewhere."""

    def generate(context, builder, signature, arguments):
        square, known, k, trust = open_arrays(context, builder, signature, arguments)
        mine = builder.load(vector_at(builder, known.data, INDEX(0), _WHOLE), align=4)
        this = spread_scalar(builder, builder.trunc(k, _BITS), _WHOLE)
        is_known = builder.icmp_signed(">=", mine, constant(0, _WHOLE))
        is_other = builder.and_(is_known, builder.icmp_signed("!=", mine, this))
        return builder.select(is_other, builder.fadd(square, spread_scalar(builder, trust)), square)

    return vector(square, known, k, trust), generate
