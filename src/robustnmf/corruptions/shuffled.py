"""Samples whose features are permuted."""

from __future__ import annotations

import numpy as np

from robustnmf.corruptions._base import Shape


def shuffled(rows: np.ndarray, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Permute the features of every sample, each in its own random order."""
    return rng.permuted(rows, axis=1)
