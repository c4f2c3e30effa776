"""Reproduction of the paper: plan the trials, run the unfinished ones, build tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np

from robustnmf.datasets import DataDir, dataset_called
from robustnmf.experiments.outcome import Outcome
from robustnmf.experiments.paper import ITEMS, Item, Results, Scope
from robustnmf.experiments.paper._base import QUICK_DATASETS, QUICK_PROTOCOL
from robustnmf.experiments.paper.tables import SIZES
from robustnmf.experiments.protocol import PROTOCOL
from robustnmf.experiments.store import Store
from robustnmf.experiments.trial import Point, Task, fit_points, run

Progress = Callable[[str, int, int], None]
"""Called with a description, the number of finished fits or scenarios, and the total."""


def scope_of(
    datasets: Sequence[str] = (), *, quick: bool = False, data_dir: DataDir = None
) -> Scope:
    """Return the scope of a run: the named datasets, or all whose data are on this machine."""
    names = tuple(dict.fromkeys(datasets)) or (QUICK_DATASETS if quick else tuple(SIZES))
    available = tuple(name for name in names if is_available(name, data_dir))
    missing = tuple(name for name in names if name not in available)
    if missing and (datasets or not available):
        # Raises, and says where to get it.
        dataset_called(missing[0]).load(data_dir, download=False)
    protocol = QUICK_PROTOCOL if quick else PROTOCOL
    return Scope(available, protocol, quick=quick, missing=missing, data_dir=data_dir)


def is_available(name: str, data_dir: DataDir) -> bool:
    """Return whether a dataset can be loaded without a download."""
    dataset = dataset_called(name)
    return dataset.made is not None or dataset.path(data_dir) is not None


@dataclass(frozen=True)
class Plan:
    """The items of a run with their trials, and items that are skipped because data are missing."""

    items: tuple[Item, ...]
    scope: Scope
    tasks: tuple[Task, ...]
    left_out: tuple[Item, ...] = ()

    @property
    def fits(self) -> int:
        """Return the number of fits of all tasks."""
        return sum(len(task.parameter_values) * task.n_starts for task in self.tasks)


def plan(keys: Iterable[str], scope: Scope) -> Plan:
    """Plan the trials of tables and figures; tasks that several of them need are planned once."""
    items: list[Item] = []
    left_out: list[Item] = []
    tasks: dict[Task, None] = {}
    for key in keys:
        item = ITEMS[key]
        item_tasks = item.tasks(scope)
        (items if item_tasks or key == "table1" else left_out).append(item)
        tasks |= dict.fromkeys(item_tasks)
    return Plan(tuple(items), scope, tuple(tasks), tuple(left_out))


def reproduce(
    run_plan: Plan,
    store: Store,
    *,
    jobs: int = 1,
    device: str | None = None,
    progress: Progress = lambda what, done, total: None,
) -> list[Outcome]:
    """Run the unfinished trials of a plan, and build its tables and figures."""
    done, total = 0, run_plan.fits
    data_dir = run_plan.scope.data_dir
    batches: dict[tuple[object, ...], list[Task]] = {}
    for task in run_plan.tasks:
        batches.setdefault(task.batch_key, []).append(task)
    for tasks in batches.values():
        points = [point for task in tasks for point in _unfinished(task, store)]
        done += sum(len(task.parameter_values) * task.n_starts for task in tasks)
        done -= len(points) * tasks[0].n_starts
        progress(_describe(tasks), done, total)
        if not points:
            continue
        for batch in run(points, data_dir=data_dir, jobs=jobs, device=device):
            for task, trials in groupby(batch, key=itemgetter(0)):
                store.add(task, [scores for _, scores in trials])
            done += len(batch)
            progress(_describe(tasks), done, total)
    results = Results(store, run_plan.scope)
    for item in run_plan.items:
        for task in item.array_tasks(results):
            if store.arrays(task) is None:
                store.add_arrays(task, _fit_arrays(task, data_dir, device))
    return [item.build(results) for item in run_plan.items]


def _unfinished(task: Task, store: Store) -> list[Point]:
    """Return the points of a task with starts that are not finished."""
    finished = store.finished(task)
    return [
        (task, value) for value in task.parameter_values
        if any((value, start) not in finished for start in range(task.n_starts))
    ]  # fmt: skip


def _describe(tasks: list[Task]) -> str:
    """Describe a batch by its dataset, methods, and number of classes or noise level."""
    task = tasks[0]
    parts = [task.dataset, ", ".join(task.method for task in tasks)]
    if task.subset is not None:
        parts.insert(1, f"{task.subset[0]} classes")
    elif task.noise != task.protocol.noise:
        parts.insert(1, f"noise {task.noise:g}")
    return ", ".join(parts)


def _fit_arrays(task: Task, data_dir: DataDir, device: str | None) -> dict[str, np.ndarray]:
    """Fit the first value of a task once; return codes, basis and objective history."""
    X, y = task.table(data_dir)
    (member,) = fit_points([(task, task.parameter_values[0])], X, len(np.unique(y)), device=device)
    return {
        "codes": member.codes, "basis": member.components, "history": member.objective_history
    }  # fmt: skip
