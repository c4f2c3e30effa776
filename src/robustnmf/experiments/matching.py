"""Match components to true parts, each to one."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment


def match_parts(
    truth: np.ndarray, components: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Match parts (k, features) and components so that the sum of their cosines is largest.

    Returns the indices of parts and of components (pairs,), and their cosines (pairs,).
    """
    one, other = (
        rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
        for rows in (truth, components)
    )
    cosines = one @ other.T
    parts, matches = linear_sum_assignment(cosines, maximize=True)
    return parts, matches, cosines[parts, matches]
