"""The paper, reproduced: plan the trials, run those that are not finished, show what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from robustnmf.datasets import dataset_called
from robustnmf.experiments.outcome import Outcome
from robustnmf.experiments.paper import ITEMS, Item, Results, Scope
from robustnmf.experiments.paper._base import QUICK_DATASETS, QUICK_PROTOCOL
from robustnmf.experiments.paper.published import DATASETS as PAPER_DATASETS
from robustnmf.experiments.store import Store
from robustnmf.experiments.trial import Point, Task, fitted, run

Progress = Callable[[str, int, int], None]
"""Told what is being worked on, and how many fits of how many are done."""


def scope_of(datasets: Sequence[str] = (), *, quick: bool = False, data_dir: Any = None) -> Scope:
    """What a run covers: the datasets that were asked for, or all that are here."""
    asked = tuple(dict.fromkeys(datasets)) or (QUICK_DATASETS if quick else PAPER_DATASETS)
    here = tuple(name for name in asked if is_here(name, data_dir))
    missing = tuple(name for name in asked if name not in here)
    if missing and (datasets or not here):
        dataset_called(missing[0]).load(data_dir, download=False)  # says where to get it
    settings = {"protocol": QUICK_PROTOCOL} if quick else {}
    return Scope(here, quick=quick, missing=missing, data_dir=data_dir, **settings)


def is_here(name: str, data_dir: Any) -> bool:
    """Whether the data of a dataset can be had without a download."""
    dataset = dataset_called(name)
    return dataset.made is not None or dataset.path(data_dir) is not None


@dataclass(frozen=True)
class Plan:
    """The items of a run and the trials behind them; and items for which there are no data."""

    items: tuple[Item, ...]
    scope: Scope
    tasks: tuple[Task, ...]
    left_out: tuple[Item, ...] = ()

    @property
    def fits(self) -> int:
        """Number of fits behind it all."""
        return sum(len(task.asked) * task.n_starts for task in self.tasks)


def plan(keys: Iterable[str], scope: Scope) -> Plan:
    """The trials that some tables and figures need, each once."""
    items, left_out = [], []
    tasks: dict[Task, None] = {}
    for key in keys:
        item = ITEMS[key]
        needed = item.tasks(scope)
        (items if needed or key == "table1" else left_out).append(item)
        tasks |= dict.fromkeys(needed)
    return Plan(tuple(items), scope, tuple(tasks), tuple(left_out))


def reproduce(
    wanted: Plan,
    store: Store,
    *,
    jobs: int = 1,
    device: str | None = None,
    progress: Progress = lambda what, done, total: None,
) -> list[Outcome]:
    """Run what is not finished, and build all tables and figures."""
    done, total = 0, wanted.fits
    data_dir = wanted.scope.data_dir
    for tasks in _batches(wanted.tasks):
        points = [point for task in tasks for point in _unfinished(task, store)]
        done += sum(len(task.asked) * task.n_starts for task in tasks)
        done -= len(points) * tasks[0].n_starts
        progress(_told(tasks), done, total)
        if not points:
            continue
        for found in run(points, data_dir=data_dir, jobs=jobs, device=device):
            for task, trials in groupby(found, key=itemgetter(0)):
                store.add(task, [scores for _, scores in trials])
            done += len(found)
            progress(_told(tasks), done, total)
    results = Results(store, wanted.scope)
    for item in wanted.items:
        for task in item.extra(results):
            if store.arrays(task) is None:
                store.add_arrays(task, _arrays(task, data_dir, device))
    return [item.build(results) for item in wanted.items]


def _batches(tasks: Iterable[Task]) -> list[list[Task]]:
    """Tasks that can be fitted as one batch, together."""
    found: dict[tuple, list[Task]] = {}
    for task in tasks:
        found.setdefault(task.batch, []).append(task)
    return list(found.values())


def _unfinished(task: Task, store: Store) -> list[Point]:
    """The values of a task of which some start is missing."""
    known = store.known(task)
    return [
        (task, value) for value in task.asked
        if any((value, start) not in known for start in range(task.n_starts))
    ]  # fmt: skip


def _told(tasks: list[Task]) -> str:
    task = tasks[0]
    parts = [task.dataset, ", ".join(task.method for task in tasks)]
    if task.subset is not None:
        parts.insert(1, f"{task.subset[0]} classes")
    elif task.noise != task.protocol.noise:
        parts.insert(1, f"noise {task.noise:g}")
    return ", ".join(parts)


def _arrays(task: Task, data_dir: Any, device: str | None) -> dict[str, np.ndarray]:
    """What figures show of a single fit."""
    X, y = task.table(data_dir)
    (member,) = fitted([(task, task.asked[0])], X, len(np.unique(y)), device=device)
    return {
        "codes": member.codes, "basis": member.components, "history": member.objective_history
    }  # fmt: skip
