"""Warnings that users can filter or turn into errors, and a function that raises them."""

from __future__ import annotations

import sys
import types
import warnings


class WeightCollapseWarning(UserWarning):
    """A fit gave (nearly) all weight to fewer samples than it has components.

    Such a fit describes only these few samples. The message names the hyperparameter to
    raise, and the value.
    """


class OutlierWarning(UserWarning):
    """A fit left out many or similar samples, found many wrong entries, or had too few samples.

    Many or similar samples can be a group that belongs to the data. The message gives their number
    and explains what to do in this case.
    """


INSIDE = ("robustnmf.", "sklearn.")
"""Modules that a warning does not point to."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user: the first frame outside this library and scikit-learn."""
    level = 1
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
