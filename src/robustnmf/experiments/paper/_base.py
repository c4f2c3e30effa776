"""Base of the tables and figures of the paper: scope of a run, its results, items."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from robustnmf.datasets import DataDir
from robustnmf.experiments.outcome import Outcome
from robustnmf.experiments.protocol import METHODS, PROTOCOL, Method, ParameterValue, Protocol
from robustnmf.experiments.store import Store
from robustnmf.experiments.trial import Scores, Task

MEASURES = {"accuracy": "ACC", "information": "NMI"}
ONE_CLUSTER = 0.95
"""A start has almost all samples in one cluster if its share is larger."""

STAND_INS = {"yale": "digits", "orl": "digits", "gtfd": "digits", "dimdata": "wdbc"}
"""Datasets that replace datasets with files in a quick run."""

QUICK_DATASETS = ("balance", "wdbc", "digits")
QUICK_PROTOCOL = replace(PROTOCOL, starts=3)


@dataclass(frozen=True)
class Scope:
    """The datasets and settings of a run.

    ``missing`` are requested datasets whose data are not on this machine.
    """

    datasets: tuple[str, ...]
    protocol: Protocol = PROTOCOL
    quick: bool = False
    missing: tuple[str, ...] = ()
    data_dir: DataDir = None

    def available(self, dataset: str) -> str | None:
        """Return a dataset, or its stand-in in a quick run; None if its data are missing."""
        name = STAND_INS.get(dataset, dataset) if self.quick else dataset
        return name if name in self.datasets else None

    def values(self, method: Method) -> tuple[ParameterValue, ...]:
        """Return the values of the hyperparameter; a quick run has a third of the grid."""
        if not self.quick or method.parameter is None:
            return method.values
        return tuple(dict.fromkeys((*method.grid[1::3], method.default)))

    def task(
        self,
        dataset: str,
        method: str,
        *,
        noise: float | None = None,
        subset: tuple[int, int] | None = None,
        starts: int | None = None,
    ) -> Task:
        """Make a task of this run; noise and number of starts are the protocol's by default."""
        noise = self.protocol.noise if noise is None else noise
        values = self.values(METHODS[method])
        return Task(dataset, method, noise, subset, starts, values, self.protocol)


@dataclass(frozen=True)
class ValueSummary:
    """One measure for one value of the hyperparameter over all starts, as a share of one."""

    value: ParameterValue
    mean: float
    deviation: float
    effective_sample_sizes: tuple[float, ...]
    largest_clusters: tuple[float, ...]

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
        """Count the starts with more than ``ONE_CLUSTER`` of the samples in one cluster."""
        return sum(share > ONE_CLUSTER for share in self.largest_clusters)

    def collapsed_starts(self, rank: int) -> int:
        """Count the starts with an effective sample size below the number of components."""
        return sum(size < rank for size in self.effective_sample_sizes)


Summaries = dict[ParameterValue, ValueSummary]
"""Summaries by value of the hyperparameter."""


def summarise(scores: Iterable[Scores], measure: str) -> Summaries:
    """Summarise one measure of trials, by value of the hyperparameter."""
    groups: dict[ParameterValue, list[Scores]] = {}
    for trial in scores:
        groups.setdefault(trial.value, []).append(trial)
    summaries = {}
    for value, group in groups.items():
        numbers = np.array([getattr(trial, measure) for trial in group])
        summaries[value] = ValueSummary(
            value,
            float(numbers.mean()),
            float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0,
            tuple(trial.effective_sample_size for trial in group),
            tuple(trial.largest_cluster for trial in group),
        )
    return summaries


def best_on_grid(summaries: Summaries, method: Method) -> ValueSummary:
    """Return the value of the grid with the best score by the labels, as the paper chooses."""
    grid = [summaries[value] for value in (method.grid or (None,)) if value in summaries]
    return max(grid, key=lambda summary: summary.mean)


@dataclass(frozen=True)
class Results:
    """Finished trials of a run, by task."""

    store: Store
    scope: Scope

    def summaries(self, tasks: Iterable[Task], measure: str) -> Summaries:
        """Summarise one measure of tasks together, by value of the hyperparameter."""
        scores = (trial for task in tasks for trial in self.store.finished(task).values())
        return summarise(scores, measure)

    def selection(self, task: Task, measure: str, *, by_labels: bool = True) -> ValueSummary:
        """Return the summary of the value to show: the best by the labels, or the default."""
        summaries = self.summaries([task], measure)
        method = task.method_spec
        return best_on_grid(summaries, method) if by_labels else summaries[method.default]


@dataclass(eq=False)
class Item(ABC):
    """A table or figure of the paper, made from the scores of its tasks."""

    key: str
    title: str
    caption: str

    def tasks(self, scope: Scope) -> list[Task]:
        """Return the tasks whose scores are needed."""
        return []

    def array_tasks(self, results: Results) -> list[Task]:
        """Return the tasks whose codes, basis and history are needed, given all scores."""
        return []

    @abstractmethod
    def build(self, results: Results) -> Outcome:
        """Make the table or figure."""
