"""Shift features that hold negative values, so that X is nonnegative."""

from __future__ import annotations

from typing import Any

import scipy.sparse

from robustnmf.arrays import as_float64, namespace, on_device_of


def nonnegative_shift(X: Any) -> Any:
    """Compute what each feature of dense X is raised by to hold no negative values (features,)."""
    xp = namespace(X)
    below = xp.where(X < 0, X, xp.zeros_like(X))
    return -xp.min(as_float64(below), axis=0)


def shifted(X: Any, shift: Any) -> tuple[Any, Any]:
    """Return X with features raised by a shift, and what is still below zero (or None).

    Both (samples, features); the first has zeros where the second is negative.
    """
    if not bool(namespace(shift).any(shift > 0)):
        return X, None
    table = X.toarray() if scipy.sparse.issparse(X) else X
    xp = namespace(table)
    raised = table + xp.astype(on_device_of(table, shift), table.dtype)
    nothing = xp.zeros_like(raised)
    below = xp.where(raised < 0, raised, nothing)
    # What is known stands for what is not, as in energies; squares of it add to those.
    known = xp.sum(xp.astype(xp.isfinite(raised), table.dtype), axis=1, keepdims=True)
    whole = (table.shape[1] / xp.where(known > 0, known, 1 + 0 * known)) ** 0.5
    return xp.where(raised < 0, nothing, raised), below * whole
