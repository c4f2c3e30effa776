"""Figure 8: the objective against the iteration on ORL."""

from __future__ import annotations

import numpy as np

from robustnmf.experiments.outcome import Chart, Line
from robustnmf.experiments.paper._base import Results
from robustnmf.experiments.paper._panels import panels_figure
from robustnmf.experiments.trial import Task


def draw(results: Results, task: Task, title: str, arrays: dict[str, np.ndarray]) -> Chart:
    """Draw the objective at every iteration up to 50, then at 60 evenly spaced on a log scale."""
    history = arrays["history"]
    late = np.geomspace(50, len(history) - 1, 60).round().astype(int)
    iterations = np.unique(np.concatenate([np.arange(min(50, len(history))), late]))
    iterations = iterations[iterations < len(history)]
    objective = Line("objective", iterations.tolist(), history[iterations].tolist())
    return Chart(title, "iteration", "objective", [objective])


ITEM = panels_figure(
    8,
    "orl",
    "objective",
    "The objective of each method after every iteration, first start.",
    draw,
)
