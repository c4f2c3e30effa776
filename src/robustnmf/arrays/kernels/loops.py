"""Compiled loops (numba): sweeps, sparse and masked rows, energies, losses, least squares.

BLAS and SciPy have no functions for these. Each loop is compiled when it is first called, which
takes a second or two, and stored in a file. All of them run on one thread and release the
GIL, because the engine has its own threads and visits several blocks at once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import vectorize

from robustnmf.arrays.kernels.compiled import compiled
from robustnmf.arrays.kernels.vectors import LANE_BYTES, step_quad
from robustnmf.arrays.namespace import Array

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": {"reassoc", "contract"},  # sums in any order, so that they run on vectors
}
EXACT: dict[str, Any] = {"nogil": True}
"""Options of loops that must sum in the given order."""

LEAST_PIVOT = 1e-15
"""Components are dependent if a pivot of their Gram matrix with unit diagonal is below this."""


@compiled(**OPTIONS)
def _load(table: Array, at: int, width: int, tile: Array) -> None:
    """Copy rows of a table (rows, k) into a tile (k, lanes)."""
    for r in range(width):
        for j in range(table.shape[1]):
            tile[j, r] = table[at + r, j]


@compiled(**OPTIONS)
def _store(tile: Array, at: int, width: int, table: Array) -> None:
    """Copy a tile (k, lanes) back into the rows of a table (rows, k)."""
    for r in range(width):
        for j in range(table.shape[1]):
            table[at + r, j] = tile[j, r]


@compiled(**OPTIONS)
def sweep_tiles(
    factor: Array,
    linear: Array,
    gram: Array,
    present: Array,
    sweeps: int,
    fixed: int,
) -> None:
    """Run coordinate sweeps over every row of a factor (members, rows, k), in place.

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
            _store(tile, at, width, factor[b])


@vectorize(["f4(f4, f4, f4, f4)", "f8(f8, f8, f8, f8)"], cache=True)
def multiplicative_step_entries(factor, negative, positive, least):  # type: ignore[no-untyped-def]
    """Compute ``factor negative / positive``; divisors are at least ``least``, less is zero."""
    updated = factor * negative / (least if positive < least else positive)
    return factor - factor if updated < least else updated


@compiled(**OPTIONS)
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


@compiled(**OPTIONS)
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


@compiled(**OPTIONS)
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


@compiled(**OPTIONS)
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


@compiled(**OPTIONS)
def _dot(one: Array, other: Array) -> Any:
    """Compute the product of two vectors (k,), in their own precision."""
    total = one.dtype.type(0)
    for c in range(len(one)):
        total += one[c] * other[c]
    return total


@compiled(**OPTIONS)
def fill_missing(
    indptr: Array, indices: Array, codes: Array, directions: Array, filled: Array
) -> None:
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


@compiled(**OPTIONS)
def approximate_missing(
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


@compiled(**OPTIONS)
def cross_missing(indptr: Array, indices: Array, codes: Array, values: Array, sums: Array) -> None:
    """Add values at missing entries times codes to sums (members, features, k)."""
    members, rows, k = codes.shape
    for b in range(members):
        for i in range(rows):
            for p in range(indptr[i], indptr[i + 1]):
                j, value = indices[p], values[b, p]
                for c in range(k):
                    sums[b, j, c] += value * codes[b, i, c]


@compiled(**OPTIONS)
def scale_weights(
    rho: Array,
    weight: Array,
    sample_weight: Array,
    scale_step: float,
    weights: Array,
    sums: Array,
) -> None:
    """Multiply weights (members, rows) by sample weights (rows,), in units of the largest.

    ``sums`` (3, members, 1) are the logarithm of the unit, rounded up to a multiple of
    ``scale_step``, the weighted sum of ``rho``, and the sum of the sample weights.
    """
    members, count = weight.shape
    for b in range(members):
        total, samples, top = 0.0, 0.0, 0.0
        for i in range(count):
            total += sample_weight[i] * rho[b, i]
            samples += sample_weight[i]
            value = sample_weight[i] * weight[b, i]
            weights[b, i] = value
            top = value if not value <= top else top
        log_scale = 0.0
        if not top > 0.0:
            log_scale = -np.inf
        elif not (math.exp(-scale_step) < top <= 1.0):
            log_top = math.log(max(top, np.finfo(np.float64).tiny))
            log_scale = scale_step * math.ceil(log_top / scale_step)
            factor = math.exp(-log_scale)
            for i in range(count):
                weights[b, i] *= factor
        sums[0, b, 0], sums[1, b, 0], sums[2, b, 0] = log_scale, total, samples


@compiled(**OPTIONS)
def count_shared(lists: Array, sample_weight: Array, counts: Array) -> None:
    """Add positions (lists, rows) with weights (rows,) to counts (lists, nodes).

    A position between two nodes is divided between them, according to its distance from each. NaN
    and positions outside of the nodes are not counted.
    """
    for b in range(lists.shape[0]):
        for i in range(lists.shape[1]):
            position = lists[b, i]
            # Not int(position), which for NaN is any number and would write outside of counts.
            if not 0.0 <= position < counts.shape[1] - 1:
                continue
            left = int(position)
            right_share = position - left
            counts[b, left] += sample_weight[i] * (1.0 - right_share)
            counts[b, left + 1] += sample_weight[i] * right_share


@compiled(**EXACT)
def huber_residuals(
    rows: Array,
    inverse_scale: float,
    approximation: Array,
    bounds: Array,
    out: Array,
    sums: Array,
) -> None:
    """Write residuals times Huber's weights (rows, features), and sums of the loss (rows,).

    Bounds (3, features) are the cutoffs, and the smallest and largest usual value, of features.
    """
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            value = rows[i, j] * inverse_scale
            residual = value - approximation[i, j]
            size, cutoff = abs(residual), bounds[0, j]
            if size <= cutoff or bounds[1, j] <= value <= bounds[2, j]:
                total += residual * residual
                out[i, j] = residual
            else:
                total += cutoff * (2 * size - cutoff)
                out[i, j] = cutoff if residual > 0 else -cutoff
        sums[i] = total


@compiled(**EXACT)
def truncated_residuals(
    rows: np.ndarray,
    inverse_scale: float,
    approximation: np.ndarray,
    bounds: np.ndarray,
    out: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Write residuals (rows, features), zero beyond cutoffs, and sums of the loss (rows,)."""
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            value = rows[i, j] * inverse_scale
            residual = value - approximation[i, j]
            if abs(residual) <= bounds[0, j] or bounds[1, j] <= value <= bounds[2, j]:
                total += residual * residual
                out[i, j] = residual
            else:
                total += bounds[0, j] * bounds[0, j]
                out[i, j] = 0.0
        sums[i] = total


@compiled(error_model="numpy", **EXACT)
def _solve_support(gram: Array, right: Array, support: Array, ridge: float, work: Array) -> bool:
    """Solve ``(gram + ridge) x = right`` on a support by Cholesky factorisation.

    ``right`` (support,) is replaced by the solution. Returns whether the components are
    independent; otherwise there is no solution.
    """
    count = support.shape[0]
    for i in range(count):
        for j in range(i + 1):
            total = gram[support[i], support[j]]
            if i == j:
                total += ridge
            for inner in range(j):
                total -= work[i, inner] * work[j, inner]
            if i == j:
                if total <= LEAST_PIVOT:
                    return False
                work[i, i] = np.sqrt(total)
            else:
                work[i, j] = total / work[j, j]
    for i in range(count):
        total = right[i]
        for inner in range(i):
            total -= work[i, inner] * right[inner]
        right[i] = total / work[i, i]
    for i in range(count - 1, -1, -1):
        total = right[i]
        for inner in range(i + 1, count):
            total -= work[inner, i] * right[inner]
        right[i] = total / work[i, i]
    return True


@compiled(error_model="numpy", **EXACT)
def pivot_rows(
    linear: Array,
    gram: Array,
    positive: Array,
    ridge: float,
    tolerance: float,
    most: int,
    codes: Array,
    given_up: Array,
) -> None:
    """Solve every row: exchange all wrong coordinates until none is left.

    ``gram`` (1 or rows, k, k) has a unit diagonal; ``positive`` (rows, k) is the first guess, and
    is changed. Writes ``codes`` (rows, k), and ``given_up`` (rows,): whether the number of wrong
    coordinates has not decreased for ``most`` rounds, or components are dependent.
    """
    rows, k = linear.shape
    work, right = np.empty((k, k)), np.empty(k)
    support, wrong = np.empty(k, np.int64), np.empty(k, np.bool_)
    for row in range(rows):
        own = gram[row if gram.shape[0] > 1 else 0]
        size = 0.0
        for j in range(k):
            size = max(size, abs(linear[row, j]))
        fewest, patience = k + 1, most
        while True:
            count = 0
            for j in range(k):
                codes[row, j] = 0.0
                if positive[row, j]:
                    support[count] = j
                    right[count] = linear[row, j]
                    count += 1
            if not _solve_support(own, right[:count], support[:count], ridge, work):
                given_up[row] = True
                break
            reach = 0.0
            for i in range(count):
                codes[row, support[i]] = right[i]
                reach = max(reach, abs(right[i]))
            mistakes = 0
            for j in range(k):
                if positive[row, j]:
                    wrong[j] = codes[row, j] < -tolerance * reach
                else:
                    slope = -linear[row, j]
                    for i in range(count):
                        slope += right[i] * own[support[i], j]
                    wrong[j] = slope < -tolerance * size
                mistakes += wrong[j]
            if mistakes == 0:
                break
            if mistakes < fewest:
                fewest, patience = mistakes, most
            else:
                patience -= 1
                if patience < 0:
                    given_up[row] = True
                    break
            for j in range(k):
                if wrong[j]:
                    positive[row, j] = not positive[row, j]
