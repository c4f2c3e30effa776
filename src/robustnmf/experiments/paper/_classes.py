"""Scores against the number of clusters, on random subsets of the classes."""

from __future__ import annotations

from robustnmf.experiments.paper._base import Item, Scope
from robustnmf.experiments.paper._lines import series_figure
from robustnmf.experiments.trial import Task

COUNTS = tuple(range(2, 11))
CAPTION = (
    "Mean and standard deviation over random subsets of the classes, one start each; all methods "
    "see the same subsets, each at the hyperparameter with the best mean, by the labels."
)


def counts(scope: Scope) -> tuple[int, ...]:
    """Of a quick run only a few."""
    return (2, 4) if scope.quick else COUNTS


def tasks_at(scope: Scope, dataset: str, method: str, count: object) -> list[Task]:
    """A task for each subset."""
    draws = range(scope.protocol.starts)
    return [scope.task(dataset, method, subset=(count, draw), starts=1) for draw in draws]


def classes_figure(number: int, dataset: str) -> Item:
    """The figure of one dataset."""
    return series_figure(
        number, dataset, "scores against the number of clusters", "clusters", counts, tasks_at,
        CAPTION,
    )  # fmt: skip
