"""Results in one SQLite file: written batch by batch, never twice, never half.

Results are keyed by what they depend on, the code among it. SQLite's transactions see to the rest:
a run that is killed loses the batch in flight, and two runs at once wait for each other.
"""

from __future__ import annotations

import ast
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

SHOWS = frozenset(("__main__.py", "cli", "displays", "report", "tables", "text_format.py"))
"""Code that shows results, or reads tables of users; no number of an experiment comes from it."""

EXPERIMENTS = "experiments"


class StoreError(RuntimeError):
    """The file of results cannot be used; the message says why and what to do."""


@cache
def code_version(*names: str, root: Path | None = None) -> str:
    """Version of the package and a digest of the code that numbers come from.

    That is all of the package but for what only shows results, and of the experiments the named
    files with what they import.

    Parameters
    ----------
    *names : str
        Files of experiments, relative to the package.
    root : Path, optional
        Folder of the package; this one by default.
    """
    root = Path(robustnmf.__file__).parent if root is None else root
    files = {
        path
        for path in root.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.relative_to(root).parts[0] not in SHOWS | {EXPERIMENTS}
    }
    digest = hashlib.sha256()
    for path in sorted(files | _with_imports({root / name for name in names}, root)):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{robustnmf.__version__}+{digest.hexdigest()[:12]}"


def _with_imports(files: set[Path], root: Path) -> set[Path]:
    """Files of experiments, and those of experiments that they import, directly or not."""
    complete: set[Path] = set()
    while files:
        path = files.pop()
        complete.add(path)
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            else:
                continue
            inside = f"{root.name}.{EXPERIMENTS}"
            for module in modules:
                if module == inside or module.startswith(f"{inside}."):
                    target = root.joinpath(*module.split(".")[1:])
                    places = (target.with_suffix(".py"), target / "__init__.py")
                    files |= {place for place in places if place.is_file()} - complete
    return complete


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
