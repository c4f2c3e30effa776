"""Compiled loops over sparse rows and rows with holes (numba).

What BLAS and SciPy have no call for: the approximation at the stored entries alone and what
follows from it, and hiding entries while their squares are summed. Each loop is compiled when
it is first needed, which takes about a second, and kept in numba's cache for the next time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numba import njit, prange

from robustnmf.arrays.namespace import Array

WORTH_THREADS = 200_000
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "fastmath": {"reassoc", "contract"},  # sums in any order, so that they run on vectors
}


def on_threads(loop: Callable[..., None]) -> Callable[..., None]:
    """The loop over rows compiled twice: on threads for many stored entries, else on one."""
    alone = njit(**OPTIONS)(loop)
    threaded = njit(parallel=True, **OPTIONS)(loop)

    @wraps(loop)
    def run(indptr: Array, indices: Array, *rest: Array) -> None:
        (threaded if len(indices) > WORTH_THREADS else alone)(indptr, indices, *rest)

    return run


@on_threads
def approximate(indptr: Array, indices: Array, codes: Array, basis: Array, out: Array) -> None:
    """``out[p] = codes[i] . basis[:, j]`` for every stored entry p at (i, j); basis (m, k)."""
    k = codes.shape[1]
    for i in prange(codes.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            total = 0.0
            for c in range(k):
                total += codes[i, c] * basis[j, c]
            out[p] = total


@on_threads
def weighted_grams(indptr: Array, indices: Array, weights: Array, basis: Array, out: Array) -> None:
    """``out[i] = sum_p weights[p] basis[j] basis[j]^T`` over the stored entries of each row."""
    k = basis.shape[1]
    for i in prange(out.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            for c in range(k):
                weight = weights[p] * basis[j, c]
                for d in range(c + 1):
                    out[i, c, d] += weight * basis[j, d]
        for c in range(k):
            for d in range(c):
                out[i, d, c] = out[i, c, d]


@on_threads
def sums_of_unstored(
    indptr: Array, indices: Array, rows: Array, codes: Array, basis: Array, out: Array
) -> None:
    """Sum of the approximation over the entries of chosen rows that are not stored."""
    features, k = basis.shape
    for r in prange(rows.shape[0]):
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


# On one thread: between products of BLAS, a second set of threads would fight with its own.
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
