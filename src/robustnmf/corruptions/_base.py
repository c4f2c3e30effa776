"""What a corruption is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Shape = tuple[int, int] | None
"""Of images; None where samples are none."""

Corruption = Callable[[np.ndarray, np.random.Generator, Shape], np.ndarray]
"""Rows to be spoiled, a source of chance and the shape of images; the spoiled rows."""
