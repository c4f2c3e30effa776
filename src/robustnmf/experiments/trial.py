"""Trials: scores of one method with one value of its hyperparameter, one start, one table.

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

from robustnmf.datasets import DataDir, load_dataset
from robustnmf.estimators.path import PathMember, fit_path
from robustnmf.experiments.protocol import (
    METHODS,
    PROTOCOL,
    Method,
    ParameterValue,
    Protocol,
    unit_rows,
)
from robustnmf.metrics import (
    clustering_accuracy,
    largest_cluster_share,
    n_clusters,
    normalized_mutual_info,
)

BATCH_BYTES, DEVICE_BYTES = 2**30, 2**34
IDLE_SECONDS = 30
BATCH_MEMBERS = 50
"""Members of a batch in NumPy; a run that is killed loses at most these."""


@dataclass(frozen=True)
class Task:
    """The trials of one method on one table, for several values and starts.

    ``subset`` is (number of classes, number of the draw) if the table has only a random subset of
    the classes.
    """

    dataset: str
    method: str
    noise: float
    subset: tuple[int, int] | None = None
    starts: int | None = None
    values: tuple[ParameterValue, ...] | None = None
    protocol: Protocol = PROTOCOL

    @property
    def method_spec(self) -> Method:
        """Return the method that ``method`` names."""
        return METHODS[self.method]

    @property
    def n_starts(self) -> int:
        """Return the number of starts of every value."""
        return self.protocol.starts if self.starts is None else self.starts

    @property
    def parameter_values(self) -> tuple[ParameterValue, ...]:
        """Return the values of the hyperparameter."""
        return self.method_spec.values if self.values is None else self.values

    @property
    def per_entry(self) -> bool:
        """Return whether the method has a weight for every entry."""
        return self.method_spec.make(self.parameter_values[0]).per_entry

    @property
    def batch_key(self) -> tuple[object, ...]:
        """Return a key that tasks share if they can be fitted as one batch."""
        return (
            self.dataset, self.noise, self.subset, self.n_starts, self.protocol,
            self.method_spec.structure, self.per_entry,
        )  # fmt: skip

    @property
    def specification(self) -> dict[str, Any]:
        """Return the settings of the scores, except the code, the value and the start."""
        settings = asdict(self.protocol) | {
            "scaling": self.protocol.scaling_of(self.dataset),
            "noise": self.noise,
        }
        del settings["starts"]
        subset = list(self.subset) if self.subset else None
        return {"dataset": self.dataset, "method": self.method, "subset": subset, **settings}

    def table(self, data_dir: DataDir = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the noisy table (n_samples, n_features) and its labels (n_samples,)."""
        bunch = load_dataset(self.dataset, data_dir)
        data, target = bunch.data, bunch.target
        if self.subset is not None:
            count, draw = self.subset
            rng = np.random.default_rng([self.protocol.seed, count, draw])
            classes = rng.choice(int(target.max()) + 1, size=count, replace=False)
            mask = np.isin(target, classes)
            data, target = data[mask], target[mask]
        return self.protocol.table(self.dataset, data, self.noise), target


@dataclass(frozen=True)
class Scores:
    """Scores of a trial; ``seconds`` is the fitting time of its batch over the batch's members."""

    value: ParameterValue
    start: int
    accuracy: float
    information: float
    effective_sample_size: float
    largest_cluster: float
    clusters: int
    objective: float
    seconds: float = 0.0
    machine: str = ""


Point = tuple[Task, ParameterValue]
"""A task and a value of its hyperparameter; all its starts are fitted together."""


def run(
    points: Sequence[Point], *, data_dir: DataDir = None, jobs: int = 1, device: str | None = None
) -> Iterator[list[tuple[Task, Scores]]]:
    """Fit and score points with one ``batch_key``; yield the scores batch by batch."""
    first = points[0][0]
    X, y = first.table(data_dir)
    size = len(points)
    if first.per_entry:  # a weight for every entry of every member
        room = BATCH_BYTES if device is None else DEVICE_BYTES
        size = max(1, room // (6 * X.nbytes * first.n_starts))
    elif device is None:
        size = max(1, BATCH_MEMBERS // first.n_starts)
    machine = machine_of(device)
    for offset in range(0, len(points), size):
        batch = points[offset : offset + size]
        begin = time.perf_counter()
        members = fit_points(batch, X, len(np.unique(y)), device=device)
        seconds = (time.perf_counter() - begin) / len(members)
        member_points = [point for point in batch for _ in range(first.n_starts)]
        member_scores = score_members(first.protocol, members, y, jobs)
        yield [
            (task, replace(scores, value=value, seconds=seconds, machine=machine))
            for (task, value), scores in zip(member_points, member_scores, strict=True)
        ]


def machine_of(device: str | None) -> str:
    """Describe the processor or GPU that fits, and its array library."""
    if device is None:
        return f"CPU, {os.cpu_count()} cores, NumPy {np.__version__}"
    import torch

    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    return f"{name}, PyTorch {torch.__version__}"


def fit_points(
    points: Sequence[Point], X: np.ndarray, rank: int, *, device: str | None = None
) -> list[PathMember]:
    """Fit points as one batch; return the members, all starts of a point in a row."""
    task = points[0][0]
    protocol = task.protocol
    with warnings.catch_warnings(action="ignore"):  # collapse shows in the tables
        return fit_path(
            X,
            rank,
            weightings=[task.method_spec.make(value) for task, value in points],
            n_init=task.n_starts,
            structure=task.method_spec.structure,
            solver="mu",
            init="random",
            tol=0,
            max_iter=protocol.iterations,
            random_state=protocol.seed + (task.subset[1] if task.subset else 0),
            device=device,
        )


def score_members(
    protocol: Protocol, members: list[PathMember], y: np.ndarray, jobs: int = 1
) -> list[Scores]:
    """Score members by k-means of their codes, in ``jobs`` processes; values are left None."""
    count = len(np.unique(y))
    # Codes are small enough to be sent without files; idle workers of a killed run end soon.
    with parallel_config("loky", n_jobs=jobs, max_nbytes=None, idle_worker_timeout=IDLE_SECONDS):
        clusterings = Parallel()(
            delayed(cluster_codes)(member.codes, count, protocol, member.start)
            for member in members
        )
    return [
        Scores(None, member.start, clustering_accuracy(y, labels),
               normalized_mutual_info(y, labels), float(member.effective_sample_size),
               largest_cluster_share(labels), n_clusters(labels), float(member.objective))
        for member, labels in zip(members, clusterings, strict=True)
    ]  # fmt: skip


def cluster_codes(codes: np.ndarray, count: int, protocol: Protocol, start: int) -> np.ndarray:
    """Return the labels (n_samples,) of ``count`` clusters of codes (n_samples, k) by k-means."""
    table = unit_rows(codes) if protocol.codes == "unit" else codes
    model = KMeans(
        count,
        init=protocol.kmeans_init,
        n_init=protocol.kmeans_starts,
        random_state=protocol.seed + start,
    )
    # There can be fewer distinct points than clusters.
    with warnings.catch_warnings(action="ignore"), threadpool_limits(1):
        return model.fit_predict(table)
