"""Trials turned into the numbers of a table: choice of the hyperparameter, mean, spread, marks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from robustnmf.experiments.methods import Method, ParameterValue
from robustnmf.experiments.trial import Scores

MEASURES = {"accuracy": "ACC", "information": "NMI"}
ONE_CLUSTER = 0.95
LARGEST_CLASS = 0.005

MARKS = {
    "one": "one cluster holds over 95% of the samples, from at least one start",
    "class": "the accuracy is within half a point of the share of the largest class",
    "few": "the effective sample size is below the rank, from at least one start: a few samples "
    "have all the say",
}
"""What the marks of cells mean."""


@dataclass(frozen=True)
class ValueSummary:
    """One measure for one value of the hyperparameter over all starts, as a share of one."""

    value: ParameterValue
    mean: float
    deviation: float
    effective_sample_sizes: tuple[float, ...]
    largest_clusters: tuple[float, ...]

    @property
    def starts(self) -> int:
        """Return the number of starts."""
        return len(self.largest_clusters)

    @property
    def effective_sample_size(self) -> float:
        """Return the mean effective sample size over the starts."""
        return float(np.mean(self.effective_sample_sizes))

    @property
    def largest_cluster(self) -> float:
        """Return the mean share of the largest cluster over the starts."""
        return float(np.mean(self.largest_clusters))

    @property
    def one_cluster_starts(self) -> int:
        """Count the starts from which one cluster holds over ``ONE_CLUSTER`` of the samples."""
        return sum(share > ONE_CLUSTER for share in self.largest_clusters)

    def collapsed_starts(self, rank: int) -> int:
        """Count the starts from which the effective sample size is below the rank."""
        return sum(size < rank for size in self.effective_sample_sizes)


Summaries = dict[ParameterValue, ValueSummary]
"""Summaries by value of the hyperparameter."""


def summarise(scores: Iterable[Scores], measure: str) -> Summaries:
    """Summarise one measure of trials, by value of the hyperparameter."""
    groups: dict[ParameterValue, list[Scores]] = {}
    for trial in scores:
        groups.setdefault(trial.value, []).append(trial)
    return {value: _summarise_value(value, group, measure) for value, group in groups.items()}


def _summarise_value(value: ParameterValue, group: list[Scores], measure: str) -> ValueSummary:
    numbers = np.array([getattr(trial, measure) for trial in group])
    return ValueSummary(
        value,
        float(numbers.mean()),
        float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0,
        tuple(trial.effective_sample_size for trial in group),
        tuple(trial.largest_cluster for trial in group),
    )


def best_on_grid(summaries: Summaries, method: Method) -> ValueSummary:
    """Return the value of the grid with the best score by the labels, as the paper chooses."""
    grid = [summaries[value] for value in (method.grid or (None,)) if value in summaries]
    return max(grid, key=lambda summary: summary.mean)


def at_default(summaries: Summaries, method: Method) -> ValueSummary:
    """Return the default value of the method, which needs no labels."""
    return summaries[method.default]


def marks(summary: ValueSummary, measure: str, largest_class: float, rank: int) -> tuple[str, ...]:
    """Return the names of the ``MARKS`` that apply: reasons why a score may say little."""
    names = []
    if summary.one_cluster_starts:
        names.append("one")
    if measure == "accuracy" and abs(summary.mean - largest_class) <= LARGEST_CLASS:
        names.append("class")
    if summary.collapsed_starts(rank):
        names.append("few")
    return tuple(names)
