"""Samples in other units than the rest."""

from __future__ import annotations

import numpy as np

from robustnmf.corruptions._base import Shape

SMALLEST_FACTOR, LARGEST_FACTOR = 2.0, 10.0


def scaled(rows: np.ndarray, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Multiply each sample by a random factor between two and ten."""
    return rng.uniform(SMALLEST_FACTOR, LARGEST_FACTOR, size=(len(rows), 1)) * rows
