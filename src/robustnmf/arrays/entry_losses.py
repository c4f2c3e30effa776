"""Compiled loops of losses that give every entry a weight: residuals times weights, row sums."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def huber_residuals(
    rows: np.ndarray,
    inverse_scale: float,
    approximation: np.ndarray,
    cutoffs: np.ndarray,
    out: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Write residuals times Huber's weights (rows, features), and sums of the loss (rows,)."""
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            residual = rows[i, j] * inverse_scale - approximation[i, j]
            size, cutoff = abs(residual), cutoffs[j]
            if size <= cutoff:
                total += residual * residual
                out[i, j] = residual
            else:
                total += cutoff * (2 * size - cutoff)
                out[i, j] = cutoff if residual > 0 else -cutoff
        sums[i] = total


@njit(cache=True, nogil=True)
def biweight_residuals(
    rows: np.ndarray,
    inverse_scale: float,
    approximation: np.ndarray,
    cutoffs: np.ndarray,
    out: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Write residuals times biweights (rows, features), and sums of the loss (rows,)."""
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            residual = rows[i, j] * inverse_scale - approximation[i, j]
            square = cutoffs[j] * cutoffs[j]
            ratio = min(residual * residual / square, 1.0)
            total += square * ratio * (1 - ratio + ratio * ratio / 3)
            out[i, j] = (1 - ratio) * (1 - ratio) * residual
        sums[i] = total
