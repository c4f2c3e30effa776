"""Figures of single fits, a panel for each method (Figures 7 to 9).

Each method has the hyperparameter that Table 2 shows for it, and the first start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from robustnmf.datasets import DATASETS
from robustnmf.experiments.methods import METHODS
from robustnmf.experiments.outcome import Chart, Images, Outcome
from robustnmf.experiments.paper._base import Item, Results, Scope, stand_in_notes
from robustnmf.experiments.trial import Task

DrawPanel = Callable[[Results, Task, str, dict[str, np.ndarray]], Chart | Images]


def panels_figure(
    number: int, dataset: str, subject: str, caption: str, draw_panel: DrawPanel
) -> Item:
    """Make a figure with a panel for each method, drawn from the arrays of one fit."""
    key = f"figure{number}"
    title = f"Figure {number}: {subject} on {DATASETS[dataset].title}"

    def tasks(scope: Scope) -> list[Task]:
        name = scope.available(dataset)
        return [] if name is None else [scope.task(name, method) for method in METHODS]

    def array_tasks(results: Results) -> list[Task]:
        """Return a task for each method: one start of the value that Table 2 shows."""
        single_fits = []
        for task in tasks(results.scope):
            value = results.selection(task, "accuracy").value
            single_fits.append(replace(task, values=(value,), starts=1))
        return single_fits

    def build(results: Results) -> Outcome:
        panels = []
        for task in array_tasks(results):
            arrays = results.store.arrays(task)
            assert arrays is not None
            value = task.parameter_values[0]
            suffix = "" if value is None else f", {task.method_spec.parameter} = {value:g}"
            panels.append(draw_panel(results, task, f"{task.method}{suffix}", arrays))
        return Outcome(
            key, title, caption,
            charts=[panel for panel in panels if isinstance(panel, Chart)],
            images=[panel for panel in panels if isinstance(panel, Images)],
            notes=stand_in_notes(results.scope, dataset),
        )  # fmt: skip

    return Item(key, title, tasks, build, array_tasks)
