"""One wrong sample repeated, as from a sensor that is stuck."""

from __future__ import annotations

import numpy as np

from robustnmf.corruptions._base import Shape


def repeated(rows: np.ndarray, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Replace all samples by the same sample of uniform noise."""
    return np.tile(rows.max() * rng.random((1, rows.shape[1])), (len(rows), 1))
