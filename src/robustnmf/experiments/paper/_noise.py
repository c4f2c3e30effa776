"""Scores against the level of the noise."""

from __future__ import annotations

from robustnmf.experiments.paper._base import Item, Scope
from robustnmf.experiments.paper._lines import series_figure
from robustnmf.experiments.trial import Task

LEVELS = (0.02, 0.04, 0.06, 0.08, 0.1)
CAPTION = (
    "Mean and standard deviation over the starts, every method at the hyperparameter that scores "
    "best at that level, by the labels."
)


def levels(scope: Scope) -> tuple[float, ...]:
    """Of a quick run only the ends."""
    return (LEVELS[0], LEVELS[-1]) if scope.quick else LEVELS


def tasks_at(scope: Scope, dataset: str, method: str, level: object) -> list[Task]:
    """The one task of a level."""
    return [scope.task(dataset, method, noise=level)]


def noise_figure(number: int, dataset: str) -> Item:
    """The figure of one dataset."""
    return series_figure(
        number, dataset, "scores against the noise level", "noise level c", levels, tasks_at,
        CAPTION,
    )  # fmt: skip
