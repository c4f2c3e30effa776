"""Divide features by a scale of their own, so that large units do not rule a fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse

from robustnmf.tables._stored import StoredRows
from robustnmf.tables._table import Table

MAX_ROWS = 100_000
"""Samples by which the scale of features is found, drawn at random where there are more."""


def scale_features(
    table: Table, kind: str, seed: int, *, keep: bool = False
) -> tuple[Table, np.ndarray]:
    """Return the table with features divided by their scales, and the scales (features,).

    Arrays of floats are divided in place unless they are to be kept: the table that is given must
    not be used any more.
    """
    rows = draw_rows(table.data, MAX_ROWS, seed)
    scale = feature_scales(rows, kind)
    data = table.data
    if keep and not isinstance(data, StoredRows):
        data = data.copy()
    return replace(table, data=divide(data, scale)), scale


def draw_rows(
    data: np.ndarray | scipy.sparse.csr_array | StoredRows, most: int, seed: int
) -> np.ndarray | scipy.sparse.csr_array:
    """Return all rows, or so many of them that are drawn at random, in memory."""
    count = data.shape[0]
    if count <= most and not isinstance(data, StoredRows):
        return data
    indices = np.sort(np.random.default_rng(seed).permutation(count)[:most])
    return take_rows(data, indices)


def take_rows(
    data: np.ndarray | scipy.sparse.csr_array | StoredRows, indices: np.ndarray
) -> np.ndarray | scipy.sparse.csr_array:
    """Return some rows of a table, in memory."""
    return data.take(indices) if isinstance(data, StoredRows) else data[indices]


def count_missing(data: np.ndarray | scipy.sparse.csr_array | StoredRows) -> np.ndarray:
    """Count the missing values of every sample (samples,)."""
    if isinstance(data, StoredRows):
        return np.concatenate([count_missing(rows) for rows in data.blocks()])
    if isinstance(data, np.ndarray):
        return np.isnan(data).sum(axis=1)
    samples = np.repeat(np.arange(data.shape[0]), np.diff(data.indptr))
    return np.bincount(samples[np.isnan(data.data)], minlength=data.shape[0])


def feature_scales(data: np.ndarray | scipy.sparse.csr_array, kind: str) -> np.ndarray:
    """Return the scale of every feature (features,): positive, one where a feature is constant."""
    of_column = KINDS[kind]
    scales = np.ones(data.shape[1])
    columns = data if isinstance(data, np.ndarray) else scipy.sparse.csc_array(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns without a value
        for j in range(data.shape[1]):
            if not isinstance(columns, np.ndarray):
                stored = columns.data[columns.indptr[j] : columns.indptr[j + 1]]
                values = np.zeros(data.shape[0])
                values[: len(stored)] = stored
            else:
                values = np.asarray(columns[:, j], dtype=np.float64)
            values = values[~np.isnan(values)]
            scale = float(of_column(values)) if len(values) else 0.0
            if 0 < scale < np.inf:
                scales[j] = scale
    return scales


def divide(
    data: np.ndarray | scipy.sparse.csr_array | StoredRows, scale: np.ndarray
) -> np.ndarray | scipy.sparse.csr_array | StoredRows:
    """Divide the features of a table by their scales; arrays of floats are changed in place."""
    if isinstance(data, StoredRows):
        return data.divided(scale)
    if not isinstance(data, np.ndarray):
        if data.dtype.kind != "f":
            data = data.astype(np.float64)
        data.data /= scale[data.indices].astype(data.dtype)
        return data
    if data.dtype.kind != "f" or not data.flags.writeable:
        return data / scale
    data /= scale
    return data


def _largest(values: np.ndarray) -> float:
    return float(np.abs(values).max())


def _interquartile_range(values: np.ndarray) -> float:
    """Return the interquartile range; of features that are mostly constant the typical value."""
    low, high = np.quantile(values, [0.25, 0.75])
    positive = values[values > 0]
    if high > low:
        return float(high - low)
    return float(np.median(positive)) if len(positive) else 0.0


KINDS: dict[str, Callable[[np.ndarray], float]] = {
    "max": _largest,
    "std": np.std,
    "robust": _interquartile_range,
}
"""Functions of the known values of a feature, by the name of the scale."""
