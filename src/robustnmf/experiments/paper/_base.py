"""Scope, results and items: the types that tables and figures of the paper share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from robustnmf.datasets import DATASETS, load_dataset
from robustnmf.datasets._base import DataDir
from robustnmf.experiments.methods import METHODS, Method, ParameterValue
from robustnmf.experiments.outcome import Outcome
from robustnmf.experiments.protocol import PROTOCOL, Protocol
from robustnmf.experiments.store import Store
from robustnmf.experiments.summary import (
    Summaries,
    ValueSummary,
    at_default,
    best_on_grid,
    summarise,
)
from robustnmf.experiments.trial import Task
from robustnmf.metrics import largest_cluster_share

STAND_INS = {"yale": "digits", "orl": "digits", "gtfd": "digits", "dimdata": "wdbc"}
"""Datasets that replace those that need a file in a quick run."""

QUICK_DATASETS = ("balance", "wdbc", "digits")
QUICK_PROTOCOL = PROTOCOL.but(starts=3)


@dataclass(frozen=True)
class Scope:
    """How much of the paper a run covers.

    ``missing`` are requested datasets whose data are not on this machine.
    """

    datasets: tuple[str, ...]
    protocol: Protocol = PROTOCOL
    quick: bool = False
    missing: tuple[str, ...] = ()
    data_dir: DataDir = field(default=None, compare=False)

    def available(self, dataset: str) -> str | None:
        """Return a dataset, or its stand-in in a quick run; None where its data are missing."""
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
class Results:
    """Finished trials of a run, by task."""

    store: Store
    scope: Scope

    def summaries(self, task: Task, measure: str) -> Summaries:
        """Summarise one measure of a task, by value of the hyperparameter."""
        return summarise(self.store.finished(task).values(), measure)

    def selection(self, task: Task, measure: str, *, by_labels: bool = True) -> ValueSummary:
        """Return the summary of the value that is shown: the best by the labels, or the default."""
        select = best_on_grid if by_labels else at_default
        return select(self.summaries(task, measure), task.method_spec)


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper.

    ``tasks`` returns the tasks whose scores it needs, and ``build`` makes its outcome from them.
    ``array_tasks`` returns, once these are finished, the tasks whose arrays (codes, basis, history)
    it needs too.
    """

    key: str
    title: str
    tasks: Callable[[Scope], list[Task]]
    build: Callable[[Results], Outcome]
    array_tasks: Callable[[Results], list[Task]] = field(default=lambda results: [])


def format_percent(summary: ValueSummary) -> str:
    """Format mean and standard deviation in percent."""
    return f"{100 * summary.mean:.2f} ± {100 * summary.deviation:.2f}"


def largest_class(dataset: str, data_dir: DataDir = None) -> float:
    """Return the share of the samples in the largest class."""
    return largest_cluster_share(load_dataset(dataset, data_dir).target)


def stand_in_notes(scope: Scope, dataset: str) -> tuple[str, ...]:
    """Return a note where a stand-in replaces the paper's dataset."""
    name = scope.available(dataset)
    if name == dataset or name is None:
        return ()
    return (
        f"A quick run: {DATASETS[name].title} stands in for the paper's {DATASETS[dataset].title}.",
    )
