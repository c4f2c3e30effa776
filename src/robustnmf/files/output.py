"""Write files that appear whole or not at all, and tables as CSV."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import IO

from robustnmf.files.archive import is_stream, whole_file


def unwritable_reason(path: Path) -> str | None:
    """Return why no file can be written to a path, or None; folders are made as needed.

    Found out by a temporary file in the folder, as permissions alone do not tell: a file system may
    be read-only or full.
    """
    try:
        if is_stream(path):
            return None if os.access(path, os.W_OK) else f"{path} is not open for writing"
        if path.is_dir():
            return f"{path} is a folder"
        target = path.resolve()
        if path.is_symlink() and not target.parent.is_dir():
            return f"it is a link to {target}, whose folder does not exist"
        folder = target.parent if path.is_symlink() else path.parent
        while not os.path.lexists(folder):
            folder = folder.parent
        if not folder.is_dir():
            return f"{folder} is not a folder"
        with tempfile.TemporaryFile(dir=folder):
            return None
    except (OSError, RuntimeError) as error:  # of links that form a circle: RuntimeError
        reason = getattr(error, "strerror", None) or str(error)
        return f"nothing can be written there ({reason})"


@contextmanager
def output_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file beside the target, which is renamed at the end: no reader sees half a file.

    Folders are made as needed. What is no regular file (a FIFO, ``/dev/stdout``) is written to
    directly.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, stream=True) as file:
        yield file


def write_whole(path: Path, content: bytes) -> None:
    """Write these bytes to a file."""
    with output_file(path) as file:
        file.write(content)


def comma_separated(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Return rows as CSV."""
    text = StringIO(newline="")
    csv.writer(text).writerows([header, *rows])
    return text.getvalue().encode()
