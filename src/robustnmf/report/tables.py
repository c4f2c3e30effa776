"""Write tables as CSV and Markdown, and trials as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields
from io import BytesIO, TextIOWrapper
from typing import IO

from robustnmf.experiments.outcome import Grid
from robustnmf.experiments.trial import Scores, Task


def comma_separated(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Return rows as CSV."""
    buffer = BytesIO()
    write_comma_separated(buffer, header, rows)
    return buffer.getvalue()


def write_comma_separated(
    file: IO[bytes], header: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Write rows as CSV to a binary file, one after the other."""
    text = TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows(rows)
    text.detach()  # flushes, and leaves the file open


def grid_csv(grid: Grid) -> bytes:
    """Return a table as CSV."""
    return comma_separated(grid.header, [[_line(cell.text) for cell in row] for row in grid.rows])


def grid_markdown(grid: Grid) -> str:
    """Return a table as Markdown."""
    lines = [f"**{grid.title}**", "", _row(grid.header), _row(["---"] * len(grid.header))]
    for row in grid.rows:
        texts = (f"**{_line(c.text)}**" if "best" in c.marks else _line(c.text) for c in row)
        lines.append(_row(text.replace("|", "\\|") for text in texts))
    return "\n".join([*lines, "", *(f"{note}\n" for note in grid.notes)])


def _line(text: str) -> str:
    """Put a text on one line."""
    return text.replace("\n", " ")


def _row(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def trials_csv(rows: Iterable[tuple[Task, Scores]]) -> bytes:
    """Return all trials as CSV; what they have in common is in run.json."""
    names = [field.name for field in fields(Scores)]
    header = ("dataset", "method", "scaling", "noise", "classes", "draw", *names)
    lines = []
    for task, scores in rows:
        classes, draw = task.subset or ("", "")
        scaling = task.protocol.scaling_of(task.dataset)
        keys = (task.dataset, task.method, scaling, task.noise, classes, draw)
        lines.append((*keys, *map(short, astuple(scores))))
    return comma_separated(header, lines)


def short(value: object) -> object:
    """Return a float as text with seven digits; other values as they are."""
    return f"{value:.7g}" if isinstance(value, float) else value
