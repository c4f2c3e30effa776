"""Compiled loops of losses that give every entry a weight: residuals times weights, row sums.

The bounds (3, features) are the cutoffs, and the smallest and largest usual value, of features.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def huber_residuals(
    rows: np.ndarray,
    inverse_scale: float,
    approximation: np.ndarray,
    bounds: np.ndarray,
    out: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Write residuals times Huber's weights (rows, features), and sums of the loss (rows,)."""
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


@njit(cache=True, nogil=True)
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
