"""Figure 7: the two codes of every sample of Dimdata."""

from __future__ import annotations

import numpy as np

from robustnmf.experiments.outcome import Chart, Line
from robustnmf.experiments.paper._base import Results
from robustnmf.experiments.paper._panels import panels_figure
from robustnmf.experiments.trial import Task

LARGEST_COUNT = 600


def draw(results: Results, task: Task, title: str, arrays: dict[str, np.ndarray]) -> Chart:
    """Draw up to ``LARGEST_COUNT`` random samples of each class in a scatter plot."""
    codes = arrays["codes"]
    _, labels = task.table(results.scope.data_dir)
    rng = np.random.default_rng(0)
    lines = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        rows = np.sort(rng.permutation(rows)[:LARGEST_COUNT])
        first, second = (codes[rows, j].round(6).tolist() for j in (0, 1))
        lines.append(Line(f"class {label}", first, second))
    return Chart(title, "first code", "second code", lines, scatter=True)


ITEM = panels_figure(
    7,
    "dimdata",
    "codes",
    f"The two codes of up to {LARGEST_COUNT} samples of each class, first start.",
    draw,
)
