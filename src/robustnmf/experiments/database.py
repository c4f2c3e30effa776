"""Results in one SQLite file: written batch by batch, never twice, never half.

Results are keyed by what they depend on, the code among it. SQLite's transactions see to the rest:
a run that is killed loses the batch in flight, and two runs at once wait for each other.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import ClassVar

import robustnmf

APPLICATION = 0x524E4D46
WAIT = 120.0
"""Seconds to wait for another run to finish writing."""

CORE = (
    "arrays", "corruptions", "datasets", "engine", "estimators", "fit.py", "inits", "losses",
    "metrics.py", "passes", "solvers", "state.py", "structures", "weightings",
)  # fmt: skip
"""Code that shapes the results of all experiments."""


class StoreError(RuntimeError):
    """The file of results cannot be used; the message says why and what to do."""


@cache
def code_version(*names: str) -> str:
    """Version of the package and a digest of the code that numbers come from."""
    root = Path(robustnmf.__file__).parent
    digest = hashlib.sha256()
    for name in (*CORE, *names):
        path = root / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return f"{robustnmf.__version__}+{digest.hexdigest()[:12]}"


def digest_of(*parts: object) -> str:
    """A key that differs where any of the parts does."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:32]


class Database:
    """A file of results; a subclass says of what kind.

    Parameters
    ----------
    path : path
        Made where it is not there yet; a file that is something else is refused.
    """

    schema: ClassVar[str]

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.open() as connection:
            self._claim(connection)

    def write(self, statement: str, rows: Iterable[tuple]) -> None:
        """Write some rows, all or none."""
        with self.open() as connection, connection:
            connection.executemany(statement, rows)

    @contextmanager
    def open(self) -> Iterator[sqlite3.Connection]:
        """A connection; its errors say what to do."""
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
            for statement in filter(str.strip, self.schema.split(";")):
                connection.execute(statement)
