"""Products with the stored entries of sparse rows (CSR), in compiled loops of vectors (numba).

They take a half to a quarter of the time of SciPy's products, whose loops over components are too
short for vectors. Factors are copied to arrays whose rows fill whole lines of the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from robustnmf.arrays.kernels.compiled import compiled
from robustnmf.arrays.kernels.vectors import LINE_BYTES, add_row, dot_quad, sum_rows
from robustnmf.arrays.namespace import Array, as_float64


def approximate(rows: scipy.sparse.csr_array, codes: Array, basis: Array) -> Array:
    """Compute ``codes basis`` (members, stored) at the stored entries."""
    out = np.empty((len(codes), rows.nnz), codes.dtype)
    for own, components, values in zip(codes, basis, out, strict=True):
        _approximate(rows.indptr, rows.indices, _in_lines(own), _in_lines(components.T), values)
    return out


def project(rows: scipy.sparse.csr_array, entries: Array, basis: Array) -> Array:
    """Compute ``P basis^T`` (members, rows, k) for P with other entries (members, stored)."""
    members, k, _ = basis.shape
    dtype = np.result_type(entries, basis)
    out, own = np.empty((members, rows.shape[0], k), dtype), _lines((rows.shape[0], k), dtype)
    for values, components, products in zip(entries, basis, out, strict=True):
        _project(rows.indptr, rows.indices, values, _in_lines(components.T, dtype), own)
        products[:] = own[:, :k]
    return out


def cross(rows: scipy.sparse.csr_array, entries: Array, codes: Array) -> Array:
    """Compute ``codes^T P`` (members, k, features) for P with other entries (members, stored)."""
    members, _, k = codes.shape
    dtype = np.result_type(entries, codes)
    out, across = np.empty((members, k, rows.shape[1]), dtype), _lines((rows.shape[1], k), dtype)
    for values, own, products in zip(entries, codes, out, strict=True):
        across[:] = 0.0
        _cross(rows.indptr, rows.indices, values, _in_lines(own, dtype), across)
        products[:] = across[:, :k].T
    return out


def grams(rows: scipy.sparse.csr_array, weights: Array, basis: Array) -> Array:
    """Compute ``basis diag(weights_i) basis^T`` (rows, k, k) over the stored entries of rows."""
    k, _ = basis.shape
    out = _lines((rows.shape[0] * k, k), np.dtype(np.float64))
    out[:] = 0.0
    across = _in_lines(as_float64(basis).T)
    _grams(rows.indptr, rows.indices, as_float64(weights), across, k, out)
    return np.ascontiguousarray(out.reshape(-1, k, out.shape[1])[:, :, :k])


def _lines(shape: tuple[int, int], dtype: np.dtype) -> Array:
    """Return space for an array whose rows are padded to whole lines of the cache."""
    lanes = LINE_BYTES // dtype.itemsize
    count, padded = shape[0], -(-shape[1] // lanes) * lanes
    space = np.empty(count * padded + lanes, dtype)
    begin = -space.ctypes.data % LINE_BYTES // dtype.itemsize
    return space[begin : begin + count * padded].reshape(count, padded)


def _in_lines(array: Array, dtype: Any = None) -> Array:
    """Copy an array to one whose rows are padded with zeros."""
    k = array.shape[1]
    copied = _lines(array.shape, dtype or array.dtype)
    copied[:, :k], copied[:, k:] = array, 0.0
    return copied


@compiled()
def _approximate(indptr: Array, indices: Array, codes: Array, basis: Array, out: Array) -> None:
    for i in range(len(codes)):
        begin, end = indptr[i], indptr[i + 1]
        if end - begin < 4:
            for p in range(begin, end):
                total = codes[i, 0] * basis[indices[p], 0]
                for c in range(1, codes.shape[1]):
                    total += codes[i, c] * basis[indices[p], c]
                out[p] = total
            continue
        for p in range(begin, end - 3, 4):
            dot_quad(codes, i, basis, indices, p, out)
        dot_quad(codes, i, basis, indices, end - 4, out)  # some of them again


@compiled()
def _project(indptr: Array, indices: Array, entries: Array, basis: Array, out: Array) -> None:
    for i in range(len(out)):
        sum_rows(entries, indices, indptr[i], indptr[i + 1], basis, out, i)


@compiled()
def _cross(indptr: Array, indices: Array, entries: Array, codes: Array, out: Array) -> None:
    for i in range(len(codes)):
        for p in range(indptr[i], indptr[i + 1]):
            add_row(entries[p], codes, i, out, indices[p])


@compiled()
def _grams(indptr: Array, indices: Array, weights: Array, basis: Array, k: int, out: Array) -> None:
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            for c in range(k):
                add_row(weights[p] * basis[indices[p], c], basis, indices[p], out, i * k + c)
