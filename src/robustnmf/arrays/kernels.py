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
TILE_BYTES = 1024


@njit(**OPTIONS)
def _load(table: Array, at: int, width: int, tile: Array) -> None:
    """Some rows of a table (rows, k) across; in the order in which they lie in memory."""
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
    """The rows back where they came from."""
    k = table.shape[1]
    if table.strides[0] < table.strides[1]:
        for j in range(k):
            for r in range(width):
                table[at + r, j] = tile[j, r]
    else:
        for r in range(width):
            for j in range(k):
                table[at + r, j] = tile[j, r]


@njit(inline="always", **OPTIONS)
def _subtract_products(gram: Array, row: int, tile: Array, width: int, out: Array) -> None:
    """``out[i] -= gram[row + i] tile`` for four rows over the lanes of a tile.

    Four rows and four components at a time: every number that is loaded is used four times.
    """
    out0, out1, out2, out3 = out[0], out[1], out[2], out[3]
    for c in range(0, tile.shape[0], 4):
        tile0, tile1, tile2, tile3 = tile[c], tile[c + 1], tile[c + 2], tile[c + 3]
        g00, g01, g02, g03 = gram[row, c], gram[row, c + 1], gram[row, c + 2], gram[row, c + 3]
        below = row + 1
        g10, g11, g12, g13 = (
            gram[below, c], gram[below, c + 1], gram[below, c + 2], gram[below, c + 3]
        )  # fmt: skip
        below = row + 2
        g20, g21, g22, g23 = (
            gram[below, c], gram[below, c + 1], gram[below, c + 2], gram[below, c + 3]
        )  # fmt: skip
        below = row + 3
        g30, g31, g32, g33 = (
            gram[below, c], gram[below, c + 1], gram[below, c + 2], gram[below, c + 3]
        )  # fmt: skip
        for r in range(width):
            t0, t1, t2, t3 = tile0[r], tile1[r], tile2[r], tile3[r]
            out0[r] -= g00 * t0 + g01 * t1 + g02 * t2 + g03 * t3
            out1[r] -= g10 * t0 + g11 * t1 + g12 * t2 + g13 * t3
            out2[r] -= g20 * t0 + g21 * t1 + g22 * t2 + g23 * t3
            out3[r] -= g30 * t0 + g31 * t1 + g32 * t2 + g33 * t3


@njit(inline="always", **OPTIONS)
def _step_four(gram: Array, steps: Array, at: int, tile: Array, width: int, slope: Array) -> None:
    """One step of four coordinates in turn; each corrects the slopes of those after it."""
    zero = tile.dtype.type(0)
    tile0, tile1, tile2, tile3 = tile[at], tile[at + 1], tile[at + 2], tile[at + 3]
    slope0, slope1, slope2, slope3 = slope[0], slope[1], slope[2], slope[3]
    step0, step1, step2, step3 = steps[at], steps[at + 1], steps[at + 2], steps[at + 3]
    g10, g20, g30 = gram[at + 1, at], gram[at + 2, at], gram[at + 3, at]
    g21, g31, g32 = gram[at + 2, at + 1], gram[at + 3, at + 1], gram[at + 3, at + 2]
    for r in range(width):
        t0, t1, t2, t3 = tile0[r], tile1[r], tile2[r], tile3[r]
        new0 = max(t0 + slope0[r] * step0, zero)
        d0 = new0 - t0
        new1 = max(t1 + (slope1[r] - g10 * d0) * step1, zero)
        d1 = new1 - t1
        new2 = max(t2 + (slope2[r] - g20 * d0 - g21 * d1) * step2, zero)
        d2 = new2 - t2
        new3 = max(t3 + (slope3[r] - g30 * d0 - g31 * d1 - g32 * d2) * step3, zero)
        tile0[r], tile1[r], tile2[r], tile3[r] = new0, new1, new2, new3


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
    """Coordinate sweeps over every row of a factor (members, rows, k).

    Rows are taken in tiles that lie across, (k, lanes), so that a step for one coordinate is
    arithmetic on long vectors. Components are filled up to a multiple of four with zeros.
    """
    members, rows, k = factor.shape
    full = (k + 3) // 4 * 4
    lanes = TILE_BYTES // factor.itemsize
    tile = np.zeros((full, lanes), factor.dtype)
    right = np.zeros((full, lanes), factor.dtype)
    slope = np.empty((4, lanes), factor.dtype)
    square = np.zeros((full, full), factor.dtype)
    steps = np.zeros(full, factor.dtype)
    for b in range(members):
        for j in range(k):
            for c in range(k):
                square[j, c] = gram[b, j, c]
            free = j >= fixed and present[b, j]
            steps[j] = 1 / gram[b, j, j] if free else 0
        for at in range(0, rows, lanes):
            width = min(lanes, rows - at)
            _load(factor[b], at, width, tile)
            _load(linear[b], at, width, right)
            for _ in range(sweeps):
                for j in range(0, full, 4):
                    for i in range(4):
                        for r in range(width):
                            slope[i, r] = right[j + i, r]
                    _subtract_products(square, j, tile, width, slope)
                    _step_four(square, steps, j, tile, width, slope)
            _store(tile, at, width, out[b])


@njit(**OPTIONS)
def quadratic_tiles(codes: Array, linear: Array, gram: Array, out: Array) -> None:
    """``a G a^T - 2 l a^T`` of every row of codes (members, rows, k), summed in float64."""
    members, rows, k = codes.shape
    full = (k + 3) // 4 * 4
    lanes = TILE_BYTES // codes.itemsize
    tile = np.zeros((full, lanes), codes.dtype)
    right = np.zeros((full, lanes), codes.dtype)
    slope = np.empty((4, lanes), codes.dtype)
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
            for r in range(width):
                total[r] = 0.0
            for j in range(0, full, 4):
                slope[:, :] = 0
                _subtract_products(square, j, tile, width, slope)
                for i in range(4):
                    for r in range(width):
                        twice = np.float64(slope[i, r]) + 2 * np.float64(right[j + i, r])
                        total[r] -= np.float64(tile[j + i, r]) * twice
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
