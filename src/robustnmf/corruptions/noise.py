"""Samples replaced by noise of the size of the data."""

from __future__ import annotations

import numpy as np

from robustnmf.corruptions._base import Shape


def noise(rows: np.ndarray, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Replace every sample by uniform noise up to the largest entry."""
    return rows.max() * rng.random(rows.shape)
