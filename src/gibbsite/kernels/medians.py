"""Medians of neighbouring bands, four at a time, of one sample or of a register of them.

Neighbouring windows share all but a few of their bands. What four of them share is sorted once, by a network of
comparisons without branches; of it only the middle can be their median, whatever the rest of each window is. Windows
within one another share their middle too. LLVM then drops the comparisons that nobody asks for, or that were made
before. So a median of 11 takes 16 lowest or highest of two, alone it would take 50; medians of 11, 7 and 3 take 24
together.

Floating-point numbers without a sign are in the order of their bits taken as whole numbers, and of these some
processors compare twice as many at once.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from gibbsite.kernels.vectors import INDEX, open_arrays, vector_at

_WIDTH = 16
"""Samples side by side: a register of AVX-512. LLVM splits it where registers are shorter."""
_REGISTER, _BITS = ir.VectorType(ir.FloatType(), _WIDTH), ir.VectorType(ir.IntType(32), _WIDTH)
AT_ONCE = 4
"""Medians of neighbouring bands that are found together."""
ENDS = 5
"""Bands at either end whose windows of 11 bands would reach beyond it."""


def _ordered(builder, a, b):
    """The lower and the higher of two, lane by lane."""
    is_lower = (builder.fcmp_ordered if a.type == _REGISTER else builder.icmp_signed)("<", a, b)
    return builder.select(is_lower, a, b), builder.select(is_lower, b, a)


def _lowest(builder, values):
    return values[0] if len(values) == 1 else _ordered(builder, values[0], _lowest(builder, values[1:]))[0]


def _sorted(builder, values):
    """The values in rising order: Batcher's exchange of neighbours (Knuth, TAOCP vol. 3, 5.2.2, algorithm M)."""
    values, n = list(values), len(values)
    step = 1 << max(0, (n - 1).bit_length() - 1)
    top, p = step, step
    while p > 0:
        q, r, d = top, 0, p
        while True:
            for i in range(n - d):
                if i & p == r:
                    values[i], values[i + d] = _ordered(builder, values[i], values[i + d])
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2
    return values


def _of_rank(builder, some, others, rank):
    """The value of this rank, from 1, in two sorted lists: the lowest of the highest over all ways to share it out."""
    ways = []
    for n in range(max(0, rank - len(others)), min(rank, len(some)) + 1):
        last = ([some[n - 1]] if n else []) + ([others[rank - n - 1]] if rank > n else [])
        ways.append(last[0] if len(last) == 1 else _ordered(builder, *last)[1])
    return _lowest(builder, ways)


def _merged(builder, some, others):
    """Two sorted lists of the same length, a power of 2, as one (Batcher's odd-even merge)."""
    if len(some) == 1:
        return list(_ordered(builder, some[0], others[0]))
    even, odd = _merged(builder, some[::2], others[::2]), _merged(builder, some[1::2], others[1::2])
    between = [_ordered(builder, *pair) for pair in zip(odd, even[1:], strict=False)]
    return [even[0], *(value for pair in between for value in pair), odd[-1]]


def _sorted_core(builder, values):
    """The values in rising order; those in the middle, of which the cores of narrower windows consist, come first."""
    if len(values) == 8:
        return _merged(builder, _sorted_core(builder, values[2:6]), _sorted_core(builder, values[:2] + values[6:]))
    if len(values) == 4:
        return _merged(builder, _ordered(builder, *values[:2]), _ordered(builder, *values[2:]))
    return _sorted(builder, values)


def _four_medians(builder, values, window):
    """The medians of values[j : j + window], j = 0 … 3."""
    core = _sorted_core(builder, values[3:window])
    # Three values are still to come: what has more than half of a window above or below it can be no median.
    spare = max(0, len(core) - 4) // 2
    core = core[spare : len(core) - spare]
    medians = []
    for pair, singles in (((1, 2), (0, window)), ((window, window + 1), (2, window + 2))):
        two = _ordered(builder, values[pair[0]], values[pair[1]])
        half = len(core) // 2 + 1
        low, high = (_of_rank(builder, core, two, rank) for rank in (half, half + 1))
        medians += [_ordered(builder, low, _ordered(builder, values[one], high)[0])[1] for one in singles]
    return medians


def _residuals(windows, has_signs):
    """Intrinsics that set residual[n_bands · k + b, i : i + 16] to values less medians of windows[k] bands, the widest
    of which comes first; without signs, of values of which none has any."""
    widest, ordered_as = windows[0], _REGISTER if has_signs else _BITS

    def place(builder, array, b, i):
        start = builder.add(builder.mul(b, builder.extract_value(array.shape, 1)), i)
        return vector_at(builder, array.data, start, _REGISTER)

    def load(builder, array, b, n, i):
        return [builder.load(place(builder, array, builder.add(b, INDEX(row)), i), align=4) for row in range(n)]

    def keys(builder, rows):
        return [builder.bitcast(row, ordered_as) for row in rows]

    def put_less(builder, array, b, i, value, median):
        """array[b, i : i + 16] = value - median; its magnitude, as whole numbers of the same order."""
        left = builder.fsub(value, builder.bitcast(median, _REGISTER))
        builder.store(left, place(builder, array, b, i), align=4)
        return builder.and_(builder.bitcast(left, _BITS), ir.Constant(_BITS, [0x7FFFFFFF] * _WIDTH))

    def nearest(builder, b, window, n_bands):
        """The first band of the window around b, or of the nearest at the ends."""
        last, wanted = builder.sub(n_bands, INDEX(window)), builder.sub(b, INDEX(window // 2))
        wanted = builder.select(builder.icmp_signed("<", wanted, INDEX(0)), INDEX(0), wanted)
        return builder.select(builder.icmp_signed(">", wanted, last), last, wanted)

    @intrinsic
    def less_medians(_typing, values, b, i, residual):
        """Of band b."""

        def generate(context, builder, signature, arguments):
            values, b, i, residual = open_arrays(context, builder, signature, arguments)
            n_bands = builder.extract_value(values.shape, 0)
            (value,) = load(builder, values, b, 1, i)
            for number, window in enumerate(windows):
                rows = load(builder, values, nearest(builder, b, window, n_bands), window, i)
                target = builder.add(builder.mul(n_bands, INDEX(number)), b)
                put_less(builder, residual, target, i, value, _sorted(builder, keys(builder, rows))[window // 2])
            return context.get_dummy_value()

        return types.void(values, b, i, residual), generate

    @intrinsic
    def less_four(_typing, values, first, i, residual, largest):
        """Of the four bands around which the widest windows are those from first, first + 1, … on; and the largest
        magnitude among them to largest[i : i + 16]."""

        def generate(context, builder, signature, arguments):
            values, first, i, residual, largest = open_arrays(context, builder, signature, arguments)
            n_bands = builder.extract_value(values.shape, 0)
            rows, half = load(builder, values, first, widest + AT_ONCE - 1, i), widest // 2
            target, most = builder.add(first, INDEX(half)), ir.Constant(_BITS, [0] * _WIDTH)
            for window in windows:
                medians = _four_medians(builder, keys(builder, rows[half - window // 2 :]), window)
                for row, median in enumerate(medians):
                    at = builder.add(target, INDEX(row))
                    most = _ordered(builder, most, put_less(builder, residual, at, i, rows[half + row], median))[1]
                target = builder.add(target, n_bands)
            builder.store(builder.bitcast(most, _REGISTER), vector_at(builder, largest.data, i, _REGISTER), align=4)
            return context.get_dummy_value()

        return types.void(values, first, i, residual, largest), generate

    return less_medians, less_four


def _band_residuals(*windows, has_signs=True):
    less_medians, less_four = _residuals(windows, has_signs)
    widest = windows[0]

    @njit(nogil=True, cache=True)
    def band_residuals(values, residual, largest):
        n_bands, n_samples = values.shape
        n_windows = n_bands - widest + 1
        half = widest // 2
        n_ends = half if n_windows >= AT_ONCE else n_bands - half
        for i in range(0, n_samples, _WIDTH):
            for b in range(n_ends):
                less_medians(values, b, i, residual)
                less_medians(values, n_bands - 1 - b, i, residual)
        if n_windows < AT_ONCE:
            largest[:] = np.inf
            return
        for start in range(0, n_windows, AT_ONCE):
            # The last four may overlap those before.
            first = min(start, n_windows - AT_ONCE)
            for i in range(0, n_samples, _WIDTH):
                less_four(values, first, i, residual, largest[start // AT_ONCE])

    return band_residuals


_residuals_3, _residuals_5, _residuals_7 = _band_residuals(3), _band_residuals(5), _band_residuals(7)
_residuals_9, _residuals_11 = _band_residuals(9), _band_residuals(11)
_usual_residuals, _usual_with_signs = _band_residuals(11, 7, 3, has_signs=False), _band_residuals(11, 7, 3)


@njit(nogil=True, cache=True)
def _has_signs(values):
    """Whether any of the values has a sign. I/F hardly ever does, but where it is dark noise may be larger than it."""
    bits, together = values.reshape(values.size).view(np.int32), np.int32(0)
    for i in range(len(bits)):
        together |= bits[i]
    return together < 0


@njit(nogil=True, cache=True)
def band_residuals(values, windows, residual, largest):
    """Set residual (window, band, sample) to values (band, sample) less the median of each of the windows (3, 5, 7, 9
    or 11 bands, and no more than there are) around each; at the ends, of the nearest so many.

    Row k of `largest` (group, sample), of which there is one for every AT_ONCE bands, is set to no less than the
    largest |residual| of the AT_ONCE bands from ENDS + k · AT_ONCE on, but for the last ENDS bands. Samples that are
    not a number in some bands only have residuals of no meaning.
    """
    n_bands, n_samples = values.shape
    is_usual = len(windows) == 3 and windows[0] == 11 and windows[1] == 7 and windows[2] == 3
    if is_usual:
        together = residual.reshape(3 * n_bands, n_samples)
        if _has_signs(values):
            _usual_with_signs(values, together, largest)
        else:
            _usual_residuals(values, together, largest)
        return
    for number in range(len(windows)):
        if windows[number] == 3:
            _residuals_3(values, residual[number], largest)
        elif windows[number] == 5:
            _residuals_5(values, residual[number], largest)
        elif windows[number] == 7:
            _residuals_7(values, residual[number], largest)
        elif windows[number] == 9:
            _residuals_9(values, residual[number], largest)
        else:
            _residuals_11(values, residual[number], largest)
    largest[:] = np.inf
