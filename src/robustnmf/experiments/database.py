"""Results in one SQLite file, written batch by batch.

The key of a result includes all its settings and the version of the code. Each batch is one
transaction: a run that is killed loses only its last batch, and two runs wait for each other.
"""

from __future__ import annotations

import ast
import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from threading import Lock
from typing import ClassVar

from robustnmf import _version

APPLICATION_ID = 0x524E4D46
LOCK_TIMEOUT = 120.0
"""Seconds to wait for another run to finish writing."""

PRESENTATION = (
    "__main__.py", "benchmark.py", "cli/", "displays.py", "files/page", "report/", "tables/",
)  # fmt: skip
"""Code that presents results or reads tables of users; experiments do not depend on it."""

EXPERIMENTS = "experiments"


_PARSING = Lock()
"""Python 3.11 can fail to parse ("AST constructor recursion depth mismatch") in several threads."""


class StoreError(RuntimeError):
    """Raised if the file of results cannot be used, with the reason and what to do."""


@cache
def code_version(*names: str, root: Path | None = None) -> str:
    """Return the version of the package with a digest of the code that results depend on.

    The digest includes the package without its ``PRESENTATION``, and from the experiments the named
    files (relative to ``root``, the folder of the package) and the files that they import.
    """
    root = Path(_version.__file__).parent if root is None else root
    files = {
        path
        for path in root.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not path.relative_to(root).as_posix().startswith((*PRESENTATION, f"{EXPERIMENTS}/"))
    }
    digest = hashlib.sha256()
    for path in sorted(files | _with_imports({root / name for name in names}, root)):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{_version.__version__}+{digest.hexdigest()[:12]}"


def _with_imports(files: set[Path], root: Path) -> set[Path]:
    """Return files of experiments and all files of experiments that they import."""
    visited: set[Path] = set()
    while files:
        path = files.pop()
        visited.add(path)
        with _PARSING:
            tree = ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            else:
                continue
            prefix = f"{root.name}.{EXPERIMENTS}"
            for module in modules:
                if module == prefix or module.startswith(f"{prefix}."):
                    target = root.joinpath(*module.split(".")[1:])
                    candidates = (target.with_suffix(".py"), target / "__init__.py")
                    files |= {file for file in candidates if file.is_file()} - visited
    return visited


def digest_of(*parts: object) -> str:
    """Return a digest of the parts, to be used as a key."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:32]


class Database:
    """An SQLite file of results, created if it does not exist.

    Subclasses define its tables; the last column of each is the time of writing. A file of another
    kind raises `StoreError`.
    """

    schema: ClassVar[str]

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.open() as connection:
            connection.execute("BEGIN IMMEDIATE")  # another run can do the same
            (owner,) = connection.execute("PRAGMA application_id").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if owner != APPLICATION_ID and tables:
                raise StoreError(
                    f"{self.path} is a database of another program. Use another file for the "
                    "trials."
                )
            with connection:
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                for statement in filter(str.strip, self.schema.split(";")):
                    connection.execute(statement)

    def write(self, table: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Write rows of a table, without the time, in one transaction."""
        created = datetime.now(UTC).isoformat(timespec="seconds")
        with self.open() as connection, connection:
            for row in rows:
                places = ", ".join("?" * (len(row) + 1))
                statement = f"INSERT OR REPLACE INTO {table} VALUES ({places})"
                connection.execute(statement, (*row, created))

    @contextmanager
    def open(self) -> Iterator[sqlite3.Connection]:
        """Open a connection; errors of SQLite become `StoreError`."""
        try:
            with closing(sqlite3.connect(self.path, timeout=LOCK_TIMEOUT)) as connection:
                yield connection
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path} cannot be used for trials: {error}. Results written so far are kept. "
                "If the disk is full or another run has locked the file, solve that and run again "
                "to continue; otherwise move the file away."
            ) from error
