"""Warnings that point at the line of the user, through all wrappers."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

INSIDE = ("robustnmf.", "sklearn.")


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the first frame outside this library and scikit-learn."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
