"""Row blocks: consecutive rows of X with the products that a pass needs.

A block contains its rows as the user gave them and works in units of ``scale``, a
power of two near the largest entry of X or, for divergences, less if typical entries are far
smaller. The small products are divided by it instead of X. This needs no copy of X and
no rounding, and data of size 1e-60 or 1e+60 neither underflow nor overflow when squared.

``Block`` defines the interface; blocks of dense, incomplete and sparse rows
are its subclasses. A loss reads the ``values`` of a block, and everything computed from
them entry by entry (approximation, loss, parts of the gradient) has their shape: a table
(rows, features), or a list of the stored entries.

Compiled loops are imported when they are called, because numba takes long to import.
"""

from __future__ import annotations

import copy
import math
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from robustnmf.arrays.kernels import Kernels, kernels_for
from robustnmf.arrays.namespace import (
    Array,
    Namespace,
    as_float64,
    eps,
    namespace,
    on_device_of,
    to_numpy,
)

CHUNK_NUMBERS = 100_000
DEVICE_NUMBERS = 2**27

LARGEST_SHARE = 0.2
"""Share of missing entries up to which a list of them is faster than products of whole tables."""

LEAST_FEATURES = 100
"""Least number of features for which a list is faster."""


class Block:
    """Consecutive rows of X, in units of ``scale``.

    The methods of this class are for dense tables of any array library.

    Attributes
    ----------
    sq_norms : array (rows,), float64
        Squared norm of each row.
    row_weight : array (rows,), float64
        Weight of each row in sums, one by default. A row of zeros has weight zero, because
        any basis fits it exactly.
    """

    zeros_apart: ClassVar[bool] = False
    """Whether the values of a block do not include its zeros."""

    is_complete_table: ClassVar[bool] = False
    """Whether the rows are a dense table without missing values."""

    def __init__(self, rows: Array, scale: float = 1.0, row_weight: Array | None = None):
        self.rows = rows
        self.scale = scale
        self._sample_weight = row_weight
        self._sizes: dict[float, Array] = {}

    @property
    def entries(self) -> Array:
        """The entries that a loss reads, in the user's units."""
        return self.rows

    @property
    def xp(self) -> Namespace:
        """Array namespace of the entries."""
        return namespace(self.entries)

    @cached_property
    def kernels(self) -> Kernels:
        """Operations for arrays of the library and device of the entries."""
        return kernels_for(self.entries)

    @property
    def unit(self) -> float:
        """Factor from the rows to units of scale."""
        return 1.0 / self.scale

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    @cached_property
    def sq_norms(self) -> Array:
        """Squared norm of each row."""
        return self.row_sizes(2.0)

    @cached_property
    def row_weight(self) -> Array:
        """Weight of each row (rows,); zero for rows of zeros."""
        nominal = self.nominal_row_weight
        return self.xp.where(self.sq_norms > 0, nominal, 0 * nominal)

    @property
    def nominal_row_weight(self) -> Array:
        """Weight of each row (rows,), also for rows of zeros."""
        weight = self._sample_weight
        return self.xp.ones_like(self.sq_norms) if weight is None else weight

    @property
    def full_row_weight(self) -> Array:
        """Weight of each known entry of a row (rows,)."""
        return self.row_weight

    def as_whole(self, total: Array) -> Array:
        """Extrapolate a sum over the known entries of each row (..., rows) to all entries."""
        return total

    def of_known(self, total: Array) -> Array:
        """Invert ``as_whole``: return the sum over known entries (..., rows)."""
        return total

    def values(self) -> Array:
        """Return the entries that a loss reads, in units of scale."""
        return self._in_units(self.entries)

    def wide_values(self) -> Array:
        """Return the values in float64."""
        return self._in_units(as_float64(self.entries))

    def row_sizes(self, degree: float) -> Array:
        """Sum the powers of the entries of each whole row (rows,), with which energies compare."""
        if degree not in self._sizes:
            self._sizes[degree] = self.as_whole(self._power_sums(degree))
        return self._sizes[degree]

    def _power_sums(self, degree: float) -> Array:
        """Sum the powers of the known entries of each row (rows,)."""
        return self.row_sums(self._powers(self.wide_values(), degree))

    def _powers(self, values: Array, degree: float) -> Array:
        """Raise positive entries to a power in float64; zeros remain zero."""
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
        """Return chosen rows on the host, in the user's units, with NaN for missing values."""
        return to_numpy(self.xp.take(self.rows, on_device_of(self.rows, index), axis=0))

    def sq_residuals(self, index: Array, codes: Array, basis: Array) -> Array:
        """Compute squared errors of rows with codes (..., chosen, k) and bases (..., k, m)."""
        return self.xp.sum(as_float64(self.take(index) - codes @ basis) ** 2, axis=-1)

    def part(self, index: Array) -> Block:
        """Return a block of the chosen rows in float64."""
        return type(self)(as_float64(self.xp.take(self.rows, index, axis=0)), self.scale)

    def project(self, basis: Array) -> Array:
        """Compute ``X basis^T`` (members, rows, k) of all members as one product."""
        return self.kernels.project(self.rows, self._in_units(basis))

    def wide_project(self, directions: Array) -> Array:
        """Compute ``X directions`` (rows, directions) in float64."""
        return as_float64(self.rows) @ self._in_units(directions)

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

    @property
    def samples(self) -> Block:
        """The block with complete rows, from which convex bases are mixed."""
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

    def divergence(self, name: str | None, approximation: Array, *, per_row: bool) -> Array | None:
        """Compute a divergence by a compiled loop (:meth:`Kernels.divergence`), if there is one."""
        if name is None:
            return None
        return self.kernels.divergence(name, self.rows, self.unit, approximation, per_row)

    def grams(self, curvature: Array, basis: Array) -> Array:
        """Compute ``basis diag(curvature_i) basis^T`` of every row i (rows, k, k), for one member.

        They are computed as one product with the table of products of pairs of components.
        """
        xp = self.xp
        _, k, features = basis.shape
        pairs = basis[0, :, None, :] * basis[0, None, :, :]
        return xp.reshape(
            curvature[0, ...] @ xp.reshape(pairs, (k * k, features)).T, (len(self), k, k)
        )

    def _in_units(self, x: Array) -> Array:
        return x if self.scale == 1.0 else x * self.unit


class DenseBlock(Block):
    """Consecutive rows of a dense X without missing values."""

    is_complete_table: ClassVar[bool] = True

    def _power_sums(self, degree: float) -> Array:
        # A few rows at a time: small enough for the CPU cache, or large enough for a kernel launch.
        numbers = CHUNK_NUMBERS if isinstance(self.rows, np.ndarray) else DEVICE_NUMBERS
        step = max(1, numbers // self.rows.shape[1])
        edges = [*range(0, len(self), step), len(self)]
        chunks = (self.rows[at:stop, :] for at, stop in pairwise(edges))
        sums = [
            self.xp.sum(self._powers(self._in_units(as_float64(c)), degree), axis=1) for c in chunks
        ]
        return sums[0] if len(sums) == 1 else self.xp.concat(sums)


class MaskedBlock(Block):
    r"""Consecutive rows of a dense X with missing entries.

    If :math:`o_i` of m entries are known, the energy of a row is :math:`m / o_i` times the loss of
    the known entries, an estimate for the whole row, and the weight of the row is :math:`o_i / m`.
    So weights depend on how well a row fits on average, not on how many entries are known, and all
    known entries of rows that fit equally well have the same weight. With equal weights this is
    the plain sum over the known entries.

    Entries of ``rows`` that are not ``known`` (a mask) are any number for which the loss is finite.
    """

    def __init__(
        self, rows: Array, known: Array, scale: float = 1.0, row_weight: Array | None = None
    ):
        super().__init__(rows, scale, row_weight)
        self.known = known
        self.filled: Block | None = None

    @property
    def samples(self) -> Block:
        """The block with missing values imputed, after the engine has imputed them."""
        assert self.filled is not None
        return self.filled

    @cached_property
    def missing(self) -> SparseBlock | None:
        """The missing entries as those of sparse rows, if there are few and X is a NumPy array.

        The approximation is then needed only at these entries: a product over the known entries is
        the product over all entries, from Gram matrices, minus the one over missing entries.
        """
        if not isinstance(self.known, np.ndarray) or self.known.shape[1] < LEAST_FEATURES:
            return None
        missing = ~self.known
        is_dense = np.count_nonzero(missing) > LARGEST_SHARE * missing.size
        return None if is_dense else SparseBlock(scipy.sparse.csr_array(missing))

    @cached_property
    def unknown(self) -> Array:
        """Mask of the features (features,) without any known entry."""
        return ~self.xp.any(self.known, axis=0)

    @cached_property
    def whole(self) -> Array:
        """Factor (rows,) from known entries to whole rows; one if no entry is known."""
        xp = self.xp
        count = xp.sum(xp.astype(self.known, xp.float64), axis=1)
        return self.rows.shape[1] / xp.where(count > 0, count, 0 * count + self.rows.shape[1])

    @property
    def nominal_row_weight(self) -> Array:
        """Weight of each row, also for rows of zeros: the share of its known entries."""
        return super().nominal_row_weight / self.whole

    @property
    def full_row_weight(self) -> Array:
        return self.row_weight * self.whole

    def as_whole(self, total: Array) -> Array:
        return self.whole * total

    def of_known(self, total: Array) -> Array:
        return total / self.whole

    def sq_distances(self, points: Array) -> Array:
        values, known = self.wide_values(), self.observed(None, points)
        products = self.observed(values, values) @ points.T
        known_sizes = known @ (points**2).T
        return self.sq_norms[:, None] + self.whole[:, None] * (known_sizes - 2.0 * products)

    def sq_residuals(self, index: Array, codes: Array, basis: Array) -> Array:
        take = self.xp.take
        residual = self.take(index) - codes @ basis
        _, squares = self.kernels.hide(residual, take(self.known, index, axis=0))
        return take(self.whole, index) * as_float64(squares)

    def user_rows(self, index: np.ndarray) -> np.ndarray:
        known = to_numpy(self.known)[index]
        return np.where(known, super().user_rows(index), np.nan)

    def part(self, index: Array) -> MaskedBlock:
        take = self.xp.take
        rows = as_float64(take(self.rows, index, axis=0))
        return MaskedBlock(rows, take(self.known, index, axis=0), self.scale)

    def observed(self, entries: Array | None, like: Array) -> Array:
        """Set missing entries (..., rows, features) to zero; None is ones in the dtype of like."""
        xp = namespace(like)
        if entries is None:
            return xp.astype(self.known, like.dtype)
        return xp.where(self.known, entries, xp.zeros_like(entries))

    def row_sums(self, entries: Array) -> Array:
        return super().row_sums(self.observed(entries, entries))

    def project_part(self, part: Array | None, basis: Array) -> Array:
        return self.observed(part, basis) @ self.xp.matrix_transpose(basis)

    def cross_part(self, codes: Array, part: Array | None) -> Array:
        return self.xp.matrix_transpose(codes) @ self.observed(part, codes)

    def divergence(self, name: str | None, approximation: Array, *, per_row: bool) -> Array | None:
        if name is not None and per_row:  # loops sum over all entries: equal ones add zero
            approximation = self.xp.where(self.known, approximation, self.values())
        return super().divergence(name, approximation, per_row=per_row)

    def grams(self, curvature: Array, basis: Array) -> Array:
        return super().grams(self.observed(curvature, curvature), basis)


class SparseBlock(Block):
    """Consecutive rows of a CSR X; its values are the stored entries (stored,).

    The values do not include zeros, so a loss must be linear in the approximation where X is
    zero: then the contribution of zeros is computed from row sums (``unstored``).
    """

    zeros_apart: ClassVar[bool] = True

    rows: scipy.sparse.csr_array

    @property
    def entries(self) -> np.ndarray:
        return self.rows.data

    def take(self, index: Array) -> Array:
        return self._in_units(self.rows[index].toarray())

    def user_rows(self, index: np.ndarray) -> scipy.sparse.csr_array:
        return self.rows[index]

    def part(self, index: Array) -> SparseBlock:
        return SparseBlock(self.rows[index].astype(np.float64), self.scale)

    def wide_project(self, directions: Array) -> Array:
        return self._in_units(self.rows @ directions)

    def approximation(self, codes: Array, basis: Array) -> Array:
        return self.stored.approximate(self.rows, codes, basis)

    def unstored(self, codes: Array, basis: Array, approximation: Array, beside: Array) -> Array:
        """Sum the approximation over the zeros of each row (members, rows), float64.

        This is the sum over all features minus the sum over stored entries. If they cancel, also
        relative to the energies (``beside``) to which it is added, zeros are summed directly.
        """
        from robustnmf.arrays.kernels.loops import sums_of_unstored

        totals = (as_float64(codes) @ as_float64(np.sum(basis, axis=-1))[:, :, None])[:, :, 0]
        rest = totals - self.row_sums(approximation)
        doubtful = rest + beside < eps(codes) ** 0.5 * totals
        for j in np.flatnonzero(doubtful.any(axis=1)):
            (rows,) = np.nonzero(doubtful[j])
            exact = np.empty(len(rows))
            across = np.ascontiguousarray(as_float64(basis[j]).T)
            own = np.ascontiguousarray(as_float64(codes[j]))
            is_stored = np.empty(len(across), dtype=bool)
            pattern = self.rows.indptr, self.rows.indices
            sums_of_unstored(*pattern, rows, own, across, exact, is_stored)
            rest[j, rows] = exact
        return np.maximum(rest, 0.0)

    def row_sums(self, entries: Array) -> Array:
        flat = as_float64(entries).reshape(math.prod(entries.shape[:-1]), self.rows.nnz)
        ones = np.ones(self.rows.shape[1])
        totals = np.stack([self._holding(row) @ ones for row in flat])
        return totals.reshape((*entries.shape[:-1], len(self)))

    def project_part(self, part: Array | None, basis: Array) -> Array:
        if part is None:
            return super().project_part(None, basis)
        return self.stored.project(self.rows, part, basis)

    def cross_part(self, codes: Array, part: Array | None) -> Array:
        if part is None:
            return super().cross_part(codes, None)
        return self.stored.cross(self.rows, part, codes)

    def grams(self, curvature: Array, basis: Array) -> Array:
        return self.stored.grams(self.rows, curvature[0], basis[0])

    @property
    def stored(self) -> Any:
        """The module of compiled products, which is imported when it is needed."""
        from robustnmf.arrays.kernels import stored

        return stored

    def _holding(self, entries: Array) -> scipy.sparse.csr_array:
        """Return a CSR array with these entries and the sparsity pattern of the rows."""
        held = copy.copy(self.rows)
        held.data = entries  # the constructor would check the pattern every time
        return held


def row_slice(X: scipy.sparse.csr_array, start: int, stop: int) -> scipy.sparse.csr_array:
    """Return consecutive rows as a view of the memory of X."""
    inside = slice(int(X.indptr[start]), int(X.indptr[stop]))
    pointers = X.indptr[start : stop + 1] - X.indptr[start]
    rows = scipy.sparse.csr_array((stop - start, X.shape[1]), dtype=X.dtype)
    # Set one by one, because the constructor copies views of much larger arrays.
    rows.data, rows.indices, rows.indptr = X.data[inside], X.indices[inside], pointers
    return rows


def as_dense(rows: Any) -> np.ndarray:
    """Return rows, sparse or not, as a dense array."""
    return rows.toarray() if scipy.sparse.issparse(rows) else np.asarray(rows)
