"""Samples whose features have changed places."""

from __future__ import annotations

import numpy as np

from robustnmf.corruptions._base import Shape


def shuffled(rows: np.ndarray, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """The same values in another order, a different one for every sample."""
    return rng.permuted(rows, axis=1)
