"""Files appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

from robustnmf.archive import whole_file


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the target, then rename: no reader ever sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(content)
