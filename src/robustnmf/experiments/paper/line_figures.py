"""Figures 1 to 6: scores against the hyperparameter, the noise level or the number of clusters."""

from __future__ import annotations

from robustnmf.experiments.paper._base import Item, Scope
from robustnmf.experiments.paper._lines import hyperparameter_figure, series_figure
from robustnmf.experiments.trial import Task

NOISE_LEVELS = (0.02, 0.04, 0.06, 0.08, 0.1)
NOISE_CAPTION = (
    "Mean and standard deviation over the starts, every method at the hyperparameter that scores "
    "best at that level, by the labels."
)
CLASS_COUNTS = tuple(range(2, 11))
CLASSES_CAPTION = (
    "Mean and standard deviation over random subsets of the classes, one start each; all methods "
    "see the same subsets, each at the hyperparameter with the best mean, by the labels."
)


def noise_figure(number: int, dataset: str) -> Item:
    """Make the figure of scores against the noise level on one dataset."""

    def levels(scope: Scope) -> tuple[float, ...]:
        """Return the noise levels; in a quick run the lowest and the highest."""
        return (NOISE_LEVELS[0], NOISE_LEVELS[-1]) if scope.quick else NOISE_LEVELS

    def tasks_at(scope: Scope, dataset: str, method: str, level: float) -> list[Task]:
        """Return the one task of a noise level."""
        return [scope.task(dataset, method, noise=level)]

    return series_figure(
        number, dataset, "scores against the noise level", "noise level c", levels, tasks_at,
        NOISE_CAPTION,
    )  # fmt: skip


def classes_figure(number: int, dataset: str) -> Item:
    """Make the figure of scores against the number of clusters on one dataset."""

    def counts(scope: Scope) -> tuple[int, ...]:
        """Return the numbers of classes; in a quick run two of them."""
        return (2, 4) if scope.quick else CLASS_COUNTS

    def tasks_at(scope: Scope, dataset: str, method: str, count: int) -> list[Task]:
        """Return a task for each random subset of so many classes."""
        draws = range(scope.protocol.starts)
        return [scope.task(dataset, method, subset=(count, draw), starts=1) for draw in draws]

    return series_figure(
        number, dataset, "scores against the number of clusters", "clusters", counts, tasks_at,
        CLASSES_CAPTION,
    )  # fmt: skip


FIGURES: tuple[Item, ...] = (
    hyperparameter_figure(1, "yale", "FWRNMF"),
    hyperparameter_figure(2, "wdbc", "EWRNMF"),
    noise_figure(3, "gtfd"),
    noise_figure(4, "balance"),
    classes_figure(5, "yale"),
    classes_figure(6, "gtfd"),
)
