"""Finished trials in one SQLite file: written batch by batch, never twice, never half.

A row is keyed by what its numbers depend on: the specification of its task, the value of the
hyperparameter, the start, and the code. Machines and devices agree to rounding, which k-means may
turn into a sample or two; which one computed a trial is written down beside it. SQLite's
transactions see to the rest: a run that is killed loses the batch in flight, and two runs at once
wait for each other.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, fields
from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np

import robustnmf
from robustnmf.experiments.trial import Scores, Task

APPLICATION = 0x524E4D46
SCHEMA = """
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
WAIT = 120.0
"""Seconds to wait for another run to finish writing."""

SHAPES_RESULTS = (
    "arrays", "corruptions", "datasets", "engine", "estimators", "fit.py", "inits", "losses",
    "metrics.py", "passes", "solvers", "state.py", "structures", "weightings",
    "experiments/methods.py", "experiments/protocol.py", "experiments/trial.py",
)  # fmt: skip


class StoreError(RuntimeError):
    """The file of trials cannot be used; the message says why and what to do."""


@cache
def code_version() -> str:
    """Version of the package and a digest of the code that numbers come from."""
    root = Path(robustnmf.__file__).parent
    digest = hashlib.sha256()
    for name in SHAPES_RESULTS:
        path = root / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return f"{robustnmf.__version__}+{digest.hexdigest()[:12]}"


class Store:
    """Trials that are finished.

    Parameters
    ----------
    path : path
        Made where it is not there yet; a file that is something else is refused.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as connection:
            self._claim(connection)

    def known(self, task: Task) -> dict[tuple, Scores]:
        """Finished trials of a task by value and start; no others than it asks for."""
        names = ", ".join(field.name for field in fields(Scores))
        with self._open() as connection:
            rows = connection.execute(
                f"SELECT {names} FROM trials WHERE task = ?", (task_key(task),)
            ).fetchall()
        found = (Scores(json.loads(row[0]), *row[1:]) for row in rows)
        return {
            (scores.value, scores.start): scores
            for scores in found
            if scores.value in task.asked and scores.start < task.n_starts
        }

    def add(self, task: Task, scores: Iterable[Scores]) -> None:
        """Write the trials of a batch, all or none."""
        key, now = task_key(task), datetime.now(UTC).isoformat(timespec="seconds")
        told = json.dumps(task.specification, sort_keys=True)
        rows = []
        for found in scores:
            value = json.dumps(found.value)
            unique = _digest(key, value, found.start)
            numbers = astuple(found)[1:]
            rows.append((unique, key, code_version(), told, value, *numbers, now))
        holes = ", ".join("?" * 15)
        self._write(f"INSERT OR REPLACE INTO trials VALUES ({holes})", rows)

    def arrays(self, task: Task) -> dict[str, np.ndarray] | None:
        """Arrays kept for a task, if any."""
        with self._open() as connection:
            row = connection.execute(
                "SELECT content FROM arrays WHERE key = ?", (_arrays_key(task),)
            ).fetchone()
        if row is None:
            return None
        with np.load(BytesIO(row[0]), allow_pickle=False) as file:
            return dict(file)

    def add_arrays(self, task: Task, arrays: dict[str, np.ndarray]) -> None:
        """Keep arrays for a task."""
        buffer = BytesIO()
        np.savez_compressed(buffer, **arrays)
        key, now = task_key(task), datetime.now(UTC).isoformat(timespec="seconds")
        row = (_arrays_key(task), key, buffer.getvalue(), now)
        self._write("INSERT OR REPLACE INTO arrays VALUES (?, ?, ?, ?)", [row])

    def rows(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Scores]]:
        """All finished trials of some tasks."""
        for task in tasks:
            for _, scores in sorted(self.known(task).items(), key=lambda item: str(item[0])):
                yield task, scores

    def _write(self, statement: str, rows: list[tuple]) -> None:
        with self._open() as connection, connection:
            connection.executemany(statement, rows)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=WAIT)) as connection:
                yield connection
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path} cannot be used for trials: {error}. What was written before is kept. "
                "If the disk is full or another run has locked the file, see to that and run again "
                "to go on; else move the file away."
            ) from error

    def _claim(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")  # another run may be doing the same
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if owner != APPLICATION and tables:
            raise StoreError(
                f"{self.path} is a database of something else. Name another file for the trials."
            )
        with connection:
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            for statement in filter(str.strip, SCHEMA.split(";")):
                connection.execute(statement)


def task_key(task: Task) -> str:
    """Digest of all that the numbers of a task depend on."""
    return _digest(json.dumps(task.specification, sort_keys=True), code_version())


def _arrays_key(task: Task) -> str:
    return _digest(task_key(task), json.dumps(task.asked), task.n_starts)


def _digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:32]
