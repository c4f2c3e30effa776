"""Images with a bright block in front of them."""

from __future__ import annotations

import numpy as np


def occluded(rows: np.ndarray, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """A block of half the height and width at the largest value, somewhere in each image."""
    images = rows.copy().reshape(len(rows), *shape)
    height, width = (side // 2 for side in shape)
    for image in images:
        top = rng.integers(shape[0] - height + 1)
        left = rng.integers(shape[1] - width + 1)
        image[top : top + height, left : left + width] = rows.max()
    return images.reshape(rows.shape)
