"""Finished trials of the paper's experiments.

The key of a row is the specification of its task, the value of the hyperparameter, the start, and
the version of the code. Fits agree up to rounding between machines, but k-means can then differ in
a sample or two; each row therefore has the name of its machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import astuple, fields
from io import BytesIO

import numpy as np

from robustnmf.experiments import database
from robustnmf.experiments.database import Database, digest_of
from robustnmf.experiments.protocol import ParameterValue
from robustnmf.experiments.trial import Scores, Task


def code_version() -> str:
    """Return the version of the package with a digest of the code that trials depend on."""
    return database.code_version("experiments/protocol.py", "experiments/trial.py")


class Store(Database):
    """Store of finished trials."""

    schema = """
    CREATE TABLE IF NOT EXISTS trials (
        key TEXT PRIMARY KEY, task TEXT NOT NULL, code TEXT NOT NULL, specification TEXT NOT NULL,
        value TEXT NOT NULL, start INTEGER NOT NULL, accuracy REAL NOT NULL,
        information REAL NOT NULL, effective_sample_size REAL NOT NULL,
        largest_cluster REAL NOT NULL, clusters INTEGER NOT NULL, objective REAL NOT NULL,
        seconds REAL NOT NULL, machine TEXT NOT NULL, created TEXT NOT NULL);
    CREATE INDEX IF NOT EXISTS by_task ON trials (task);
    CREATE TABLE IF NOT EXISTS arrays (
        key TEXT PRIMARY KEY, task TEXT NOT NULL, content BLOB NOT NULL, created TEXT NOT NULL);
    """

    def finished(self, task: Task) -> dict[tuple[ParameterValue, int], Scores]:
        """Return the finished trials among the values and starts of a task, by both."""
        names = ", ".join(field.name for field in fields(Scores))
        with self.open() as connection:
            rows = connection.execute(
                f"SELECT {names} FROM trials WHERE task = ?", (task_key(task),)
            ).fetchall()
        trials = (Scores(json.loads(row[0]), *row[1:]) for row in rows)
        return {
            (scores.value, scores.start): scores
            for scores in trials
            if scores.value in task.parameter_values and scores.start < task.n_starts
        }

    def add(self, task: Task, trials: Iterable[Scores]) -> None:
        """Write the trials of a batch in one transaction."""
        key, specification = task_key(task), json.dumps(task.specification, sort_keys=True)
        rows = []
        for scores in trials:
            value = json.dumps(scores.value)
            trial_key = digest_of(key, value, scores.start)
            columns = astuple(scores)[1:]
            rows.append((trial_key, key, code_version(), specification, value, *columns))
        self.write("trials", rows)

    def arrays(self, task: Task) -> dict[str, np.ndarray] | None:
        """Return the arrays stored for a task, if any."""
        with self.open() as connection:
            row = connection.execute(
                "SELECT content FROM arrays WHERE key = ?", (_arrays_key(task),)
            ).fetchone()
        if row is None:
            return None
        with np.load(BytesIO(row[0]), allow_pickle=False) as file:
            return dict(file)

    def add_arrays(self, task: Task, arrays: dict[str, np.ndarray]) -> None:
        """Store arrays for a task."""
        buffer = BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        self.write("arrays", [(_arrays_key(task), task_key(task), buffer.getvalue())])

    def rows(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Scores]]:
        """Yield the finished trials of tasks, each with its task."""
        for task in tasks:
            for _, scores in sorted(self.finished(task).items(), key=lambda item: str(item[0])):
                yield task, scores


def task_key(task: Task) -> str:
    """Return the digest of the specification of a task and of the code."""
    return digest_of(json.dumps(task.specification, sort_keys=True), code_version())


def _arrays_key(task: Task) -> str:
    return digest_of(task_key(task), json.dumps(task.parameter_values), task.n_starts)
