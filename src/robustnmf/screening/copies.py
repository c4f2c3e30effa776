"""Find rejected samples that are no evidence for a group: copies, and rows that one value fills."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse

from robustnmf.engine import RowSample

FEWEST = 4
"""Least number of rejected samples that are split, or that share a fill value."""

MANY_COPIES = 0.2
"""Share of accepted rows with copies from which on copies are usual in this table."""

COMPARED = 500
"""Accepted rows that are searched for copies and fill values."""

FILLED, FILLED_FEATURES = 0.5, 0.2
"""Shares of the size and of the features of a row that one value fills, from which on it is filled.
A row of yes-or-no features has the same value in some of them too, but in few."""

MANY_FILLED = 0.05
"""Share of accepted rows that are filled from which on that is usual in this table."""

AT_ONCE = 64
"""Rows that are compared with all others at once: their distances fit into the cache."""

ROUNDING = 1e-12
TINY = float(np.finfo(float).tiny)


def find_copies(rejected: RowSample, accepted: RowSample, distance: float) -> np.ndarray:
    """Find rows (rows,) that are copies of others, unless copies are usual in this table.

    Two rows are copies if their squared distance is below ``distance`` times their squared norm;
    a row that counts twice or more is a copy of itself.
    """
    usual = accepted.take(np.argsort(accepted.key)[:COMPARED])
    if np.average(_has_copy(usual, distance), weights=usual.weight) > MANY_COPIES:
        return np.zeros(len(rejected), dtype=bool)
    return _has_copy(rejected, distance)


def _has_copy(sample: RowSample, distance: float) -> np.ndarray:
    """Find rows (rows,) that have a copy in the sample."""
    rows = sample.whole_rows()
    lightest = float(sample.weight.min())
    sq_norms = np.maximum(row_sq_norms(rows), TINY)
    is_close = np.empty(len(sample), dtype=bool)
    for at in range(0, len(sample), AT_ONCE):
        chunk = slice(at, at + AT_ONCE)
        gaps = as_dense((-2.0 * rows[chunk]) @ rows.T).astype(np.float64, copy=False)
        gaps += sq_norms
        gaps[np.arange(gaps.shape[0]), np.arange(at, at + gaps.shape[0])] = np.inf
        nearest = (gaps.min(axis=1) + sq_norms[chunk]) / sq_norms[chunk]
        is_close[chunk] = nearest < distance + ROUNDING
    return is_close | (sample.weight > 1.5 * lightest)


def find_filled(rejected: RowSample, accepted: RowSample) -> np.ndarray:
    """Find rows (rows,) that the same value fills, unless filled rows are usual in this table.

    A code for missing values, a saturated channel or a covered lens gives different samples the
    same entries. They predict each other as copies do.
    """
    usual = accepted.take(np.argsort(accepted.key)[:COMPARED])
    if np.average(_filling_values(usual.rows) > 0, weights=usual.weight) > MANY_FILLED:
        return np.zeros(len(rejected), dtype=bool)
    filling = _filling_values(rejected.rows)
    _, which, times = np.unique(filling, return_inverse=True, return_counts=True)
    return (filling > 0) & (times[which] >= FEWEST)


def _filling_values(rows: Any) -> np.ndarray:
    """Return the value that fills each row (rows,), zero where there is none."""
    count, features = rows.shape
    filling = np.zeros(count)
    if scipy.sparse.issparse(rows):
        entries = np.split(rows.data, rows.indptr[1:-1])
        candidates = np.flatnonzero(np.diff(rows.indptr) >= _fewest_filled(features))
    else:
        entries = rows
        candidates = np.flatnonzero(_has_repeats(rows, _fewest_filled(features)))
    for row in candidates:
        filling[row] = _filling_value(entries[row], features)
    return filling


def _fewest_filled(features: int) -> int:
    """Return the least number of features that a value fills."""
    return max(2, math.ceil(FILLED_FEATURES * features))


def _has_repeats(rows: np.ndarray, times: int) -> np.ndarray:
    """Find rows (rows,) in which a positive value occurs several times; NaN does not count."""
    if rows.shape[1] < times:
        return np.zeros(len(rows), dtype=bool)
    values = np.sort(rows, axis=1)
    first, last = values[:, : values.shape[1] - times + 1], values[:, times - 1 :]
    return ((first == last) & (first > 0)).any(axis=1)


def _filling_value(entries: np.ndarray, features: int) -> float:
    """Return the value that fills the entries of one row, zero where there is none."""
    values, times = np.unique(entries[entries > 0], return_counts=True)  # NaN is not above zero
    often = times >= _fewest_filled(features)
    if not often.any():
        return 0.0
    squares = times * (values / values.max()) ** 2
    largest = int(np.argmax(np.where(often, squares, 0.0)))
    return float(values[largest]) if squares[largest] > FILLED * squares.sum() else 0.0


def row_sq_norms(rows: Any) -> np.ndarray:
    """Compute the squared norm of every row (rows,) in float64."""
    if scipy.sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)


def as_dense(rows: Any) -> np.ndarray:
    """Return rows as a dense array."""
    return rows.toarray() if scipy.sparse.issparse(rows) else np.asarray(rows)
