"""Row blocks: consecutive rows of X with the products that a pass needs.

A block holds its rows as the user gave them and works in units of ``scale``, a
power of two near the largest entry of X or, for divergences, less if typical entries are far
smaller. Dividing the small products by it, not
X itself, needs no copy of X and no rounding, and data of size 1e-60 or 1e+60 neither
underflow nor overflow when they are squared.

``Block`` defines the interface; blocks of dense, incomplete and sparse rows
are its subclasses. A loss reads the ``values`` of a block, and everything computed from
them entry by entry (approximation, loss, parts of the gradient) has their shape: a table
(rows, features), or a list of the stored entries.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from robustnmf.arrays.backend import Kernels, kernels_for
from robustnmf.arrays.namespace import (
    Array,
    Namespace,
    as_float64,
    namespace,
    on_device_of,
    to_numpy,
)

CHUNK_NUMBERS = 100_000
DEVICE_NUMBERS = 2**27


class Block:
    """Consecutive rows of X, in units of ``scale``.

    Its methods are those for a table of numbers, of any array library.

    Attributes
    ----------
    sq_norms : array (rows,), float64
        Squared norm of each row.
    row_weight : array (rows,), float64
        How many times each row counts, once by default. A row of zeros counts zero times:
        any basis fits it exactly.
    """

    zeros_apart: ClassVar[bool] = False
    """Whether the values of a block leave out its zeros."""

    is_complete_table: ClassVar[bool] = False
    """Whether the rows are a dense table without missing values."""

    def __init__(self, rows: Array, scale: float = 1.0, row_weight: Array | None = None):
        self.rows = rows
        self.scale = scale
        self._sample_weight = row_weight
        self._sizes: dict[float, Array] = {}

    @property
    def xp(self) -> Namespace:
        """Array namespace of the rows."""
        return namespace(self.rows)

    @cached_property
    def kernels(self) -> Kernels:
        """Operations for arrays of the library and device of the rows."""
        return kernels_for(self.rows)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    @cached_property
    def sq_norms(self) -> Array:
        """Squared norm of each row."""
        return self.row_sizes(2.0)

    @cached_property
    def row_weight(self) -> Array:
        """How many times each row (rows,) counts; rows of zeros count zero times."""
        nominal = self.nominal_row_weight
        return self.xp.where(self.sq_norms > 0, nominal, 0 * nominal)

    @property
    def nominal_row_weight(self) -> Array:
        """How many times each row (rows,) counts if rows of zeros count like others."""
        weight = self._sample_weight
        return self.xp.ones_like(self.sq_norms) if weight is None else weight

    @property
    def full_row_weight(self) -> Array:
        """How many times each known entry of a row counts (rows,)."""
        return self.row_weight

    def as_whole(self, total: Array) -> Array:
        """Extrapolate a sum over the known entries of each row (..., rows) to all entries."""
        return total

    def of_known(self, total: Array) -> Array:
        """Invert ``as_whole``: return the sum over known entries (..., rows)."""
        return total

    def values(self) -> Array:
        """Return the entries that a loss reads, in units of scale."""
        return self._in_units(self.rows)

    def wide_values(self) -> Array:
        """Return the values in float64."""
        return self._in_units(as_float64(self.rows))

    def row_sizes(self, degree: float) -> Array:
        """Sum the powers of the entries of each whole row (rows,): the scale of its energy."""
        if degree not in self._sizes:
            self._sizes[degree] = self.as_whole(self._power_sums(degree))
        return self._sizes[degree]

    def _power_sums(self, degree: float) -> Array:
        """Sum the powers of the known entries of each row (rows,), a few rows at a time."""
        # Small enough for the CPU cache, or large enough to be worth a kernel launch.
        numbers = CHUNK_NUMBERS if isinstance(self.rows, np.ndarray) else DEVICE_NUMBERS
        step = max(1, numbers // self.rows.shape[1])
        edges = [*range(0, len(self), step), len(self)]
        chunks = (self.rows[at:stop, :] for at, stop in pairwise(edges))
        sums = [
            self.xp.sum(self._powers(self._in_units(as_float64(c)), degree), axis=1) for c in chunks
        ]
        return sums[0] if len(sums) == 1 else self.xp.concat(sums)

    def _powers(self, values: Array, degree: float) -> Array:
        """Raise positive entries to a power in float64; zeros stay zeros."""
        if degree == 1:
            return values
        if degree == 2:
            return values**2
        xp = self.xp
        nonzero = xp.where(values > 0, values, xp.ones_like(values))
        return xp.where(values > 0, nonzero**degree, xp.zeros_like(values))

    def take(self, index: Array) -> Array:
        """Return chosen rows as a dense table in units of scale."""
        return self._in_units(self.xp.take(self.rows, index, axis=0))

    def user_rows(self, index: np.ndarray) -> Any:
        """Return chosen rows on the host, in the user's units, NaN where a value is missing."""
        if len(index) == len(self):
            return to_numpy(self.rows)
        return to_numpy(self.xp.take(self.rows, on_device_of(self.rows, index), axis=0))

    def sq_residuals(self, index: Array, codes: Array, basis: Array) -> Array:
        """Compute squared errors of rows with codes (..., chosen, k) and bases (..., k, m)."""
        return self.xp.sum(as_float64((self.take(index) - codes @ basis) ** 2), axis=-1)

    def part(self, index: Array) -> Block:
        """Return a block of the chosen rows in float64."""
        return type(self)(as_float64(self.xp.take(self.rows, index, axis=0)), self.scale)

    def project(self, basis: Array) -> Array:
        """Compute ``X basis^T`` (members, rows, k) of all members as one product."""
        return self.kernels.project(self.rows, self._in_units(basis))

    def wide_project(self, directions: Array) -> Array:
        """Compute ``X directions`` (rows, directions) in float64."""
        return self.wide_values() @ directions

    def sq_distances(self, points: Array) -> Array:
        """Compute the squared distance (rows, points) to points (points, features), in float64."""
        products = self.wide_project(points.T)
        return self.sq_norms[:, None] - 2.0 * products + self.xp.sum(points**2, axis=1)

    def cross(self, codes: Array) -> Array:
        """Compute ``codes^T X`` (members, k, features) of all members as one product."""
        return self._in_units(self.kernels.cross(self.rows, codes))

    def weighted_sums(self, codes: Array, weights: Array) -> tuple[Array, Array]:
        """Compute ``codes^T w X`` and ``codes^T w codes`` for weights (members, rows, 1)."""
        cross, gram = self.kernels.weighted_sums(self.rows, codes, weights)
        return self._in_units(cross), gram

    def multiplicative_update(self, codes: Array, basis: Array, gram: Array) -> tuple[Array, Array]:
        """Update codes (members, rows, k) by a multiplicative step for the squared error.

        Also returns ``Kernels.quadratic_part`` (members, rows) of the new codes.
        """
        return self.kernels.project_and_update(self.rows, self._in_units(basis), gram, codes)

    def swept_update(
        self, codes: Array, basis: Array, gram: Array, sweeps: int
    ) -> tuple[Array, Array]:
        """Update codes (members, rows, k) by coordinate sweeps for the squared error.

        Also returns ``Kernels.quadratic_part`` (members, rows) of the new codes.
        """
        unit = 1.0 / self.scale
        return self.kernels.project_and_sweep(self.rows, unit, basis, gram, codes, sweeps)

    @property
    def samples(self) -> Block:
        """The block with complete rows, of which convex bases are mixtures."""
        return self

    def weighted(self, codes: Array) -> Array:
        """Multiply codes (members, rows, k) by the weights of rows."""
        return codes * self.xp.astype(self.row_weight, codes.dtype)[:, None]

    def approximation(self, codes: Array, basis: Array) -> Array:
        """Compute ``codes basis`` at the values (members, *values)."""
        return codes @ basis

    def row_sums(self, entries: Array) -> Array:
        """Sum entries shaped as the values over each row (..., rows) in float64."""
        return self.xp.sum(as_float64(entries), axis=-1)

    def project_part(self, part: Array | None, basis: Array) -> Array:
        """Compute ``part basis^T`` (members, rows, k) of entries shaped as values; None is ones."""
        xp = self.xp
        if part is None:
            return xp.sum(basis, axis=-1)[:, None, :]
        return part @ xp.matrix_transpose(basis)

    def cross_part(self, codes: Array, part: Array | None) -> Array:
        """Compute ``codes^T part`` (members, k, features); for ones (None) a single column."""
        xp = self.xp
        transposed = xp.matrix_transpose(codes)
        return xp.sum(transposed, axis=-1, keepdims=True) if part is None else transposed @ part

    def grams(self, curvature: Array, basis: Array) -> Array:
        """Compute ``basis diag(curvature_i) basis^T`` of every row i (rows, k, k), for one member.

        All of them are one product with the table of products of pairs of components.
        """
        xp = self.xp
        _, k, features = basis.shape
        pairs = basis[0, :, None, :] * basis[0, None, :, :]
        return xp.reshape(
            curvature[0, ...] @ xp.reshape(pairs, (k * k, features)).T, (len(self), k, k)
        )

    def _in_units(self, x: Array) -> Array:
        return x if self.scale == 1.0 else x * (1.0 / self.scale)


class DenseBlock(Block):
    """Consecutive rows of a dense X without missing values."""

    is_complete_table: ClassVar[bool] = True
