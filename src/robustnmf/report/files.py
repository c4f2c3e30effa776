"""Write files that appear whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from robustnmf.archive import whole_file

FIT_FILES = ("basis.csv", "codes.csv", "samples.csv", "model.rnmf", "report.html", "run.json")
"""Files of a fit."""


def output_paths(folder: Path) -> dict[str, Path]:
    """Return the paths of the files of a fit in a folder, by name."""
    return {name: folder / name for name in FIT_FILES}


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
