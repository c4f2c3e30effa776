"""Innermost loops of coordinate descent and sparse products, as vector instructions (numba, LLVM).

Loops over rows that numba compiles would keep their sums in memory. Here the sums for four
coordinates of a tile of rows remain in registers during the loop over components, as in BLAS. A
tile is an array (k, lanes) with ``LANE_BYTES`` in a row, k padded to a multiple of four.

Sparse products read or change rows of arrays (rows, k) whose k is padded to whole cache lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic as numba_intrinsic

intrinsic: Any = numba_intrinsic  # numba adds the first argument itself

LANE_BYTES = 256 if binding.get_host_cpu_features().get("avx512f") else 64
"""Bytes of a row of a tile, so that four rows fit into the vector registers."""

LINE_BYTES = 64
"""Bytes of a cache line, and of a vector in sparse products."""


@intrinsic
def step_quad(
    typing: Any, negated: Any, steps: Any, at: Any, tile: Any, linear: Any
) -> tuple[Any, Any]:
    """Update the four coordinates that begin at ``at``, in turn, for all rows of a tile.

    Parameters
    ----------
    negated : array (k, k), minus the Gram matrix
    steps : array (k,), one over its diagonal, or zero for a coordinate that stays unchanged
    at : int
    tile, linear : tiles; the first is changed
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        negated, steps, at, tile, linear = _unpacked(context, builder, signature, arguments)
        code = _Vectors(context, builder, signature.args[3], LANE_BYTES)
        rows = [builder.add(at, at.type(i)) for i in range(4)]
        start = [code.load(linear, row) for row in rows]
        slopes = code.products(negated, rows, tile, start)
        changes: list[Any] = []
        for i, row in enumerate(rows):
            for j, change in enumerate(changes):
                entry = code.broadcast(code.entry(negated, row, rows[j]))
                slopes[i] = code.multiply_add(entry, change, slopes[i])
            old = code.load(tile, row)
            step = code.broadcast(builder.load(builder.gep(steps.data, [row])))
            new = code.positive(code.multiply_add(slopes[i], step, old))
            changes.append(builder.fsub(new, old))
            code.store(new, tile, row)
        return context.get_dummy_value()

    return types.void(negated, steps, at, tile, linear), generate


@intrinsic
def dot_quad(
    typing: Any, codes: Any, row: Any, basis: Any, columns: Any, at: Any, out: Any
) -> tuple[Any, Any]:
    """Write ``codes[row] . basis[j]`` for the four columns j that begin at ``at`` to ``out``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        codes, row, basis, columns, at, out = _unpacked(context, builder, signature, arguments)
        code = _Vectors(context, builder, signature.args[0], LINE_BYTES)
        places = [builder.add(at, at.type(i)) for i in range(4)]
        chosen = [
            code.number_at(columns, signature.args[3], place, types.int64) for place in places
        ]
        sums = [cgutils.alloca_once_value(builder, code.zero) for _ in chosen]
        for total in sums:
            builder.store(code.zero, total)
        with code.each_vector(codes) as c:
            own = code.load(codes, row, c)
            for j, total in zip(chosen, sums, strict=True):
                part = code.multiply_add(own, code.load(basis, j, c), builder.load(total))
                builder.store(part, total)
        four = code.totals([builder.load(total) for total in sums])
        to = builder.bitcast(builder.gep(out.data, [at]), four.type.as_pointer())
        builder.store(four, to, align=code.size)
        return context.get_dummy_value()

    return types.void(codes, types.int64, basis, columns, types.int64, out), generate


@intrinsic
def add_row(
    typing: Any, value: Any, source: Any, row: Any, target: Any, to: Any
) -> tuple[Any, Any]:
    """Add ``value source[row]`` to ``target[to]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, source, row, target, to = _unpacked(context, builder, signature, arguments)
        code = _Vectors(context, builder, signature.args[1], LINE_BYTES)
        factor = code.broadcast(value)
        with code.each_vector(source) as c:
            changed = code.multiply_add(factor, code.load(source, row, c), code.load(target, to, c))
            code.store(changed, target, to, c)
        return context.get_dummy_value()

    return types.void(source.dtype, source, types.int64, target, types.int64), generate


@intrinsic
def sum_rows(
    typing: Any, values: Any, columns: Any, begin: Any, end: Any, source: Any, target: Any, to: Any
) -> tuple[Any, Any]:
    """Write the sum of ``values[p] source[columns[p]]``, p from begin to end, to ``target[to]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, columns, begin, end, source, target, to = _unpacked(
            context, builder, signature, arguments
        )
        source_type = signature.args[4]
        code = _Vectors(context, builder, source_type, LINE_BYTES)
        # Two sums take turns, so that an addition need not wait for the one before.
        sums = [cgutils.alloca_once_value(builder, code.zero) for _ in range(2)]
        even = builder.and_(builder.sub(end, begin), begin.type(-2))
        middle = builder.add(begin, even)
        with code.each_vector(source) as c:
            for total in sums:
                builder.store(code.zero, total)
            for start, stop, some in ((begin, middle, sums), (middle, end, sums[:1])):
                loop = cgutils.for_range_slice(builder, start, stop, begin.type(len(some)))
                with _first(loop) as p:
                    for i, total in enumerate(some):
                        place = builder.add(p, p.type(i))
                        value = code.number_at(values, signature.args[0], place, source_type.dtype)
                        row = code.number_at(columns, signature.args[1], place, types.int64)
                        part = code.multiply_add(
                            code.broadcast(value), code.load(source, row, c), builder.load(total)
                        )
                        builder.store(part, total)
            code.store(builder.fadd(*(builder.load(total) for total in sums)), target, to, c)
        return context.get_dummy_value()

    kinds = values, columns, types.int64, types.int64, source, target, types.int64
    return types.void(*kinds), generate


@contextmanager
def _first(loop: Any) -> Iterator[Any]:
    """Enter a loop of numba that yields its index and more; yield the index."""
    with loop as (index, *_):
        yield index


def _unpacked(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Return the arguments of an intrinsic, arrays as structures with named fields."""
    return [
        context.make_array(kind)(context, builder, value)
        if isinstance(kind, types.Array)
        else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


class _Vectors:
    """Operations on vectors, parts of the rows of arrays, from which the loops are built."""

    def __init__(self, context: Any, builder: Any, array: Any, width: int):
        self.context, self.builder = context, builder
        self.number = context.get_value_type(array.dtype)
        self.size = context.get_abi_sizeof(self.number)
        self.lanes = width // self.size
        self.vector = ir.VectorType(self.number, self.lanes)
        self.zero = ir.Constant(self.vector, [0.0] * self.lanes)

    def products(self, square: Any, rows: list[Any], tile: Any, start: list[Any]) -> list[Any]:
        """Compute ``start[i] + square[rows[i]] tile``, summed in registers."""
        builder = self.builder
        sums = [cgutils.alloca_once_value(builder, value) for value in start]
        rank = cgutils.unpack_tuple(builder, square.shape, 2)[0]
        with cgutils.for_range(builder, rank) as loop:
            part = self.load(tile, loop.index)
            for row, total in zip(rows, sums, strict=True):
                entry = self.broadcast(self.entry(square, row, loop.index))
                builder.store(self.multiply_add(entry, part, builder.load(total)), total)
        return [builder.load(total) for total in sums]

    def entry(self, square: Any, row: Any, column: Any) -> Any:
        """Load one entry of a square array."""
        builder = self.builder
        rank = cgutils.unpack_tuple(builder, square.shape, 2)[0]
        at = builder.add(builder.mul(row, rank), column)
        return builder.load(builder.gep(square.data, [at]))

    def each_vector(self, array: Any) -> Any:
        """Begin a loop over the vectors of a row; yields the column at which each begins."""
        k = cgutils.unpack_tuple(self.builder, array.shape, 2)[1]
        return _first(cgutils.for_range_slice(self.builder, k.type(0), k, k.type(self.lanes)))

    def number_at(self, array: Any, kind: Any, at: Any, to: Any) -> Any:
        """Load a number of a flat array of some kind, and convert it to another type."""
        value = self.builder.load(self.builder.gep(array.data, [at]))
        return self.context.cast(self.builder, value, kind.dtype, to)

    def totals(self, vectors: list[Any]) -> Any:
        """Sum the lanes of four vectors each; pairs are added in one vector as long as possible."""
        one, other = (self._paired(vectors[i], vectors[i + 1], 1) for i in (0, 2))
        total = self._paired(one, other, 2)
        while total.type.count > 4:
            half = total.type.count // 2
            total = self._sum(total, total, list(range(half)), list(range(half, 2 * half)))
        return total

    def _paired(self, a: Any, b: Any, step: int) -> Any:
        """Add groups of ``step`` lanes to their neighbours; groups of a and b take turns."""
        n = a.type.count
        starts = [start for at in range(0, n, 2 * step) for start in (at, n + at)]
        first = [start + i for start in starts for i in range(step)]
        return self._sum(a, b, first, [i + step for i in first])

    def _sum(self, a: Any, b: Any, first: list[int], second: list[int]) -> Any:
        """Add two choices of the lanes of two vectors."""
        kind = ir.VectorType(ir.IntType(32), len(first))
        parts = [self.builder.shuffle_vector(a, b, ir.Constant(kind, m)) for m in (first, second)]
        return self.builder.fadd(*parts)

    def load(self, array: Any, row: Any, column: Any = None) -> Any:
        return self.builder.load(self._place(array, row, column), align=self.size)

    def store(self, value: Any, array: Any, row: Any, column: Any = None) -> None:
        self.builder.store(value, self._place(array, row, column), align=self.size)

    def broadcast(self, value: Any) -> Any:
        """Copy one number to all lanes."""
        undefined = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(undefined, value, ir.IntType(32)(0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, undefined, mask)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        flags = ("contract",)  # as one instruction, if the machine has it
        return self.builder.fadd(self.builder.fmul(a, b, flags=flags), c, flags=flags)

    def positive(self, value: Any) -> Any:
        """Compute ``max(value, 0)``; NaN remains NaN."""
        is_negative = self.builder.fcmp_ordered("<", value, self.zero)
        return self.builder.select(is_negative, self.zero, value)

    def _place(self, array: Any, row: Any, column: Any) -> Any:
        """Return a pointer to the vector of a row that begins at a column; None is the first."""
        length = cgutils.unpack_tuple(self.builder, array.shape, 2)[1]
        at = self.builder.mul(row, length)
        at = at if column is None else self.builder.add(at, column)
        return self.builder.bitcast(self.builder.gep(array.data, [at]), self.vector.as_pointer())
