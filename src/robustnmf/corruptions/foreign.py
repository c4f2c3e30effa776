"""Samples that belong to another dataset."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.ndimage import zoom
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
        images = chosen.reshape(-1, *DIGITS)
        factors = (1.0, *(side / old for side, old in zip(shape, DIGITS, strict=True)))
        resized = zoom(images, factors, order=1).reshape(len(rows), -1)
    else:
        resized = zoom(chosen, (1.0, rows.shape[1] / chosen.shape[1]), order=1)
    return rows.max() * np.clip(resized, 0.0, 1.0)


@cache
def _digits() -> np.ndarray:
    digits = load_digits().data
    return digits / digits.max()


@cache
def _breast_cancer() -> np.ndarray:
    table = load_breast_cancer().data
    return table / table.max(axis=0)
