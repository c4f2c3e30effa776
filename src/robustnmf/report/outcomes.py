"""Write outcomes of experiments as a page, tables and figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
    """Write a page, tables as CSV and Markdown, and figures; return the paths, the page first."""
    files = dict(more)
    content: list[Content] = [Paragraph(lead), *summary(outcomes)]
    content.append(Links([(o.key, o.title) for o in outcomes]))
    markdown_lines = [f"# {title}\n", *(f"- {line}" for line in lines(outcomes)), ""]
    for outcome in outcomes:
        figures = still(outcome)
        files |= {f"{outcome.key}.{kind}": data for kind, data in figures.items()}
        for grid in outcome.grids:
            files[f"{outcome.key}{grid.suffix}.csv"] = grid_csv(grid)
        content += section(outcome, figures)
        markdown_lines += markdown(outcome)
    files["tables.md"] = "\n".join(markdown_lines).encode()
    files["report.html"] = page(title, [*content, *origin]).encode()
    for name, data in files.items():
        write_whole(folder / name, data)
    return [folder / name for name in ("report.html", *sorted(set(files) - {"report.html"}))]


def origin(run_record: dict[str, Any], text: str, name: str, data: bytes) -> list[Content]:
    """Return the section on how results were made, with a file of the numbers behind them."""
    return [
        Heading("How it was made", "origin"),
        Bullets([f"{key}: {json.dumps(value)}" for key, value in run_record.items()]),
        Paragraph(text),
        Download(name, data),
    ]


def lines(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the notes of all tables, which sum up the results."""
    return [note for o in outcomes if o.grids for note in o.notes]


def summary(outcomes: Sequence[Outcome]) -> list[Content]:
    """Return the section of the notes of all tables, if there are any."""
    notes = lines(outcomes)
    return [Heading("What it amounts to", "summary"), Bullets(notes)] if notes else []


def section(outcome: Outcome, figures: dict[str, bytes]) -> list[Content]:
    """Return the section of an outcome: tables with downloads, charts, images, notes."""
    parts: list[Content] = [Heading(outcome.title, outcome.key), Paragraph(outcome.caption)]
    for grid in outcome.grids:
        parts.append(_table(grid))
        parts += [Paragraph(note, "note") for note in grid.notes]
        parts.append(Download(f"{outcome.key}{grid.suffix}.csv", grid_csv(grid)))
    if outcome.charts:
        parts.append(Row([interactive(chart) for chart in outcome.charts]))
    if outcome.images:
        parts.append(Picture(figures["png"], outcome.title))
    if not outcome.grids:
        parts += [Paragraph(note, "note") for note in outcome.notes]
    return parts


def _table(grid: Grid) -> Table:
    """Return a table of an outcome as a piece of a page."""
    return Table(grid.header, [[_cell(cell) for cell in row] for row in grid.rows], grid.title)


def _cell(cell: Cell) -> TableCell:
    """Return a cell of an outcome as a cell of a page; long texts have a class of their own."""
    text_class = ("text",) if cell.number is None and len(cell.text) > 40 else ()
    return TableCell(cell.text, cell.number, (*cell.marks, *text_class), cell.hint)


def markdown(outcome: Outcome) -> list[str]:
    """Return the tables of an outcome as Markdown."""
    if not outcome.grids:
        return []
    grids = [grid_markdown(grid) for grid in outcome.grids]
    return [f"## {outcome.title}\n", f"{outcome.caption}\n", *grids]
