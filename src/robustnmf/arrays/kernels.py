"""Compiled loops (numba): sweeps over coordinates, sparse rows, rows with holes.

What BLAS and SciPy have no call for. Each loop is compiled when it is first needed, which takes
a second or two, and kept in numba's cache for the next time. All of them run on one thread and
let go of the interpreter: threads belong to the engine, which visits several blocks at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from robustnmf.arrays.namespace import Array

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "fastmath": {"reassoc", "contract"},  # sums in any order, so that they run on vectors
}
TILE_BYTES = 512


@njit(inline="always", **OPTIONS)
def _subtract_product(gram: Array, row: int, tile: Array, width: int, out: Array) -> None:
    """``out -= gram[row] tile`` over the lanes of a tile; four components keep sums at hand."""
    k = tile.shape[0]
    c = 0
    while c + 4 <= k:
        g0, g1, g2, g3 = gram[row, c], gram[row, c + 1], gram[row, c + 2], gram[row, c + 3]
        for r in range(width):
            first = g0 * tile[c, r] + g1 * tile[c + 1, r]
            out[r] -= first + g2 * tile[c + 2, r] + g3 * tile[c + 3, r]
        c += 4
    while c < k:
        g0 = gram[row, c]
        for r in range(width):
            out[r] -= g0 * tile[c, r]
        c += 1


@njit(**OPTIONS)
def sweep_tiles(
    factor: Array,
    linear: Array,
    gram: Array,
    absent: float,
    sweeps: int,
    fixed: int,
    out: Array,
) -> None:
    """Coordinate sweeps over every row of a factor (members, rows, k).

    Rows are taken in tiles that lie across, (k, lanes), so that a step for one coordinate is
    arithmetic on long vectors.
    """
    members, rows, k = factor.shape
    lanes = TILE_BYTES // factor.itemsize
    tile = np.empty((k, lanes), factor.dtype)
    right = np.empty((k, lanes), factor.dtype)
    slope = np.empty(lanes, factor.dtype)
    zero = factor.dtype.type(0)
    for b in range(members):
        for at in range(0, rows, lanes):
            width = min(lanes, rows - at)
            for r in range(width):
                for j in range(k):
                    tile[j, r] = factor[b, at + r, j]
                    right[j, r] = linear[b, at + r, j]
            for _ in range(sweeps):
                for j in range(fixed, k):
                    if gram[b, j, j] <= absent:
                        continue
                    for r in range(width):
                        slope[r] = right[j, r]
                    _subtract_product(gram[b], j, tile, width, slope)
                    step = 1 / gram[b, j, j]
                    for r in range(width):
                        wanted = tile[j, r] + slope[r] * step
                        tile[j, r] = wanted if wanted > zero else zero
            for r in range(width):
                for j in range(k):
                    out[b, at + r, j] = tile[j, r]


@njit(**OPTIONS)
def quadratic_tiles(codes: Array, linear: Array, gram: Array, out: Array) -> None:
    """``a G a^T - 2 l a^T`` of every row of codes (members, rows, k), summed in float64."""
    members, rows, k = codes.shape
    lanes = TILE_BYTES // codes.itemsize
    tile = np.empty((k, lanes), codes.dtype)
    right = np.empty((k, lanes), codes.dtype)
    slope = np.empty(lanes, codes.dtype)
    total = np.empty(lanes)
    for b in range(members):
        for at in range(0, rows, lanes):
            width = min(lanes, rows - at)
            for r in range(width):
                for j in range(k):
                    tile[j, r] = codes[b, at + r, j]
                    right[j, r] = linear[b, at + r, j]
            for r in range(width):
                total[r] = 0.0
            for j in range(k):
                for r in range(width):
                    slope[r] = 0
                _subtract_product(gram[b], j, tile, width, slope)
                for r in range(width):
                    twice = np.float64(slope[r]) + 2 * np.float64(right[j, r])
                    total[r] -= np.float64(tile[j, r]) * twice
            for r in range(width):
                out[b, at + r] = total[r]


@njit(**OPTIONS)
def approximate(indptr: Array, indices: Array, codes: Array, basis: Array, out: Array) -> None:
    """``out[p] = codes[i] . basis[:, j]`` for every stored entry p at (i, j); basis (m, k)."""
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
    """``out[i] = sum_p weights[p] basis[j] basis[j]^T`` over the stored entries of each row."""
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
    """Sum of the approximation over the entries of chosen rows that are not stored."""
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
    """Zeros in the holes of a finite table (rows, features), and the squared norm of each row."""
    for i in range(table.shape[0]):
        total = table.dtype.type(0)
        for j in range(table.shape[1]):
            # A product rather than a choice: the loop then runs on vectors.
            value = table[i, j] * known[i, j]
            table[i, j] = value
            total += value * value
        squares[i] = total
