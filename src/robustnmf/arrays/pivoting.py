"""Compiled block principal pivoting (numba): nonnegative least squares, one row after the other."""

from __future__ import annotations

import numpy as np
from numba import njit

from robustnmf.arrays.namespace import Array

LEAST_PIVOT = 1e-15
"""Pivot of a Gram matrix with unit diagonal below which components count as dependent."""


@njit(nogil=True, cache=True, error_model="numpy")
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


@njit(nogil=True, cache=True, error_model="numpy")
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
    is changed. Writes ``codes`` (rows, k), and ``given_up`` (rows,) where the number of wrong
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
