"""Figures of the paper: scores against a variable (1 to 6), and single fits (7 to 9)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from robustnmf.datasets import DATASETS
from robustnmf.experiments.outcome import Chart, Images, Line, Outcome
from robustnmf.experiments.paper._base import (
    MEASURES,
    Item,
    Results,
    Scope,
    ValueSummary,
    best_on_grid,
)
from robustnmf.experiments.protocol import METHODS
from robustnmf.experiments.trial import Task

SHOWN_SAMPLES, SHOWN_COMPONENTS = 600, 20
"""Maximum number of samples of a class in Figure 7, and of components in Figure 9."""


class Figure(Item):
    """A figure on one dataset; subclasses choose the tasks and draw the panels."""

    def __init__(self, number: int, dataset: str, subject: str, caption: str):
        title = f"Figure {number}: {subject} on {DATASETS[dataset].title}"
        super().__init__(f"figure{number}", title, caption)
        self.dataset = dataset

    def tasks(self, scope: Scope) -> list[Task]:
        name = scope.available(self.dataset)
        return [] if name is None else self.tasks_on(scope, name)

    def build(self, results: Results) -> Outcome:
        name = results.scope.available(self.dataset)
        assert name is not None  # otherwise the figure is not planned
        panels = self.panels(results, name)
        ours, papers = DATASETS[name].title, DATASETS[self.dataset].title
        note = f"A quick run: {ours} stands in for the paper's {papers}."
        return Outcome(
            self.key, self.title, self.caption,
            charts=[panel for panel in panels if isinstance(panel, Chart)],
            images=[panel for panel in panels if isinstance(panel, Images)],
            notes=() if name == self.dataset else (note,),
        )  # fmt: skip

    @abstractmethod
    def tasks_on(self, scope: Scope, dataset: str) -> list[Task]:
        """Return the tasks on an available dataset."""

    @abstractmethod
    def panels(self, results: Results, dataset: str) -> Sequence[Chart | Images]:
        """Draw the panels from the results on a dataset."""


class HyperparameterFigure(Figure):
    """Scores of a method against its hyperparameter, compared with EucNMF."""

    def __init__(self, number: int, dataset: str, method: str):
        self.method, self.parameter = METHODS[method], str(METHODS[method].parameter)
        caption = (
            f"Mean and standard deviation over the starts. Tables 2 and 3 show the best "
            f"{self.parameter}, which can only be found with the labels."
        )
        super().__init__(number, dataset, f"{method} against {self.parameter}", caption)

    def tasks_on(self, scope: Scope, dataset: str) -> list[Task]:
        return [scope.task(dataset, name) for name in ("EucNMF", self.method.name)]

    def panels(self, results: Results, dataset: str) -> list[Chart]:
        plain_task, task = self.tasks_on(results.scope, dataset)
        values = [value for value in self.method.grid if value in task.parameter_values]
        charts = []
        for measure, name in MEASURES.items():
            summaries = results.summaries([task], measure)
            plain = results.selection(plain_task, measure)
            lines = [
                percent_line(task.method, values, [summaries[value] for value in values]),
                percent_line("EucNMF", values, [plain] * len(values), dashed=True),
            ]
            charts.append(Chart(name, self.parameter, f"{name} (%)", lines))
        return charts


class SeriesFigure(Figure):
    """Scores of all methods against x, each at its best hyperparameter."""

    subject: str
    about: str  # what the means are over, and how hyperparameters are chosen
    x_label: str
    values: Sequence[float]
    quick_values: Sequence[float]

    def __init__(self, number: int, dataset: str):
        super().__init__(number, dataset, self.subject, f"Mean and standard deviation {self.about}")

    def x_values(self, scope: Scope) -> Sequence[float]:
        """Return the values of x."""
        return self.quick_values if scope.quick else self.values

    @abstractmethod
    def tasks_at(self, scope: Scope, dataset: str, method: str, x: float) -> list[Task]:
        """Return the tasks of a method at one x; their trials are pooled."""

    def tasks_on(self, scope: Scope, dataset: str) -> list[Task]:
        return [
            task for method in METHODS for x in self.x_values(scope)
            for task in self.tasks_at(scope, dataset, method, x)
        ]  # fmt: skip

    def panels(self, results: Results, dataset: str) -> list[Chart]:
        x_values = self.x_values(results.scope)
        charts = []
        for measure, name in MEASURES.items():
            lines = []
            for method, spec in METHODS.items():
                pooled = (self.tasks_at(results.scope, dataset, method, x) for x in x_values)
                best = [best_on_grid(results.summaries(tasks, measure), spec) for tasks in pooled]
                lines.append(percent_line(method, x_values, best))
            charts.append(Chart(name, self.x_label, f"{name} (%)", lines))
        return charts


class NoiseFigure(SeriesFigure):
    """Scores against the noise level."""

    subject, x_label = "scores against the noise level", "noise level c"
    about = (
        "over the starts, every method at the hyperparameter that scores best at that level, by "
        "the labels."
    )
    values, quick_values = (0.02, 0.04, 0.06, 0.08, 0.1), (0.02, 0.1)

    def tasks_at(self, scope: Scope, dataset: str, method: str, x: float) -> list[Task]:
        return [scope.task(dataset, method, noise=x)]


class ClassesFigure(SeriesFigure):
    """Scores against the number of clusters, on random subsets of the classes."""

    subject, x_label = "scores against the number of clusters", "clusters"
    about = (
        "over random subsets of the classes, one start each; all methods see the same subsets, "
        "each at the hyperparameter with the best mean, by the labels."
    )
    values, quick_values = range(2, 11), (2, 4)

    def tasks_at(self, scope: Scope, dataset: str, method: str, x: float) -> list[Task]:
        draws = range(scope.protocol.starts)
        return [scope.task(dataset, method, subset=(int(x), draw), starts=1) for draw in draws]


DrawPanel = Callable[[Results, Task, str, dict[str, np.ndarray]], Chart | Images]
"""Draws a panel with a title from the codes, basis and history of a task's fit."""


class FitsFigure(Figure):
    """A panel for each method: its first start with the hyperparameter that Table 2 shows."""

    def __init__(self, number: int, dataset: str, subject: str, caption: str, draw: DrawPanel):
        super().__init__(number, dataset, subject, caption)
        self.draw = draw

    def tasks_on(self, scope: Scope, dataset: str) -> list[Task]:
        return [scope.task(dataset, method) for method in METHODS]

    def array_tasks(self, results: Results) -> list[Task]:
        return [
            replace(task, values=(results.selection(task, "accuracy").value,), starts=1)
            for task in self.tasks(results.scope)
        ]

    def panels(self, results: Results, dataset: str) -> list[Chart | Images]:
        panels = []
        for task in self.array_tasks(results):
            arrays = results.store.arrays(task)
            assert arrays is not None
            (value,) = task.parameter_values
            suffix = "" if value is None else f", {task.method_spec.parameter} = {value:g}"
            panels.append(self.draw(results, task, f"{task.method}{suffix}", arrays))
        return panels


def draw_codes(results: Results, task: Task, title: str, arrays: dict[str, np.ndarray]) -> Chart:
    """Draw up to ``SHOWN_SAMPLES`` random samples of each class in a scatter plot."""
    codes = arrays["codes"]
    _, labels = task.table(results.scope.data_dir)
    rng = np.random.default_rng(0)
    lines = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        rows = np.sort(rng.permutation(rows)[:SHOWN_SAMPLES])
        first, second = (codes[rows, j].round(6).tolist() for j in (0, 1))
        lines.append(Line(f"class {label}", first, second))
    return Chart(title, "first code", "second code", lines, scatter=True)


def draw_history(results: Results, task: Task, title: str, arrays: dict[str, np.ndarray]) -> Chart:
    """Draw the objective at every iteration up to 50, then at 60 evenly spaced on a log scale."""
    history = arrays["history"]
    late = np.geomspace(50, len(history) - 1, 60).round().astype(int)
    iterations = np.unique(np.concatenate([np.arange(min(50, len(history))), late]))
    iterations = iterations[iterations < len(history)]
    objective = Line("objective", iterations.tolist(), history[iterations].tolist())
    return Chart(title, "iteration", "objective", [objective])


def draw_basis(results: Results, task: Task, title: str, arrays: dict[str, np.ndarray]) -> Images:
    """Draw the first components as images, each divided by its largest pixel."""
    shape = DATASETS[task.dataset].image_shape
    assert shape is not None
    basis = arrays["basis"][:SHOWN_COMPONENTS]
    largest = np.maximum(basis.max(axis=1, keepdims=True), 1e-300)
    # Pixels are stored column by column.
    return Images(title, (basis / largest).reshape(len(basis), *shape).transpose(0, 2, 1))


def percent_line(
    name: str, x: Sequence[float], summaries: Sequence[ValueSummary], *, dashed: bool = False
) -> Line:
    """Make a line of means in percent, with standard deviations as errors."""
    means = [100 * summary.mean for summary in summaries]
    deviations = [100 * summary.deviation for summary in summaries]
    return Line(name, list(x), means, deviations, dashed)


CODES_CAPTION = f"The two codes of up to {SHOWN_SAMPLES} samples of each class, first start."
HISTORY_CAPTION = "The objective of each method after every iteration, first start."
BASIS_CAPTION = (
    f"The first {SHOWN_COMPONENTS} components of each method as images, each over its largest "
    "pixel; first start."
)

FIGURES: tuple[Figure, ...] = (
    HyperparameterFigure(1, "yale", "FWRNMF"),
    HyperparameterFigure(2, "wdbc", "EWRNMF"),
    NoiseFigure(3, "gtfd"),
    NoiseFigure(4, "balance"),
    ClassesFigure(5, "yale"),
    ClassesFigure(6, "gtfd"),
    FitsFigure(7, "dimdata", "codes", CODES_CAPTION, draw_codes),
    FitsFigure(8, "orl", "objective", HISTORY_CAPTION, draw_history),
    FitsFigure(9, "orl", "base images", BASIS_CAPTION, draw_basis),
)
