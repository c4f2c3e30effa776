"""Figure 9: base images on ORL."""

from __future__ import annotations

import numpy as np

from robustnmf.datasets import DATASETS
from robustnmf.experiments.outcome import Images
from robustnmf.experiments.paper._base import Results
from robustnmf.experiments.paper._panels import panels_figure
from robustnmf.experiments.trial import Task

COMPONENTS = 20


def draw(results: Results, task: Task, title: str, arrays: dict[str, np.ndarray]) -> Images:
    """Draw the first components as images, each divided by its largest pixel."""
    shape = DATASETS[task.dataset].image_shape
    assert shape is not None
    basis = arrays["basis"][:COMPONENTS]
    largest = np.maximum(basis.max(axis=1, keepdims=True), 1e-300)
    # Pixels are stored column by column.
    return Images(title, (basis / largest).reshape(len(basis), *shape).transpose(0, 2, 1))


ITEM = panels_figure(
    9,
    "orl",
    "base images",
    f"The first {COMPONENTS} components of each method as images, each over its largest pixel; "
    "first start.",
    draw,
)
