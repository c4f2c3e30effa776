"""What tables and figures of the paper have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from robustnmf.datasets import DATASETS, load_dataset
from robustnmf.experiments.methods import METHODS, Method
from robustnmf.experiments.outcome import Outcome
from robustnmf.experiments.protocol import PROTOCOL, Protocol
from robustnmf.experiments.store import Store
from robustnmf.experiments.summary import Level, best, blind, levels
from robustnmf.experiments.trial import Task
from robustnmf.metrics import largest_cluster_share

STAND_INS = {"yale": "digits", "orl": "digits", "gtfd": "digits", "dimdata": "wdbc"}
"""What a quick run takes instead of data that need a file."""

QUICK_DATASETS = ("balance", "wdbc", "digits")
QUICK_PROTOCOL = PROTOCOL.but(starts=3)


@dataclass(frozen=True)
class Scope:
    """How much of the paper a run covers.

    ``missing`` are datasets that were asked for and are not there.
    """

    datasets: tuple[str, ...]
    protocol: Protocol = PROTOCOL
    quick: bool = False
    missing: tuple[str, ...] = ()
    data_dir: Any = field(default=None, compare=False)

    def of(self, dataset: str) -> str | None:
        """The dataset of a figure, or what stands in for it; None where there is neither."""
        taken = STAND_INS.get(dataset, dataset) if self.quick else dataset
        return taken if taken in self.datasets else None

    def values(self, method: Method) -> tuple:
        """Values of the hyperparameter: of a quick run, a third of the grid and the default."""
        if not self.quick or method.parameter is None:
            return method.values
        return tuple(dict.fromkeys((*method.grid[1::3], method.default)))

    def task(self, dataset: str, method: str, **more: Any) -> Task:
        """A task of this run."""
        settings = {"noise": self.protocol.noise, "values": self.values(METHODS[method]), **more}
        return Task(dataset, method, protocol=self.protocol, **settings)


@dataclass(frozen=True)
class Results:
    """Finished trials, asked for by task."""

    store: Store
    scope: Scope

    def levels(self, task: Task, measure: str) -> dict[Any, Level]:
        """Scores of every value of a task."""
        return levels(self.store.known(task).values(), measure)

    def chosen(self, task: Task, measure: str, *, by_labels: bool = True) -> Level:
        """The value of a task that is shown."""
        return (best if by_labels else blind)(self.levels(task, measure), task.how)


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper.

    ``tasks`` lists the trials it needs; ``build`` turns them into what is shown. ``extra`` tells
    which arrays (codes, histories, basis) of tasks it needs beside scores, once these are there.
    """

    key: str
    title: str
    tasks: Callable[[Scope], list[Task]]
    build: Callable[[Results], Outcome]
    extra: Callable[[Results], list[Task]] = field(default=lambda results: [])


def percent(level: Level) -> str:
    """Mean and deviation as people write them."""
    return f"{100 * level.mean:.2f} ± {100 * level.deviation:.2f}"


def largest_class(dataset: str, data_dir: Any = None) -> float:
    """Share of the samples in the largest class."""
    return largest_cluster_share(load_dataset(dataset, data_dir).target)


def standing_in(scope: Scope, dataset: str) -> tuple[str, ...]:
    """A note where other data stand in for the paper's."""
    taken = scope.of(dataset)
    if taken == dataset or taken is None:
        return ()
    told = DATASETS[taken].title
    return (f"A quick run: {told} stands in for the paper's {DATASETS[dataset].title}.",)
