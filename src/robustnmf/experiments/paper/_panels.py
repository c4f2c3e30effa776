"""Figures 7 to 9 show single fits, a panel for each method.

Each method has the hyperparameter that Table 2 shows for it, and the first start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from robustnmf.datasets import DATASETS
from robustnmf.experiments.methods import METHODS
from robustnmf.experiments.outcome import Chart, Images, Outcome
from robustnmf.experiments.paper._base import Item, Results, Scope, standing_in
from robustnmf.experiments.trial import Task

Drawn = Callable[[Results, Task, str, dict[str, np.ndarray]], Chart | Images]


def panels_figure(number: int, dataset: str, what: str, caption: str, draw: Drawn) -> Item:
    """A figure of six panels."""
    key = f"figure{number}"
    title = f"Figure {number}: {what} on {DATASETS[dataset].title}"

    def tasks(scope: Scope) -> list[Task]:
        taken = scope.of(dataset)
        return [] if taken is None else [scope.task(taken, method) for method in METHODS]

    def extra(results: Results) -> list[Task]:
        """One start of the chosen value."""
        found = []
        for task in tasks(results.scope):
            value = results.chosen(task, "accuracy").value
            found.append(replace(task, values=(value,), starts=1))
        return found

    def build(results: Results) -> Outcome:
        drawn = []
        for task in extra(results):
            arrays = results.store.arrays(task)
            assert arrays is not None
            value = task.asked[0]
            told = "" if value is None else f", {task.how.parameter} = {value:g}"
            drawn.append(draw(results, task, f"{task.method}{told}", arrays))
        return Outcome(
            key, title, caption,
            charts=[panel for panel in drawn if isinstance(panel, Chart)],
            images=[panel for panel in drawn if isinstance(panel, Images)],
            notes=standing_in(results.scope, dataset),
        )  # fmt: skip

    return Item(key, title, tasks, build, extra)
