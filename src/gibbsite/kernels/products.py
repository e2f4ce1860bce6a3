"""Small matrix products whose sums stay in registers from the first term to the last.

All have one shape: for a few rows j at once, sum_j += coefficient[a, j] · row[a] over the terms a. A row holds one
feature of many pixels (scores), or many features of one pixel (sums). The coefficients of a term are neighbours in
memory.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gibbsite.kernels.vectors import (
    INDEX,
    LANES,
    constant,
    fuse,
    larger,
    open_arrays,
    spread_scalar,
    vector_at,
)

_ROWS = 6
"""Vectors of sums that fit into the registers, beside what is added to them."""
WIDTH = 8
"""Features of one pixel in a vector of float64."""
_WIDE = ir.VectorType(ir.DoubleType(), WIDTH)
HEIGHT = 8 if LANES == 64 else 4
"""Rows of such vectors whose sums fit into the registers, of two vectors each where there are 32 registers."""


def _add_products(builder, sums, coefficient, row, terms, is_triangular=False, n_vectors=1):
    """The sums after the terms [first, stop). Coefficients and rows: a pointer to term 0, and the step between terms.

    A row may be several vectors long: then the sums of one coefficient follow each other. Triangular: sum j starts with
    term first + j.
    """

    def add_term(term, sums, n_rows):
        kind = sums[0].type
        start = builder.gep(row[0], [builder.mul(term, row[1])])
        values = [
            builder.load(vector_at(builder, start, INDEX(v * kind.count), kind), align=4) for v in range(n_vectors)
        ]
        here = builder.gep(coefficient[0], [builder.mul(term, coefficient[1])])
        added = list(sums)
        for j in range(n_rows):
            factor = spread_scalar(builder, builder.load(builder.gep(here, [INDEX(j)])), kind)
            for v, value in enumerate(values, n_vectors * j):
                added[v] = fuse(builder, factor, value, sums[v])
        return added

    first, stop = terms
    if is_triangular:
        for j in range(len(sums)):
            sums = add_term(builder.add(first, INDEX(j)), sums, j + 1)
        first = builder.add(first, INDEX(len(sums)))

    before = builder.block
    test, body, after = (builder.append_basic_block(name) for name in ("test", "body", "after"))
    builder.branch(test)
    builder.position_at_end(test)
    term = builder.phi(INDEX)
    running = [builder.phi(total.type) for total in sums]
    builder.cbranch(builder.icmp_signed("<", term, stop), body, after)
    builder.position_at_end(body)
    added = add_term(term, running, len(sums) // n_vectors)
    following = builder.add(term, INDEX(1))
    builder.branch(test)
    for phi, start, new in zip([term, *running], [first, *sums], [following, *added], strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(new, body)
    builder.position_at_end(after)
    return running


def _for_rows(builder, n_rows, generate):
    """Do `generate(first, height)` for _ROWS rows at a time, and then for what is left.

    Branches find the height of the rest by bisection: jumps through a table were predicted badly.
    """
    full = builder.mul(builder.sdiv(n_rows, INDEX(_ROWS)), INDEX(_ROWS))
    with cgutils.for_range_slice(builder, INDEX(0), full, INDEX(_ROWS)) as (first, _):
        generate(first, _ROWS)
    rest = builder.sub(n_rows, full)
    after = builder.append_basic_block("after")

    def bisect(low, high):
        if low == high:
            if low > 0:
                generate(full, low)
            builder.branch(after)
            return
        middle = (low + high + 1) // 2
        blocks = builder.append_basic_block(f"from_{middle}"), builder.append_basic_block(f"below_{middle}")
        builder.cbranch(builder.icmp_signed(">=", rest, INDEX(middle)), *blocks)
        for block, bounds in zip(blocks, ((middle, high), (low, middle - 1)), strict=True):
            builder.position_at_end(block)
            bisect(*bounds)

    bisect(0, _ROWS - 1)
    builder.position_at_end(after)


def _call_apart(builder, name, arguments, generate):
    """Call a function of its own that `generate(builder, arguments)` fills.

    Inlined, its pointers and those of the caller would not fit into the registers together: that cost a tenth.
    """
    function = builder.module.globals.get(name)
    if function is None:
        kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        function = ir.Function(builder.module, kind, name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        inside = ir.IRBuilder(function.append_basic_block())
        generate(inside, function.args)
        inside.ret_void()
    builder.call(function, arguments)


@intrinsic
def whiten(_typing, x, matrix, shift, k, y, square):
    """Set y = U·x + shift[k] and square = Σ y².

    x, y (d, LANES), square (1, LANES); matrix (n_classes, d, d) holds the transpose of each upper triangular U.
    """

    def generate(context, builder, signature, arguments):
        x, matrix, shift, k, y, square = open_arrays(context, builder, signature, arguments)
        n_features = builder.extract_value(x.shape, 0)
        start = builder.mul(k, n_features)
        mine = [builder.gep(matrix.data, [builder.mul(start, n_features)]), builder.gep(shift.data, [start])]
        _call_apart(builder, "whiten", [x.data, *mine, y.data, square.data, n_features], _generate_whiten)
        return context.get_dummy_value()

    return types.void(x, matrix, shift, k, y, square), generate


def _generate_whiten(builder, arguments):
    x, matrix, shift, y, square, n_features = arguments
    square_at = vector_at(builder, square, INDEX(0))
    # Through memory, here and for `best`: kept in registers they would be spilled anyway.
    builder.store(constant(0.0), square_at, align=4)

    def generate_rows(r, height):
        index = [builder.add(r, INDEX(j)) for j in range(height)]
        start = [spread_scalar(builder, builder.load(builder.gep(shift, [a]))) for a in index]
        coefficient = (builder.gep(matrix, [r]), n_features)
        rows = _add_products(builder, start, coefficient, (x, INDEX(LANES)), (r, n_features), is_triangular=True)
        total = builder.load(square_at, align=4)
        for a, row in zip(index, rows, strict=True):
            builder.store(row, vector_at(builder, y, builder.mul(a, INDEX(LANES))), align=4)
            total = fuse(builder, row, row, total)
        builder.store(total, square_at, align=4)

    _for_rows(builder, n_features, generate_rows)


@intrinsic
def score_class(_typing, y, offset, direction, span, square, score, best):
    """Set score[c] = offset[c] + direction[:, c]·y − square for c in [first, stop), and raise `best` to them.

    y (d, LANES), offset (n,), direction (d, n), score (n, LANES), square and best (1, LANES); span (first, stop).
    """

    def generate(context, builder, signature, arguments):
        y, offset, direction, span, square, score, best = open_arrays(context, builder, signature, arguments)
        first, stop = builder.extract_value(span, 0), builder.extract_value(span, 1)
        starts = [builder.gep(array.data, [first]) for array in (offset, direction)]
        sizes = [*cgutils.unpack_tuple(builder, direction.shape), builder.sub(stop, first)]
        target = builder.gep(score.data, [builder.mul(first, INDEX(LANES))])
        pointers = [y.data, *starts, square.data, target, best.data]
        _call_apart(builder, "score_class", [*pointers, *sizes], _generate_score)
        return context.get_dummy_value()

    return types.void(y, offset, direction, span, square, score, best), generate


def _generate_score(builder, arguments):
    y, offset, direction, square, score, best, n_features, step, n_components = arguments
    square_at, best_at = vector_at(builder, square, INDEX(0)), vector_at(builder, best, INDEX(0))

    def generate_rows(first, height):
        index = [builder.add(first, INDEX(j)) for j in range(height)]
        start = [spread_scalar(builder, builder.load(builder.gep(offset, [c]))) for c in index]
        coefficient = (builder.gep(direction, [first]), step)
        rows = _add_products(builder, start, coefficient, (y, INDEX(LANES)), (INDEX(0), n_features))
        less, top = builder.load(square_at, align=4), builder.load(best_at, align=4)
        for c, row in zip(index, rows, strict=True):
            value = builder.fsub(row, less)
            builder.store(value, vector_at(builder, score, builder.mul(c, INDEX(LANES))), align=4)
            top = larger(builder, value, top)
        builder.store(top, best_at, align=4)

    _for_rows(builder, n_components, generate_rows)


def _outer_adder(n_vectors):
    @intrinsic
    def add_outer(_typing, values, n_pixels, place, outer):
        def generate(context, builder, signature, arguments):
            values, n_pixels, place, outer = open_arrays(context, builder, signature, arguments)
            r, s = builder.extract_value(place, 0), builder.extract_value(place, 1)
            width = builder.extract_value(outer.shape, 1)
            rows = [builder.add(builder.mul(builder.add(r, INDEX(j)), width), s) for j in range(HEIGHT)]
            columns = [INDEX(v * WIDTH) for v in range(n_vectors)]
            targets = [vector_at(builder, outer.data, builder.add(row, v), _WIDE) for row in rows for v in columns]
            coefficient, row = (builder.gep(values.data, [r]), width), (builder.gep(values.data, [s]), width)
            start = [builder.load(target, align=8) for target in targets]
            sums = _add_products(builder, start, coefficient, row, (INDEX(0), n_pixels), n_vectors=n_vectors)
            for target, total in zip(targets, sums, strict=True):
                builder.store(total, target, align=8)
            return context.get_dummy_value()

        return types.void(values, n_pixels, place, outer), generate

    return add_outer


add_outer = _outer_adder(1)
"""Add Σ values[p, r + j] · values[p, s + i] over the pixels p to outer[r + j, s + i], j < HEIGHT, i < WIDTH.

values (n_pixels or more, w) and outer (w, w) float64, w a multiple of WIDTH; place (r, s).
"""
COLUMNS = 2 * WIDTH if LANES == 64 else WIDTH
add_wide_outer = _outer_adder(COLUMNS // WIDTH)
"""The same for i < COLUMNS."""


@intrinsic
def widen(_typing, feature, i, values, p):
    """Set the first d numbers of values[p] (w,) float64 to feature[i] (d,) int16, and the rest of a vector to zero."""

    def generate(context, builder, signature, arguments):
        feature, i, values, p = open_arrays(context, builder, signature, arguments)
        n_features, width = builder.extract_value(feature.shape, 1), builder.extract_value(values.shape, 1)
        row = builder.mul(i, n_features)
        source = builder.gep(feature.data, [row])
        target = builder.gep(values.data, [builder.mul(p, width)])
        narrow, mask = ir.VectorType(ir.IntType(16), WIDTH), ir.VectorType(ir.IntType(1), WIDTH)
        kind = ir.FunctionType(narrow, [narrow.as_pointer(), ir.IntType(32), mask, narrow])
        load = cgutils.get_or_insert_function(builder.module, kind, f"llvm.masked.load.v{WIDTH}i16.p0")
        index = ir.VectorType(INDEX, WIDTH)
        n_after = builder.sub(builder.mul(builder.extract_value(feature.shape, 0), n_features), row)
        with cgutils.for_range_slice(builder, INDEX(0), n_features, INDEX(WIDTH)) as (a, _):
            left = spread_scalar(builder, builder.sub(n_features, a), index)
            is_there = builder.icmp_signed("<", ir.Constant(index, list(range(WIDTH))), left)
            where = vector_at(builder, source, a, narrow)
            # Masks of 16 bits are slow but with AVX-512: all rows but the last may read on into the next and forget it.
            is_inside = builder.icmp_signed("<=", builder.add(a, INDEX(WIDTH)), n_after)
            with builder.if_else(is_inside) as (inside, at_end):
                with inside:
                    whole = builder.select(is_there, builder.load(where, align=2), constant(0, narrow))
                    inside_block = builder.block
                with at_end:
                    part = builder.call(load, [where, ir.IntType(32)(2), is_there, constant(0, narrow)])
                    end_block = builder.block
            number = builder.phi(narrow)
            number.add_incoming(whole, inside_block)
            number.add_incoming(part, end_block)
            builder.store(builder.sitofp(number, _WIDE), vector_at(builder, target, a, _WIDE), align=8)
        return context.get_dummy_value()

    if feature.layout != "C" or feature.dtype != types.int16:
        return None
    return types.void(feature, i, values, p), generate
