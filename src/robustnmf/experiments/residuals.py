"""Residuals and squared errors of samples under a basis, computed alike for all methods."""

from __future__ import annotations

import numpy as np

from robustnmf.solvers import nonnegative_least_squares


def residuals(X: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return the residuals (n_samples, n_features) of all entries with the best codes for a basis.

    Missing values (NaN) have no say in the codes; their residuals are NaN.
    """
    missing = np.isnan(X)
    known_values, gram = X, basis @ basis.T
    if missing.any():
        known_values = np.where(missing, 0.0, X)
        products = (basis[:, None, :] * basis[None, :, :]).reshape(-1, basis.shape[1])
        gram = (~missing @ products.T).reshape(len(X), *gram.shape)
    codes = nonnegative_least_squares(known_values @ basis.T, gram)
    return X - codes @ basis


def squared_errors(X: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return the squared error (n_samples,) of every sample with the best codes for a basis."""
    return np.nansum(residuals(X, basis) ** 2, axis=1)
