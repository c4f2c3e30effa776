"""Figures 1 to 6 share their shape: both measures against something, a line for each method."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from robustnmf.datasets import DATASETS
from robustnmf.experiments.methods import METHODS
from robustnmf.experiments.outcome import Chart, Line, Outcome
from robustnmf.experiments.paper._base import Item, Results, Scope, standing_in
from robustnmf.experiments.summary import MEASURES, Level, best, levels
from robustnmf.experiments.trial import Task


def line(name: str, x: Sequence, found: Sequence[Level], *, dashed: bool = False) -> Line:
    """A line of a chart in percent."""
    return Line(
        name, list(x), [100 * f.mean for f in found], [100 * f.deviation for f in found], dashed
    )


def hyperparameter_figure(number: int, dataset: str, method: str) -> Item:
    """Scores against the hyperparameter of a method, with EucNMF as the line to beat."""
    key, knob = f"figure{number}", str(METHODS[method].parameter)
    title = f"Figure {number}: {method} against {knob} on {DATASETS[dataset].title}"

    def tasks(scope: Scope) -> list[Task]:
        taken = scope.of(dataset)
        return [] if taken is None else [scope.task(taken, m) for m in ("EucNMF", method)]

    def build(results: Results) -> Outcome:
        plain, varied = tasks(results.scope)
        grid = [v for v in results.scope.values(varied.how) if v in varied.how.grid]
        charts = []
        for measure, name in MEASURES.items():
            found = results.levels(varied, measure)
            to_beat = results.chosen(plain, measure)
            lines = [
                line(method, grid, [found[value] for value in grid]),
                line("EucNMF", grid, [to_beat] * len(grid), dashed=True),
            ]
            charts.append(Chart(name, knob, f"{name} (%)", lines))
        caption = (
            f"Mean and standard deviation over the starts. The {knob} with the best score is "
            "what Tables 2 and 3 show; it takes the labels to find it."
        )
        notes = standing_in(results.scope, dataset)
        return Outcome(key, title, caption, charts=charts, notes=notes)

    return Item(key, title, tasks, build)


def series_figure(
    number: int,
    dataset: str,
    what: str,
    x_label: str,
    points: Callable[[Scope], Sequence],
    tasks_at: Callable[[Scope, str, str, object], list[Task]],
    caption: str,
) -> Item:
    """Scores of all methods against something, each at its best hyperparameter by the labels."""
    key = f"figure{number}"
    title = f"Figure {number}: {what} on {DATASETS[dataset].title}"

    def tasks(scope: Scope) -> list[Task]:
        taken = scope.of(dataset)
        if taken is None:
            return []
        return [
            task for method in METHODS for at in points(scope)
            for task in tasks_at(scope, taken, method, at)
        ]  # fmt: skip

    def build(results: Results) -> Outcome:
        scope = results.scope
        taken = scope.of(dataset)
        charts = []
        for measure, name in MEASURES.items():
            lines = []
            for method in METHODS:
                found = [
                    _pooled(results, tasks_at(scope, taken, method, at), measure)
                    for at in points(scope)
                ]
                lines.append(line(method, points(scope), found))
            charts.append(Chart(name, x_label, f"{name} (%)", lines))
        notes = standing_in(scope, dataset)
        return Outcome(key, title, caption, charts=charts, notes=notes)

    return Item(key, title, tasks, build)


def _pooled(results: Results, tasks: list[Task], measure: str) -> Level:
    """The best value over the trials of several tasks together."""
    scores = [found for task in tasks for found in results.store.known(task).values()]
    return best(levels(scores, measure), tasks[0].how)
