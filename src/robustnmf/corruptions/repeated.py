"""The same wrong sample over and over, as a stuck sensor gives it."""

from __future__ import annotations

import numpy as np

from robustnmf.corruptions._base import Shape


def repeated(rows: np.ndarray, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """One sample of uniform noise in place of all of them."""
    return np.tile(rows.max() * rng.random((1, rows.shape[1])), (len(rows), 1))
