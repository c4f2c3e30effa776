"""Display of the weights of entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from robustnmf.arrays import to_numpy
from robustnmf.displays._shared import axes_or_new, check_features, factorisation_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from robustnmf.displays._shared import Estimator

COLUMNS = 8
"""Most images side by side."""


class EntryWeightsDisplay:
    """Weights of the entries of samples: dark where an entry is bad.

    Parameters
    ----------
    weights : ndarray (n_samples, n_features)
        From 0 (bad) to 1 (good), NaN where an entry is not known; see
        :meth:`RobustNMF.entry_weights`.
    image_shape : (height, width), optional
        Samples are then shown as images, side by side.
    """

    def __init__(self, *, weights: np.ndarray, image_shape: tuple[int, int] | None = None):
        self.weights = np.asarray(weights)
        self.image_shape = image_shape
        check_features(self.weights.shape[1], image_shape, None)

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: Any,
        *,
        image_shape: tuple[int, int] | None = None,
        ax: Axes | None = None,
    ) -> EntryWeightsDisplay:
        """Draw the display of the samples X (n_samples, n_features)."""
        model = factorisation_of(estimator, cls)
        weights = to_numpy(model.entry_weights(X))
        return cls(weights=weights, image_shape=image_shape).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> EntryWeightsDisplay:
        """Draw on these axes, or on new ones: a table, or images side by side."""
        self.ax_, self.figure_ = axes_or_new(ax, type(self))
        picture = self.weights if self.image_shape is None else self._sheet(self.image_shape)
        self.image_ = self.ax_.imshow(
            picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect="equal"
            if self.image_shape else "auto",
        )  # fmt: skip
        if self.image_shape is None:
            self.ax_.set(xlabel="feature", ylabel="sample")
        else:
            self.ax_.set_axis_off()
        self.figure_.colorbar(self.image_, ax=self.ax_, label="weight", shrink=0.7)
        return self

    def _sheet(self, shape: tuple[int, int]) -> np.ndarray:
        """Lay the images of all samples out in rows, with a gap between them."""
        height, width = shape
        columns = min(COLUMNS, len(self.weights))
        rows = -(-len(self.weights) // columns)
        sheet = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1), np.nan)
        for place, weights in enumerate(self.weights):
            top, left = place // columns * (height + 1), place % columns * (width + 1)
            sheet[top : top + height, left : left + width] = weights.reshape(shape)
        return sheet


def plot_entry_weights(estimator: Estimator, X: Any, **options: Any) -> EntryWeightsDisplay:
    """Draw the weights of the entries of X; options as in :class:`EntryWeightsDisplay`."""
    return EntryWeightsDisplay.from_estimator(estimator, X, **options)
