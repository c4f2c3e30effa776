"""Trials: one method with one hyperparameter from one start on one table, and its scores.

Trials that share a table and a method are a :class:`Task`, fitted as one batch.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from robustnmf.datasets import load_dataset
from robustnmf.estimators.path import PathMember, fit_path
from robustnmf.experiments.methods import METHODS, Method
from robustnmf.experiments.protocol import PROTOCOL, Protocol, unit_rows
from robustnmf.metrics import (
    clustering_accuracy,
    largest_cluster_share,
    n_clusters,
    normalized_mutual_info,
)

BATCH_BYTES, DEVICE_BYTES = 2**30, 2**34
IDLE_SECONDS = 30
AT_ONCE = 50
"""Members of a batch in NumPy; if a run is killed, no more than these are lost."""


@dataclass(frozen=True)
class Task:
    """A table and a method.

    ``subset`` is (number of classes, number of the draw) where only some classes, drawn at random,
    take part.
    """

    dataset: str
    method: str
    noise: float
    subset: tuple[int, int] | None = None
    starts: int | None = None
    values: tuple[float | str | None, ...] | None = None
    protocol: Protocol = PROTOCOL

    @property
    def how(self) -> Method:
        """The method."""
        return METHODS[self.method]

    @property
    def n_starts(self) -> int:
        """Starts of every value."""
        return self.protocol.starts if self.starts is None else self.starts

    @property
    def asked(self) -> tuple[float | str | None, ...]:
        """Values of the hyperparameter."""
        return self.how.values if self.values is None else self.values

    @property
    def per_entry(self) -> bool:
        """Whether entries have weights of their own."""
        return self.how.make(self.asked[0]).per_entry

    @property
    def batch(self) -> tuple:
        """Tasks that have this in common can be fitted as one batch."""
        return (
            self.dataset, self.noise, self.subset, self.n_starts, self.protocol,
            self.how.structure, self.per_entry,
        )  # fmt: skip

    @property
    def specification(self) -> dict[str, Any]:
        """All that the scores of this task depend on, but the code, the value and the start."""
        settings = asdict(self.protocol) | {
            "scaling": self.protocol.scaling_of(self.dataset),
            "noise": self.noise,
        }
        del settings["starts"]
        subset = list(self.subset) if self.subset else None
        return {"dataset": self.dataset, "method": self.method, "subset": subset, **settings}

    def table(self, data_dir: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The noisy table and its labels."""
        found = load_dataset(self.dataset, data_dir)
        data, target = found.data, found.target
        if self.subset is not None:
            count, draw = self.subset
            rng = np.random.default_rng([self.protocol.seed, count, draw])
            chosen = rng.choice(int(target.max()) + 1, size=count, replace=False)
            keep = np.isin(target, chosen)
            data, target = data[keep], target[keep]
        return self.protocol.table(self.dataset, data, self.noise), target


@dataclass(frozen=True)
class Scores:
    """What a trial gives; ``seconds`` is its share of the time its batch took to fit."""

    value: float | str | None
    start: int
    accuracy: float
    information: float
    effective_sample_size: float
    largest_cluster: float
    clusters: int
    objective: float
    seconds: float = 0.0
    machine: str = ""


Point = tuple[Task, float | str | None]
"""A task and a value of its hyperparameter; all starts of it are fitted together."""


def run(
    points: Sequence[Point], *, data_dir: Any = None, jobs: int = 1, device: str | None = None
) -> Iterator[list[tuple[Task, Scores]]]:
    """Fit and score points that can share a batch; one batch after the other."""
    first = points[0][0]
    X, y = first.table(data_dir)
    size = _points_at_once(first, X, device) or len(points)
    machine = machine_of(device)
    for at in range(0, len(points), size):
        chosen = points[at : at + size]
        begin = time.perf_counter()
        members = fitted(chosen, X, len(np.unique(y)), device=device)
        seconds = (time.perf_counter() - begin) / len(members)
        of_members = [point for point in chosen for _ in range(first.n_starts)]
        scores = scored(first.protocol, members, y, jobs)
        yield [
            (task, replace(found, value=value, seconds=seconds, machine=machine))
            for (task, value), found in zip(of_members, scores, strict=True)
        ]


def machine_of(device: str | None) -> str:
    """What computes the fits, in words."""
    if device is None:
        return f"CPU, {os.cpu_count()} cores, NumPy {np.__version__}"
    import torch

    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    return f"{name}, PyTorch {torch.__version__}"


def fitted(
    points: Sequence[Point], X: np.ndarray, rank: int, *, device: str | None = None
) -> list[PathMember]:
    """Members of these points, starts within."""
    task = points[0][0]
    protocol = task.protocol
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of collapse: effective sample sizes are in the table
        return fit_path(
            X,
            rank,
            weightings=[task.how.make(value) for task, value in points],
            n_init=task.n_starts,
            structure=task.how.structure,
            solver="mu",
            init="random",
            tol=0,
            max_iter=protocol.iterations,
            random_state=protocol.seed + (task.subset[1] if task.subset else 0),
            device=device,
        )


def scored(
    protocol: Protocol, members: list[PathMember], y: np.ndarray, jobs: int = 1
) -> list[Scores]:
    """Scores of members, k-means in processes."""
    count = len(np.unique(y))
    # Codes are small and need no files; workers whose run was killed must not stay for long.
    with parallel_config("loky", n_jobs=jobs, max_nbytes=None, idle_worker_timeout=IDLE_SECONDS):
        labels = Parallel()(
            delayed(clustered)(member.codes, count, protocol, member.start) for member in members
        )
    return [
        Scores(
            None,
            member.start,
            clustering_accuracy(y, found),
            normalized_mutual_info(y, found),
            float(member.effective_sample_size),
            largest_cluster_share(found),
            n_clusters(found),
            float(member.objective),
        )
        for member, found in zip(members, labels, strict=True)
    ]


def clustered(codes: np.ndarray, count: int, protocol: Protocol, start: int) -> np.ndarray:
    """Clusters of the codes by k-means."""
    table = unit_rows(codes) if protocol.codes == "unit" else codes
    model = KMeans(
        count,
        init=protocol.kmeans_init,
        n_init=protocol.kmeans_starts,
        random_state=protocol.seed + start,
    )
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # of fewer distinct points than clusters
        return model.fit_predict(table)


def _points_at_once(task: Task, X: np.ndarray, device: str | None) -> int | None:
    """How many points make a batch: what fits into memory, and is no great loss; None is all."""
    if task.per_entry:  # a weight for every entry of every member
        room = BATCH_BYTES if device is None else DEVICE_BYTES
        return max(1, room // (6 * X.nbytes * task.n_starts))
    return max(1, AT_ONCE // task.n_starts) if device is None else None
