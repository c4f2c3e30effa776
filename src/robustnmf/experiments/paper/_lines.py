"""Charts of both measures against a variable, with a line for each method (Figures 1 to 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from robustnmf.datasets import DATASETS
from robustnmf.experiments.methods import METHODS
from robustnmf.experiments.outcome import Chart, Line, Outcome
from robustnmf.experiments.paper._base import Item, Results, Scope, stand_in_notes
from robustnmf.experiments.summary import MEASURES, ValueSummary, best_on_grid, summarise
from robustnmf.experiments.trial import Task

XValue = TypeVar("XValue", int, float)


def percent_line(
    name: str, x: Sequence[float], summaries: Sequence[ValueSummary], *, dashed: bool = False
) -> Line:
    """Make a line of means in percent, with standard deviations as errors."""
    means = [100 * summary.mean for summary in summaries]
    deviations = [100 * summary.deviation for summary in summaries]
    return Line(name, list(x), means, deviations, dashed)


def hyperparameter_figure(number: int, dataset: str, method: str) -> Item:
    """Make the figure of scores against the hyperparameter of a method, with EucNMF's beside."""
    key, parameter = f"figure{number}", str(METHODS[method].parameter)
    title = f"Figure {number}: {method} against {parameter} on {DATASETS[dataset].title}"

    def tasks(scope: Scope) -> list[Task]:
        name = scope.available(dataset)
        return [] if name is None else [scope.task(name, m) for m in ("EucNMF", method)]

    def build(results: Results) -> Outcome:
        plain_task, task = tasks(results.scope)
        on_grid = METHODS[method].grid
        values = [v for v in on_grid if v in task.parameter_values]
        charts = []
        for measure, name in MEASURES.items():
            summaries = results.summaries(task, measure)
            plain = results.selection(plain_task, measure)
            lines = [
                percent_line(method, values, [summaries[value] for value in values]),
                percent_line("EucNMF", values, [plain] * len(values), dashed=True),
            ]
            charts.append(Chart(name, parameter, f"{name} (%)", lines))
        caption = (
            f"Mean and standard deviation over the starts. The {parameter} with the best score is "
            "what Tables 2 and 3 show; it takes the labels to find it."
        )
        notes = stand_in_notes(results.scope, dataset)
        return Outcome(key, title, caption, charts=charts, notes=notes)

    return Item(key, title, tasks, build)


def series_figure(
    number: int,
    dataset: str,
    subject: str,
    x_label: str,
    x_values: Callable[[Scope], Sequence[XValue]],
    tasks_at: Callable[[Scope, str, str, XValue], list[Task]],
    caption: str,
) -> Item:
    """Make the figure of all methods' scores against x, each at its best hyperparameter.

    ``tasks_at`` returns the tasks of a dataset and a method at one x; their trials are pooled.
    """
    key = f"figure{number}"
    title = f"Figure {number}: {subject} on {DATASETS[dataset].title}"

    def tasks(scope: Scope) -> list[Task]:
        name = scope.available(dataset)
        if name is None:
            return []
        return [
            task for method in METHODS for x in x_values(scope)
            for task in tasks_at(scope, name, method, x)
        ]  # fmt: skip

    def build(results: Results) -> Outcome:
        scope = results.scope
        dataset_name = scope.available(dataset)
        assert dataset_name is not None  # else the figure is left out of the plan
        charts = []
        for measure, name in MEASURES.items():
            lines = []
            for method in METHODS:
                summaries = [
                    _best_of_pooled(results, tasks_at(scope, dataset_name, method, x), measure)
                    for x in x_values(scope)
                ]
                lines.append(percent_line(method, x_values(scope), summaries))
            charts.append(Chart(name, x_label, f"{name} (%)", lines))
        notes = stand_in_notes(scope, dataset)
        return Outcome(key, title, caption, charts=charts, notes=notes)

    return Item(key, title, tasks, build)


def _best_of_pooled(results: Results, tasks: list[Task], measure: str) -> ValueSummary:
    """Return the best value on the grid over the trials of several tasks together."""
    scores = [trial for task in tasks for trial in results.store.finished(task).values()]
    return best_on_grid(summarise(scores, measure), tasks[0].method_spec)
