"""Innermost loops of coordinate descent, as vector instructions (numba, LLVM).

Loops over rows that numba compiles would keep their sums in memory. Here the sums for four
coordinates of a tile of rows remain in registers during the loop over components, as in BLAS. A
tile is an array (k, lanes) with ``LANE_BYTES`` in a row, k padded to a multiple of four.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic as numba_intrinsic

intrinsic: Any = numba_intrinsic  # numba adds the first argument itself

LANE_BYTES = 256 if binding.get_host_cpu_features().get("avx512f") else 64
"""Bytes of a row of a tile, so that four rows fit into the vector registers."""


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
        code = _Vectors(context, builder, signature.args[3])
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
            code.store(tile, row, new)
        return context.get_dummy_value()

    return types.void(negated, steps, at, tile, linear), generate


def _unpacked(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Return the arguments of an intrinsic, arrays as structures with named fields."""
    return [
        context.make_array(kind)(context, builder, value)
        if isinstance(kind, types.Array)
        else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


class _Vectors:
    """Operations on rows of tiles from which the loops are built."""

    def __init__(self, context: Any, builder: Any, tile: Any):
        self.builder = builder
        self.number = context.get_value_type(tile.dtype)
        self.size = context.get_abi_sizeof(self.number)
        self.lanes = LANE_BYTES // self.size
        self.vector = ir.VectorType(self.number, self.lanes)

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

    def load(self, tile: Any, row: Any) -> Any:
        return self.builder.load(self._place(tile, row), align=self.size)

    def store(self, tile: Any, row: Any, value: Any) -> None:
        self.builder.store(value, self._place(tile, row), align=self.size)

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
        zero = ir.Constant(self.vector, [0.0] * self.lanes)
        return self.builder.select(self.builder.fcmp_ordered("<", value, zero), zero, value)

    def _place(self, tile: Any, row: Any) -> Any:
        at = self.builder.mul(row, row.type(self.lanes))
        return self.builder.bitcast(self.builder.gep(tile.data, [at]), self.vector.as_pointer())
