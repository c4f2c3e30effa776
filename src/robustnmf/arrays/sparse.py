"""Blocks of sparse rows: memory and time grow with the stored entries, not with all of X."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from robustnmf.arrays.backend import Kernels, kernels_for
from robustnmf.arrays.blocks import Block
from robustnmf.arrays.namespace import Array, Namespace, as_float64, eps, namespace

DENSE_NUMBERS = 1_000_000


class SparseBlock(Block):
    """Consecutive rows of a CSR X; its values are the stored entries (stored,).

    Zeros are left out of the values, so a loss must be linear in the approximation where X is
    zero: then what they add follows from row sums (``unstored``).
    """

    zeros_apart: ClassVar[bool] = True

    rows: scipy.sparse.csr_array

    @property
    def xp(self) -> Namespace:
        """Sparse rows are SciPy's, so everything computed from them is NumPy's."""
        return namespace(self.rows.data)

    @cached_property
    def kernels(self) -> Kernels:
        """Operations for NumPy arrays."""
        return kernels_for(self.rows.data)

    def values(self) -> Array:
        return self._in_units(self.rows.data)

    def wide_values(self) -> Array:
        return self._in_units(as_float64(self.rows.data))

    def take(self, index: Array) -> Array:
        return self._in_units(self.rows[index].toarray())

    def user_rows(self, index: np.ndarray) -> scipy.sparse.csr_array:
        return self.rows if len(index) == len(self) else self.rows[index]

    def sq_residuals(self, index: Array, codes: Array, basis: Array) -> Array:
        """Compute squared errors of chosen rows, a few of them at a time as a dense table."""
        step = max(1, DENSE_NUMBERS // self.rows.shape[1])
        chunks = [slice(at, at + step) for at in range(0, len(index), step)]
        parts = [
            super(SparseBlock, self).sq_residuals(index[at], codes[at], basis) for at in chunks
        ]
        return np.concatenate(parts)

    def part(self, index: Array) -> SparseBlock:
        """Return a block of the chosen rows in float64."""
        return SparseBlock(self.rows[index].astype(np.float64), self.scale)

    def wide_project(self, directions: Array) -> Array:
        return self._in_units(self.rows @ directions)

    def cross(self, codes: Array) -> Array:
        members, rows, k = codes.shape
        flat = codes.transpose(1, 0, 2).reshape(rows, members * k)
        product = self._in_units(self.rows.T @ flat)
        return np.ascontiguousarray(product.T).reshape(members, k, self.rows.shape[1])

    def weighted_sums(self, codes: Array, weights: Array) -> tuple[Array, Array]:
        weighted = self.kernels.scaled_rows(codes, weights)
        return self.cross(weighted), np.matrix_transpose(weighted) @ codes

    def approximation(self, codes: Array, basis: Array) -> Array:
        from robustnmf.arrays.kernels import approximate

        out = np.empty((codes.shape[0], self.rows.nnz), dtype=codes.dtype)
        for j, (a, c) in enumerate(zip(codes, basis, strict=True)):
            across = np.ascontiguousarray(c.T)
            approximate(
                self.rows.indptr, self.rows.indices, np.ascontiguousarray(a), across, out[j]
            )
        return out

    def unstored(self, codes: Array, basis: Array, approximation: Array, beside: Array) -> Array:
        """Sum the approximation over the zeros of each row (members, rows), float64.

        As the sum over all features less the one over stored entries. Where that cancels, also
        relative to the energies it is added to (``beside``), the zeros are summed directly.
        """
        from robustnmf.arrays.kernels import sums_of_unstored

        totals = (as_float64(codes) @ as_float64(np.sum(basis, axis=-1))[:, :, None])[:, :, 0]
        rest = totals - self.row_sums(approximation)
        doubtful = rest + beside < eps(codes) ** 0.5 * totals
        for j in np.flatnonzero(doubtful.any(axis=1)):
            (rows,) = np.nonzero(doubtful[j])
            exact = np.empty(len(rows))
            across = np.ascontiguousarray(as_float64(basis[j]).T)
            own = np.ascontiguousarray(as_float64(codes[j]))
            sums_of_unstored(self.rows.indptr, self.rows.indices, rows, own, across, exact)
            rest[j, rows] = exact
        return np.maximum(rest, 0.0)

    def _power_sums(self, degree: float) -> Array:
        return self.row_sums(self._powers(self.wide_values(), degree))

    def row_sums(self, entries: Array) -> Array:
        flat = as_float64(entries).reshape(math.prod(entries.shape[:-1]), self.rows.nnz)
        totals = np.stack([self._holding(row) @ self._ones for row in flat])
        return totals.reshape((*entries.shape[:-1], len(self)))

    def project_part(self, part: Array | None, basis: Array) -> Array:
        if part is None:
            return super().project_part(None, basis)
        pairs = zip(part, basis, strict=True)
        return np.stack([self._holding(p) @ np.ascontiguousarray(c.T) for p, c in pairs])

    def cross_part(self, codes: Array, part: Array | None) -> Array:
        if part is None:
            return super().cross_part(codes, None)
        return np.stack([(self._holding(p).T @ a).T for p, a in zip(part, codes, strict=True)])

    def grams(self, curvature: Array, basis: Array) -> Array:
        from robustnmf.arrays.kernels import weighted_grams

        k = basis.shape[1]
        out = np.zeros((len(self), k, k))
        across = np.ascontiguousarray(as_float64(basis[0]).T)
        weighted_grams(self.rows.indptr, self.rows.indices, as_float64(curvature[0]), across, out)
        return out

    @cached_property
    def _ones(self) -> Array:
        return np.ones(self.rows.shape[1])

    def _holding(self, entries: Array) -> scipy.sparse.csr_array:
        """Return a CSR array with these entries and the sparsity pattern of the rows."""
        structure = (entries, self.rows.indices, self.rows.indptr)
        return scipy.sparse.csr_array(structure, shape=self.rows.shape)


def row_slice(X: scipy.sparse.csr_array, start: int, stop: int) -> scipy.sparse.csr_array:
    """Return consecutive rows as a view of the memory of X."""
    inside = slice(int(X.indptr[start]), int(X.indptr[stop]))
    pointers = X.indptr[start : stop + 1] - X.indptr[start]
    rows = scipy.sparse.csr_array((stop - start, X.shape[1]), dtype=X.dtype)
    # Set one by one: the constructor copies parts that are views of much larger arrays.
    rows.data, rows.indices, rows.indptr = X.data[inside], X.indices[inside], pointers
    return rows


def as_dense(rows: Any) -> np.ndarray:
    """Return rows, sparse or not, as a dense array."""
    return rows.toarray() if scipy.sparse.issparse(rows) else np.asarray(rows)
