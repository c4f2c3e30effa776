"""Images with a bright block in front of them."""

from __future__ import annotations

import numpy as np

from robustnmf.corruptions._base import Shape, random_block


def occluded(rows: np.ndarray, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Set a block of half the height and width to the largest value, at a random place.

    Where samples are not images, half of the features, side by side, are set.
    """
    shape = (1, rows.shape[1]) if shape is None else shape
    images = rows.copy().reshape(len(rows), *shape)
    height, width = (max(1, side // 2) for side in shape)
    for image in images:
        image[random_block(shape, height, width, rng)] = rows.max()
    return images.reshape(rows.shape)
