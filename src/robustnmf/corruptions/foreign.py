"""Samples that belong to another dataset."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from robustnmf.corruptions._base import Shape

DIGITS = (8, 8)


def foreign(rows: np.ndarray, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Handwritten digits in their place, brought to the size and the range of the data.

    Among images of eight by eight, which are likely to be those digits, rows of the breast cancer
    table.
    """
    donors = _breast_cancer() if shape == DIGITS else _digits()
    chosen = donors[rng.choice(len(donors), size=len(rows))]
    if shape is not None and shape != DIGITS:
        across = np.kron(*(_averages(old, new) for old, new in zip(DIGITS, shape, strict=True)))
    else:
        across = _averages(chosen.shape[1], rows.shape[1])
    resized = chosen @ across
    return rows.max() * np.clip(resized, 0.0, 1.0)


def _averages(old: int, new: int) -> np.ndarray:
    """Matrix (old, new) that averages what lies within each of the new ones: no blank is hit."""
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
