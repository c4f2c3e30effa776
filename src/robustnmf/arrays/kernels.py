"""Compiled loops (numba): coordinate sweeps, sparse rows, rows with missing values.

For these BLAS and SciPy have no function. Each loop is compiled when it is first called, which
takes a second or two, and kept in numba's cache. All of them run on one thread and release the
GIL: the engine has the threads, and visits several blocks at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, vectorize

from robustnmf.arrays.namespace import Array
from robustnmf.arrays.vectors import LANE_BYTES, add_quadratic_quad, step_quad

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "fastmath": {"reassoc", "contract"},  # sums in any order, so that they run on vectors
}


@njit(**OPTIONS)
def _load(table: Array, at: int, width: int, tile: Array) -> None:
    """Copy rows of a table (rows, k) into a tile (k, lanes), in the order of their memory."""
    k = table.shape[1]
    if table.strides[0] < table.strides[1]:
        for j in range(k):
            for r in range(width):
                tile[j, r] = table[at + r, j]
    else:
        for r in range(width):
            for j in range(k):
                tile[j, r] = table[at + r, j]


@njit(**OPTIONS)
def _store(tile: Array, at: int, width: int, table: Array) -> None:
    """Copy a tile (k, lanes) back into the rows of a table (rows, k)."""
    k = table.shape[1]
    if table.strides[0] < table.strides[1]:
        for j in range(k):
            for r in range(width):
                table[at + r, j] = tile[j, r]
    else:
        for r in range(width):
            for j in range(k):
                table[at + r, j] = tile[j, r]


@njit(**OPTIONS)
def sweep_tiles(
    factor: Array,
    linear: Array,
    gram: Array,
    present: Array,
    sweeps: int,
    fixed: int,
    out: Array,
) -> None:
    """Run coordinate sweeps over every row of a factor (members, rows, k); writes to ``out``.

    Rows are copied to transposed tiles (k, lanes), so that a step for one coordinate is
    arithmetic on long vectors. Components are padded with zeros to a multiple of four.
    """
    members, rows, k = factor.shape
    full = (k + 3) // 4 * 4
    lanes = LANE_BYTES // factor.itemsize
    tile = np.zeros((full, lanes), factor.dtype)
    right = np.zeros((full, lanes), factor.dtype)
    square = np.zeros((full, full), factor.dtype)
    steps = np.zeros(full, factor.dtype)
    for b in range(members):
        for j in range(k):
            for c in range(k):
                square[j, c] = -gram[b, j, c]
            free = j >= fixed and present[b, j]
            steps[j] = 1 / gram[b, j, j] if free else 0
        for at in range(0, rows, lanes):
            width = min(lanes, rows - at)
            _load(factor[b], at, width, tile)
            _load(linear[b], at, width, right)
            tile[k:] = 0  # NaN in one row must not spread to others
            for _ in range(sweeps):
                for j in range(0, full, 4):
                    step_quad(square, steps, j, tile, right)
            _store(tile, at, width, out[b])


@njit(**OPTIONS)
def quadratic_tiles(codes: Array, linear: Array, gram: Array, out: Array) -> None:
    """Compute ``a G a^T - 2 l a^T`` of every row of codes (members, rows, k), in float64."""
    members, rows, k = codes.shape
    full = (k + 3) // 4 * 4
    lanes = LANE_BYTES // codes.itemsize
    tile = np.zeros((full, lanes), codes.dtype)
    right = np.zeros((full, lanes), codes.dtype)
    square = np.zeros((full, full), codes.dtype)
    total = np.empty(lanes)
    for b in range(members):
        for j in range(k):
            for c in range(k):
                square[j, c] = gram[b, j, c]
        for at in range(0, rows, lanes):
            width = min(lanes, rows - at)
            _load(codes[b], at, width, tile)
            _load(linear[b], at, width, right)
            total[:] = 0.0
            for j in range(0, full, 4):
                add_quadratic_quad(square, j, tile, right, total)
            for r in range(width):
                out[b, at + r] = total[r]


@njit(**OPTIONS)
def scale_rows(table: Array, factors: Array, out: Array) -> None:
    """Compute ``out = table * factors`` for (members, rows, k) and (members, rows, 1)."""
    members, rows, k = table.shape
    for i in range(rows):
        for b in range(members):
            factor = factors[b, i, 0]
            for j in range(k):
                out[b, i, j] = factor * table[b, i, j]


@vectorize(["f4(f4, f4, f4)", "f8(f8, f8, f8)"], cache=True)
def extrapolate_entries(factor, before, momentum):  # type: ignore[no-untyped-def]
    """Extrapolate entries of a factor by ``momentum`` times their last step; never below zero."""
    extrapolated = factor + momentum * (factor - before)
    return factor - factor if extrapolated < 0 else extrapolated


@vectorize(["f4(f4, f4, f4, f4)", "f8(f8, f8, f8, f8)"], cache=True)
def multiplicative_step_entries(factor, negative, positive, least):  # type: ignore[no-untyped-def]
    """Compute ``factor negative / positive``; divisors are at least ``least``, less is zero."""
    updated = factor * negative / (least if positive < least else positive)
    return factor - factor if updated < least else updated


@njit(**OPTIONS)
def approximate(indptr: Array, indices: Array, codes: Array, basis: Array, out: Array) -> None:
    """Compute ``out[p] = codes[i] . basis[j]`` for stored entries p at (i, j); basis (m, k)."""
    k = codes.shape[1]
    for i in range(codes.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            total = 0.0
            for c in range(k):
                total += codes[i, c] * basis[j, c]
            out[p] = total


@njit(**OPTIONS)
def weighted_grams(indptr: Array, indices: Array, weights: Array, basis: Array, out: Array) -> None:
    """Compute ``out[i] = sum_p weights[p] basis[j] basis[j]^T`` over the stored entries of rows."""
    k = basis.shape[1]
    for i in range(out.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            for c in range(k):
                weight = weights[p] * basis[j, c]
                for d in range(c + 1):
                    out[i, c, d] += weight * basis[j, d]
        for c in range(k):
            for d in range(c):
                out[i, d, c] = out[i, c, d]


@njit(**OPTIONS)
def sums_of_unstored(
    indptr: Array, indices: Array, rows: Array, codes: Array, basis: Array, out: Array
) -> None:
    """Sum the approximation over the entries of chosen rows that are not stored."""
    features, k = basis.shape
    for r in range(rows.shape[0]):
        i = rows[r]
        stored = np.zeros(features, dtype=np.bool_)
        for p in range(indptr[i], indptr[i + 1]):
            stored[indices[p]] = True
        total = 0.0
        for j in range(features):
            if not stored[j]:
                for c in range(k):
                    total += codes[i, c] * basis[j, c]
        out[r] = total


@njit(**OPTIONS)
def hide_and_square(known: Array, table: Array, squares: Array) -> None:
    """Set missing entries of a table (rows, features) to zero; compute squared norms of rows."""
    for i in range(table.shape[0]):
        total = table.dtype.type(0)
        for j in range(table.shape[1]):
            # A product instead of a branch, so that the loop is vectorised.
            value = table[i, j] * known[i, j]
            table[i, j] = value
            total += value * value
        squares[i] = total
