"""Outcomes of experiments as pieces of a page, and as files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from robustnmf.experiments.outcome import Cell, Grid, Outcome
from robustnmf.report.files import write_whole
from robustnmf.report.page import (
    Bullets,
    Content,
    Download,
    Heading,
    Links,
    Paragraph,
    Picture,
    Row,
    Table,
    TableCell,
    page,
)
from robustnmf.report.plots import interactive, still
from robustnmf.report.tables import grid_csv, grid_markdown


def write_outcomes(
    title: str,
    lead: str,
    outcomes: Sequence[Outcome],
    origin: Sequence[Content],
    more: dict[str, bytes],
    folder: Path,
) -> list[Path]:
    """A page, tables as CSV and Markdown, figures; the page is the first of the paths."""
    files = dict(more)
    content: list[Content] = [Paragraph(lead), *summary(outcomes)]
    content.append(Links([(o.key, o.title) for o in outcomes]))
    told = [f"# {title}\n", *(f"- {line}" for line in lines(outcomes)), ""]
    for outcome in outcomes:
        drawn = still(outcome)
        files |= {f"{outcome.key}.{kind}": data for kind, data in drawn.items()}
        for grid in outcome.grids:
            files[f"{outcome.key}{grid.suffix}.csv"] = grid_csv(grid)
        content += section(outcome, drawn)
        told += markdown(outcome)
    files["tables.md"] = "\n".join(told).encode()
    files["report.html"] = page(title, [*content, *origin]).encode()
    for name, data in files.items():
        write_whole(folder / name, data)
    return [folder / name for name in ("report.html", *sorted(set(files) - {"report.html"}))]


def origin(about: dict, told: str, name: str, behind: bytes) -> list[Content]:
    """How it was made, and a file of every number behind it."""
    return [
        Heading("How it was made", "origin"),
        Bullets([f"{key}: {json.dumps(value)}" for key, value in about.items()]),
        Paragraph(told),
        Download(name, behind),
    ]


def lines(outcomes: Sequence[Outcome]) -> list[str]:
    """What it amounts to: the notes of the tables."""
    return [note for o in outcomes if o.grids for note in o.notes]


def summary(outcomes: Sequence[Outcome]) -> list[Content]:
    """Headline and the notes of the tables."""
    found = lines(outcomes)
    return [Heading("What it amounts to", "summary"), Bullets(found)] if found else []


def section(outcome: Outcome, drawn: dict[str, bytes]) -> list[Content]:
    """A table or figure with all that belongs to it."""
    parts: list[Content] = [Heading(outcome.title, outcome.key), Paragraph(outcome.caption)]
    for grid in outcome.grids:
        parts.append(_table(grid))
        parts += [Paragraph(note, "note") for note in grid.notes]
        parts.append(Download(f"{outcome.key}{grid.suffix}.csv", grid_csv(grid)))
    if outcome.charts:
        parts.append(Row([interactive(chart) for chart in outcome.charts]))
    if outcome.images:
        parts.append(Picture(drawn["png"], outcome.title))
    if not outcome.grids:
        parts += [Paragraph(note, "note") for note in outcome.notes]
    return parts


def _table(grid: Grid) -> Table:
    return Table(grid.header, [[_cell(cell) for cell in row] for row in grid.rows], grid.title)


def _cell(cell: Cell) -> TableCell:
    wordy = ("text",) if cell.number is None and len(cell.text) > 40 else ()
    return TableCell(cell.text, cell.number, (*cell.marks, *wordy), cell.hint)


def markdown(outcome: Outcome) -> list[str]:
    """The tables of an outcome as Markdown."""
    if not outcome.grids:
        return []
    grids = [grid_markdown(grid) for grid in outcome.grids]
    return [f"## {outcome.title}\n", f"{outcome.caption}\n", *grids]
