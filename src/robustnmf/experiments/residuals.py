"""Squared errors of samples under a basis, computed alike for all methods."""

from __future__ import annotations

import numpy as np

from robustnmf.solvers import nonnegative_least_squares


def squared_errors(X: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return the squared error (n_samples,) of every sample with the best codes for a basis."""
    codes = nonnegative_least_squares(X @ basis.T, basis @ basis.T)
    return ((X - codes @ basis) ** 2).sum(axis=1)
