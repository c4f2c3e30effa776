"""Functions that all displays use: the model, axes, names of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from robustnmf.estimators import RobustNMFDetector
    from robustnmf.estimators.base import BaseRobustNMF

    Estimator: TypeAlias = BaseRobustNMF | RobustNMFDetector

MAX_NAME_LENGTH = 30


def check_features(
    count: int, image_shape: tuple[int, int] | None, feature_names: Sequence[str] | None
) -> None:
    """Refuse an image shape or names of another number of features than ``count``."""
    if image_shape is not None and np.prod(image_shape) != count:
        raise ValueError(
            f"image_shape={tuple(image_shape)} holds {np.prod(image_shape)} pixels, but samples "
            f"have {count} features. Give the height and width of the samples."
        )
    if feature_names is not None and len(feature_names) != count:
        raise ValueError(
            f"feature_names holds {len(feature_names)} names for {count} features. Give one each."
        )


def feature_names_of(estimator: Estimator, names: Sequence[str] | None) -> Sequence[str] | None:
    """Return the names, or else those of the data of the fit, if it had any."""
    return getattr(estimator, "feature_names_in_", None) if names is None else names


def factorisation_of(estimator: Estimator, display: type) -> BaseRobustNMF:
    """Return the fitted factorisation: the estimator itself, or that of a detector."""
    check_matplotlib_support(display.__name__)
    check_is_fitted(estimator)
    return cast("BaseRobustNMF", getattr(estimator, "estimator_", estimator))


def axes_or_new(ax: Axes | None, display: type) -> tuple[Axes, Figure | SubFigure]:
    """Return the axes, or new ones, and their figure."""
    check_matplotlib_support(display.__name__)
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(layout="constrained")
    return ax, ax.figure


def label(name: object) -> str:
    """Return a name as Matplotlib draws it literally: without mathematics, and not too long."""
    text = str(name)
    text = text if len(text) <= MAX_NAME_LENGTH else text[: MAX_NAME_LENGTH - 1] + "\u2026"
    return text.replace("$", r"\$")
