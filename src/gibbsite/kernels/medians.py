"""Medians of neighbouring bands, four at a time, of one sample or of a register of them.

Neighbouring windows share all but a few of their bands. What four of them share is sorted once, by a network of
comparisons without branches; of it only the middle can be their median, whatever the rest of each window is. LLVM then
drops the comparisons that nobody asks for. So a median of 11 takes 16 lowest or highest of two, alone it would take 50.
"""

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from gibbsite.kernels.vectors import INDEX, open_arrays, vector_at

_WIDTH = 16
"""Samples side by side: a register of AVX-512. LLVM splits it where registers are shorter."""
_REGISTER = ir.VectorType(ir.FloatType(), _WIDTH)
AT_ONCE = 4
"""Medians of neighbouring bands that are found together."""


def _ordered(builder, a, b):
    """The lower and the higher of two, lane by lane."""
    is_lower = builder.fcmp_ordered("<", a, b)
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


def _four_medians(builder, values, window):
    """The medians of values[j : j + window], j = 0 … 3."""
    core = _sorted(builder, values[3:window])
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


def _residuals(window):
    """Intrinsics that set residual[b, i : i + 16] to values less medians of `window` bands."""

    def place(builder, array, b, i):
        start = builder.add(builder.mul(b, builder.extract_value(array.shape, 1)), i)
        return vector_at(builder, array.data, start, _REGISTER)

    def load(builder, array, b, n, i):
        return [builder.load(place(builder, array, builder.add(b, INDEX(row)), i), align=4) for row in range(n)]

    def subtract(builder, values, medians, residual, b, i):
        for row, (value, median) in enumerate(zip(values, medians, strict=True)):
            at = place(builder, residual, builder.add(b, INDEX(row)), i)
            builder.store(builder.fsub(value, median), at, align=4)

    @intrinsic
    def less_median(_typing, values, first, b, i, residual):
        """residual[b] = values[b] − median of values[first : first + window]."""

        def generate(context, builder, signature, arguments):
            values, first, b, i, residual = open_arrays(context, builder, signature, arguments)
            median = _sorted(builder, load(builder, values, first, window, i))[window // 2]
            subtract(builder, load(builder, values, b, 1, i), [median], residual, b, i)
            return context.get_dummy_value()

        return types.void(values, first, b, i, residual), generate

    @intrinsic
    def less_four(_typing, values, first, i, residual):
        """The same for the four windows from first, first + 1, … on, at their middles."""

        def generate(context, builder, signature, arguments):
            values, first, i, residual = open_arrays(context, builder, signature, arguments)
            rows = load(builder, values, first, window + AT_ONCE - 1, i)
            half = window // 2
            medians = _four_medians(builder, rows, window)
            subtract(builder, rows[half : half + AT_ONCE], medians, residual, builder.add(first, INDEX(half)), i)
            return context.get_dummy_value()

        return types.void(values, first, i, residual), generate

    return less_median, less_four


def _band_residuals(window):
    less_median, less_four = _residuals(window)

    @njit(nogil=True, cache=True)
    def band_residuals(values, residual):
        n_bands, n_samples = values.shape
        last = n_bands - window
        for i in range(0, n_samples, _WIDTH):
            for b in range(window // 2):
                less_median(values, 0, b, i, residual)
                less_median(values, last, n_bands - 1 - b, i, residual)
        if last + 1 < AT_ONCE:
            for first in range(last + 1):
                for i in range(0, n_samples, _WIDTH):
                    less_median(values, first, first + window // 2, i, residual)
            return
        for start in range(0, last + 1, AT_ONCE):
            # The last four may overlap those before.
            first = min(start, last + 1 - AT_ONCE)
            for i in range(0, n_samples, _WIDTH):
                less_four(values, first, i, residual)

    return band_residuals


_residuals_3, _residuals_5, _residuals_7 = _band_residuals(3), _band_residuals(5), _band_residuals(7)
_residuals_9, _residuals_11 = _band_residuals(9), _band_residuals(11)


@njit(nogil=True, cache=True)
def band_residuals(values, window, residual):
    """Set residual to values (band, sample) less the median of `window` bands (3, 5, 7, 9 or 11, and no more than there
    are) around each; at the ends, of the nearest so many."""
    if window == 3:
        _residuals_3(values, residual)
    elif window == 5:
        _residuals_5(values, residual)
    elif window == 7:
        _residuals_7(values, residual)
    elif window == 9:
        _residuals_9(values, residual)
    else:
        _residuals_11(values, residual)
