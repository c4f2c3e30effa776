"""Types of a corruption."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Shape = tuple[int, int] | None
"""Height and width of images; None where samples are not images."""

Corruption = Callable[[np.ndarray, np.random.Generator, Shape], np.ndarray]
"""Takes clean rows, a random generator and the shape of images; returns the corrupted rows."""
