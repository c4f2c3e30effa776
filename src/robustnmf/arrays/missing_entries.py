"""Missing entries of a dense block as a list, and what the approximation is at them.

Where few entries are missing, the approximation is needed at these alone: products over the known
entries are those over all entries, which Gram matrices give, less those over the missing ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from robustnmf.arrays.kernels import OPTIONS
from robustnmf.arrays.namespace import Array

LARGEST_SHARE = 0.2
"""Share of missing entries up to which a list of them is faster than products of whole tables."""

LEAST_FEATURES = 100
"""Number of features from which on it is."""


class MissingEntries(NamedTuple):
    """The missing entries of rows: those of row i are ``indices[indptr[i] : indptr[i + 1]]``.

    ``unknown`` (features,) are the features without any known entry.
    """

    indptr: Array
    indices: Array
    unknown: Array

    @classmethod
    def of(cls, known: Array) -> MissingEntries | None:
        """List the missing entries of a NumPy mask (rows, features); None if that does not pay."""
        if not isinstance(known, np.ndarray) or known.shape[1] < LEAST_FEATURES:
            return None
        counts = known.shape[1] - np.count_nonzero(known, axis=1)
        if counts.sum() > LARGEST_SHARE * known.size:
            return None
        indptr = np.concatenate([[0], np.cumsum(counts)])
        indices = np.nonzero(~known)[1].astype(np.int32)
        return cls(indptr, indices, ~known.any(axis=0))

    def fill(self, codes: Array, basis: Array) -> Array:
        """Compute the part of ``codes basis basis^T`` (members, rows, k) of the missing entries."""
        filled = np.empty(codes.shape, dtype=codes.dtype)
        directions = np.ascontiguousarray(basis.swapaxes(1, 2))
        _fill(self.indptr, self.indices, np.ascontiguousarray(codes), directions, filled)
        return filled

    def values(self, codes: Array, basis: Array) -> tuple[Array, Array]:
        """Compute the approximation at the missing entries (members, missing).

        Also returns its squares, summed over each row (members, rows) in float64.
        """
        values = np.empty((len(codes), len(self.indices)), dtype=codes.dtype)
        squares = np.empty(codes.shape[:2])
        directions = np.ascontiguousarray(basis.swapaxes(1, 2))
        _square(self.indptr, self.indices, np.ascontiguousarray(codes), directions, values, squares)
        return values, squares

    def cross(self, codes: Array, values: Array) -> Array:
        """Compute ``codes^T values`` (members, k, features), for values at the missing entries."""
        sums = np.zeros((len(codes), len(self.unknown), codes.shape[2]), dtype=codes.dtype)
        _cross(self.indptr, self.indices, np.ascontiguousarray(codes), values, sums)
        return sums.swapaxes(1, 2)


@njit(**OPTIONS)
def _dot(one: Array, other: Array) -> Any:
    """Compute the product of two vectors (k,), in their own precision."""
    total = one.dtype.type(0)
    for c in range(len(one)):
        total += one[c] * other[c]
    return total


@njit(**OPTIONS)
def _fill(indptr: Array, indices: Array, codes: Array, directions: Array, filled: Array) -> None:
    """Compute the approximation at missing entries, times the directions (members, features, k)."""
    members, rows, k = codes.shape
    for b in range(members):
        for i in range(rows):
            for c in range(k):
                filled[b, i, c] = 0
            for p in range(indptr[i], indptr[i + 1]):
                j = indices[p]
                value = _dot(codes[b, i], directions[b, j])
                for c in range(k):
                    filled[b, i, c] += value * directions[b, j, c]


@njit(**OPTIONS)
def _square(
    indptr: Array, indices: Array, codes: Array, directions: Array, values: Array, squares: Array
) -> None:
    """Compute the approximation at missing entries, and sum its squares over rows in float64."""
    members, rows, _ = codes.shape
    for b in range(members):
        for i in range(rows):
            total = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                value = _dot(codes[b, i], directions[b, indices[p]])
                values[b, p] = value
                total += np.float64(value) * np.float64(value)
            squares[b, i] = total


@njit(**OPTIONS)
def _cross(indptr: Array, indices: Array, codes: Array, values: Array, sums: Array) -> None:
    """Add values at missing entries times codes to sums (members, features, k)."""
    members, rows, k = codes.shape
    for b in range(members):
        for i in range(rows):
            for p in range(indptr[i], indptr[i + 1]):
                j, value = indices[p], values[b, p]
                for c in range(k):
                    sums[b, j, c] += value * codes[b, i, c]
