"""Samples that belong to another dataset."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from robustnmf.corruptions._base import Shape

DIGITS = (8, 8)


def foreign(rows: np.ndarray, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Replace samples by handwritten digits, resized to the shape and range of the data.

    Images of eight by eight are likely to be those digits: rows of the breast cancer table replace
    them.
    """
    donors = _breast_cancer() if shape == DIGITS else _digits()
    samples = donors[rng.choice(len(donors), size=len(rows))]
    if shape is not None and shape != DIGITS:
        resampling = np.kron(
            *(_averaging_matrix(old, new) for old, new in zip(DIGITS, shape, strict=True))
        )
    else:
        resampling = _averaging_matrix(samples.shape[1], rows.shape[1])
    return rows.max() * np.clip(samples @ resampling, 0.0, 1.0)


def _averaging_matrix(old: int, new: int) -> np.ndarray:
    """Return the matrix (old, new) that averages over the part of the old grid in each new cell."""
    edges = np.linspace(0.0, old, new + 1)
    begin, end = edges[:-1], edges[1:]
    cells = np.arange(old)[:, None]
    overlap = np.minimum(end, cells + 1) - np.maximum(begin, cells)
    return np.maximum(overlap, 0.0) / (end - begin)


@cache
def _digits() -> np.ndarray:
    digits = load_digits().data
    return digits / digits.max()


@cache
def _breast_cancer() -> np.ndarray:
    table = load_breast_cancer().data
    return table / table.max(axis=0)
