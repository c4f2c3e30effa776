"""Compiled loops (numba): sweeps, sparse and masked rows, energies, losses, least squares.

BLAS and SciPy have no functions for these. Each loop is compiled when it is first called, which
takes a second or two, and stored in a file. All of them run on one thread and release the
GIL, because the engine has its own threads and visits several blocks at once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robustnmf.arrays.kernels.compiled import compiled
from robustnmf.arrays.kernels.vectors import LANE_BYTES, step_quad
from robustnmf.arrays.namespace import Array

TINY = float(np.finfo(np.float64).tiny)
"""Smallest normal number."""

LEAST_PIVOT = 1e-15
"""Components are dependent if a pivot of their Gram matrix with unit diagonal is below this."""


@compiled()
def sweep_tiles(
    factor: Array,
    strides: tuple[int, int, int],
    linear: Array,
    linear_strides: tuple[int, int, int],
    gram: Array,
    present: Array,
    sweeps: int,
    fixed: int,
    tile: Array,
    right: Array,
    square: Array,
    steps: Array,
) -> None:
    """Run coordinate sweeps over every row of a factor (members, rows, k), in place.

    The factor and its linear term are flat, with strides, so that one compiled loop serves codes
    and a basis, whose memory layouts differ. Rows are copied to transposed tiles (k, lanes), so
    that a step for one coordinate is arithmetic on long vectors. Components are padded with zeros
    to a multiple of four. The last four arguments are zeros to work with: two tiles, the Gram
    matrix, and one over its diagonal.
    """
    members, k = present.shape
    rows = factor.size // (members * k)
    full, lanes = tile.shape
    for b in range(members):
        for j in range(k):
            for c in range(k):
                square[j, c] = -gram[b, j, c]
            free = j >= fixed and present[b, j]
            steps[j] = 1 / gram[b, j, j] if free else 0
        for at in range(0, rows, lanes):
            width = lanes if lanes < rows - at else rows - at
            begin = b * strides[0] + at * strides[1]
            begin_linear = b * linear_strides[0] + at * linear_strides[1]
            for r in range(width):
                for j in range(k):
                    tile[j, r] = factor[begin + r * strides[1] + j * strides[2]]
                    right[j, r] = linear[
                        begin_linear + r * linear_strides[1] + j * linear_strides[2]
                    ]
            for j in range(k, full):  # NaN in one row must not spread to others
                for r in range(lanes):
                    tile[j, r] = 0
            for _ in range(sweeps):
                for j in range(0, full, 4):
                    step_quad(square, steps, j, tile, right)
            for r in range(width):
                for j in range(k):
                    factor[begin + r * strides[1] + j * strides[2]] = tile[j, r]


def tile_space(k: int, dtype: Any) -> tuple[Array, Array, Array, Array]:
    """Return zeros for :func:`sweep_tiles` to work with: to compile their allocation takes long."""
    full, lanes = (k + 3) // 4 * 4, LANE_BYTES // np.dtype(dtype).itemsize
    tile, right = np.zeros((2, full, lanes), dtype)
    return tile, right, np.zeros((full, full), dtype), np.zeros(full, dtype)


@compiled()
def quadratic_rows(codes: Array, images: Array, linear: Array, out: Array) -> None:
    """Sum ``codes (images - 2 linear)``, each (rows, members, k), over k; out (members, rows)."""
    rows, members, k = codes.shape
    for i in range(rows):
        for b in range(members):
            total = 0.0
            for j in range(k):
                total += float(codes[i, b, j]) * (float(images[i, b, j]) - 2.0 * linear[i, b, j])
            out[b, i] = total


@compiled()
def sums_of_unstored(
    indptr: Array, indices: Array, rows: Array, codes: Array, basis: Array, out: Array,
    stored: Array,
) -> None:  # fmt: skip
    """Sum the approximation over the entries of chosen rows that are not stored.

    ``stored`` is an array of bool (m,) to work with.
    """
    features, k = basis.shape
    for r in range(rows.shape[0]):
        i = rows[r]
        stored[:] = False
        for p in range(indptr[i], indptr[i + 1]):
            stored[indices[p]] = True
        total = 0.0
        for j in range(features):
            if not stored[j]:
                for c in range(k):
                    total += codes[i, c] * basis[j, c]
        out[r] = total


@compiled()
def scale_weights(
    rho: Array, weight: Array, sample_weight: Array, scale_step: float, weights: Array, sums: Array
) -> None:
    """Compute ``Kernels.weigh_rows``; ``sums`` (3, members, 1) are all that it returns besides."""
    members, count = weight.shape
    for b in range(members):
        total, samples, top, log_scale = 0.0, 0.0, 0.0, -math.inf
        for i in range(count):
            total += sample_weight[i] * rho[b, i]
            samples += sample_weight[i]
            value = sample_weight[i] * weight[b, i]
            weights[b, i] = value
            if not value <= top:
                top = value
        if top > 0.0:
            log_scale = scale_step * math.ceil(math.log(max(top, TINY)) / scale_step)
            factor = math.exp(-log_scale)
            for i in range(count):
                weights[b, i] *= factor
        sums[0, b, 0], sums[1, b, 0], sums[2, b, 0] = log_scale, total, samples


@compiled()
def count_shared(lists: Array, sample_weight: Array, counts: Array) -> None:
    """Compute ``Kernels.count_at_nodes``; NaN and positions outside of the nodes do not count."""
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


def _residual_loop(is_linear: bool) -> Any:
    """Return a loop that writes weighted residuals (rows, features), and sums of the loss (rows,).

    Beyond its cutoff the loss is linear (Huber's), or else constant. Bounds (3, features) are the
    cutoffs, and the smallest and largest usual value, of features.
    """

    @compiled(exact=True)
    def residuals(
        rows: Array, inverse_scale: float, approximation: Array, bounds: Array, out: Array,
        sums: Array,
    ) -> None:  # fmt: skip
        for i in range(rows.shape[0]):
            total = 0.0
            for j in range(rows.shape[1]):
                value = rows[i, j] * inverse_scale
                residual = value - approximation[i, j]
                size, cutoff = abs(residual), bounds[0, j]
                if size <= cutoff or bounds[1, j] <= value <= bounds[2, j]:
                    total += residual * residual
                    out[i, j] = residual
                elif is_linear:
                    total += cutoff * (2 * size - cutoff)
                    out[i, j] = cutoff if residual > 0 else -cutoff
                else:
                    total += cutoff * cutoff
                    out[i, j] = 0.0
            sums[i] = total

    return residuals


huber_residuals, truncated_residuals = _residual_loop(True), _residual_loop(False)


@compiled(exact=True, inline="always")
def _solve_support(
    grams: Array, own: int, right: Array, support: Array, count: int, ridge: float, work: Array
) -> bool:
    """Solve ``(grams[own] + ridge) x = right`` on a support by Cholesky factorisation.

    The first ``count`` numbers of ``right`` are replaced by the solution. Returns whether the
    components are independent; otherwise there is no solution.
    """
    for i in range(count):
        for j in range(i + 1):
            total = grams[own, support[i], support[j]]
            if i == j:
                total += ridge
            for inner in range(j):
                total -= work[i, inner] * work[j, inner]
            if i == j:
                if total <= LEAST_PIVOT:
                    return False
                work[i, i] = math.sqrt(total)
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


@compiled(exact=True)
def pivot_rows(
    linear: Array,
    gram: Array,
    positive: Array,
    ridge: float,
    tolerance: float,
    most: int,
    codes: Array,
    given_up: Array,
    work: Array,
    right: Array,
    support: Array,
    wrong: Array,
) -> None:
    """Solve every row: exchange all wrong coordinates until none is left.

    ``gram`` (1 or rows, k, k) has a unit diagonal; ``positive`` (rows, k) is the first guess, and
    is changed. Writes ``codes`` (rows, k), and ``given_up`` (rows,): whether the number of wrong
    coordinates has not decreased for ``most`` rounds, or components are dependent. The last four
    arguments are space to work with: a matrix (k, k), and numbers, positions and flags (k,).
    """
    rows, k = linear.shape
    shared = int(gram.shape[0] > 1)
    for row in range(rows):
        own = row * shared
        size = 0.0
        for j in range(k):
            size = max(size, linear[row, j])
        fewest, patience = k + 1, most
        while True:
            count = 0
            for j in range(k):
                codes[row, j] = 0.0
                if positive[row, j]:
                    support[count] = j
                    right[count] = linear[row, j]
                    count += 1
            if not _solve_support(gram, own, right, support, count, ridge, work):
                given_up[row] = True
                break
            reach = 0.0
            for i in range(count):
                codes[row, support[i]] = right[i]
                if math.fabs(right[i]) > reach:
                    reach = math.fabs(right[i])
            mistakes = 0
            for j in range(k):
                if positive[row, j]:
                    wrong[j] = codes[row, j] < -tolerance * reach
                else:
                    slope = -linear[row, j]
                    for i in range(count):
                        slope += right[i] * gram[own, support[i], j]
                    wrong[j] = slope < -tolerance * size
                mistakes += wrong[j]
            if mistakes == 0:
                break
            if mistakes < fewest:
                fewest = mistakes
                patience = most
            else:
                patience -= 1
                if patience < 0:
                    given_up[row] = True
                    break
            for j in range(k):
                if wrong[j]:
                    positive[row, j] = not positive[row, j]


@compiled(exact=True, inline="always")
def _solve_for(
    gram: Array, own: int, linear: Array, row: int, ridge: float, work: Array, right: Array,
    support: Array, state: Array,
) -> bool:  # fmt: skip
    """Solve a row without constraints for the coordinates in it, and number them in ``state``."""
    count = 0
    for j in range(len(state)):
        if state[j] >= 0:
            support[count], right[count], state[j] = j, linear[row, j], count
            count += 1
    return _solve_support(gram, own, right, support, count, ridge, work)


@compiled(exact=True)
def climb_rows(
    linear: Array,
    gram: Array,
    chosen: Array,
    ridge: float,
    tolerance: float,
    codes: Array,
    work: Array,
    right: Array,
    support: Array,
    state: Array,
) -> None:
    """Solve the chosen rows (rows,) by the active-set method of Lawson and Hanson.

    It adds the best coordinate, solves for those that are positive, and steps back to feasibility.
    ``gram`` and space are those of ``pivot_rows``; ``state`` (k,) is the place of a coordinate in
    the solution, or one of two marks for coordinates that are not in it.
    """
    rows, k = linear.shape
    shared = int(gram.shape[0] > 1)
    free, barred = -1, -2
    for row in range(rows):
        if not chosen[row]:
            continue
        own = row * shared
        least = 0.0
        for j in range(k):
            codes[row, j] = 0.0
            state[j] = free
            least = max(least, tolerance * linear[row, j])
        for _ in range(10 * k + 20):
            best, promise = -1, least
            for j in range(k):
                if state[j] == free:
                    slope = linear[row, j]
                    for i in range(k):
                        if state[i] >= 0:
                            slope -= codes[row, i] * gram[own, i, j]
                    if slope > promise:
                        best, promise = j, slope
            if best < 0:
                break
            state[best] = 0
            is_solved = _solve_for(gram, own, linear, row, ridge, work, right, support, state)
            if not is_solved or right[state[best]] <= 0.0:
                state[best] = barred  # its slope was only a rounding error
                continue
            while is_solved:
                # Move towards the solution as far as all coordinates remain feasible.
                step = 1.0
                for j in range(k):
                    if state[j] >= 0 and right[state[j]] <= 0.0:
                        step = min(step, codes[row, j] / (codes[row, j] - right[state[j]]))
                is_feasible = True
                for j in range(k):
                    if state[j] >= 0:
                        old, wanted = codes[row, j], right[state[j]]
                        codes[row, j] = wanted if step == 1.0 else old + step * (wanted - old)
                        if wanted <= 0.0:
                            is_feasible = False
                            if codes[row, j] <= 0.0 or old / (old - wanted) <= step:
                                codes[row, j], state[j] = 0.0, free
                if is_feasible:
                    break
                is_solved = _solve_for(gram, own, linear, row, ridge, work, right, support, state)
            for j in range(k):
                if state[j] == barred:
                    state[j] = free
