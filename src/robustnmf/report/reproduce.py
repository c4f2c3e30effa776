"""The reproduction as files: one page, tables, figures, trials."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from robustnmf.experiments.outcome import Cell, Grid, Outcome
from robustnmf.experiments.reproduce import Plan
from robustnmf.experiments.store import Store
from robustnmf.experiments.trial import Scores, Task
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
from robustnmf.report.tables import grid_csv, grid_markdown, trials_csv

TITLE = "Adaptive weighted NMF: the paper's tables and figures, reproduced"
LEAD = (
    "Every number of the paper beside ours. The paper chooses hyperparameters by the labels, which "
    "nobody has who needs clusters; a second table beside each of its own does without. Marks tell "
    "where an accuracy says no more than how large the largest class is."
)


def write(
    outcomes: Sequence[Outcome], wanted: Plan, store: Store, made: dict, folder: Path
) -> list[Path]:
    """Write everything; the page is the first of the paths."""
    rows = list(store.rows(wanted.tasks))
    trials, made = trials_csv(rows), {**made, "fitting": fitting(rows)}
    files: dict[str, bytes] = {"trials.csv": trials}
    content: list[Content] = [Paragraph(LEAD), *_summary(outcomes)]
    content.append(Links([(o.key, o.title) for o in outcomes]))
    markdown = [f"# {TITLE}\n", *(f"- {line}" for line in _lines(outcomes)), ""]
    for outcome in outcomes:
        drawn = still(outcome)
        files |= {f"{outcome.key}.{kind}": data for kind, data in drawn.items()}
        for grid in outcome.grids:
            files[f"{outcome.key}{grid.suffix}.csv"] = grid_csv(grid)
        content += _section(outcome, drawn)
        markdown += _markdown(outcome)
    content += _origin(wanted, made, trials)
    files["tables.md"] = "\n".join(markdown).encode()
    files["run.json"] = json.dumps(_about(wanted, made), indent=1).encode()
    files["report.html"] = page(TITLE, content).encode()
    for name, data in files.items():
        write_whole(folder / name, data)
    return [folder / name for name in ("report.html", *sorted(set(files) - {"report.html"}))]


def fitting(rows: Sequence[tuple[Task, Scores]]) -> dict[str, dict[str, float]]:
    """How many fits each machine did, and in how many seconds."""
    found: dict[str, dict[str, float]] = {}
    for _, scores in rows:
        done = found.setdefault(scores.machine, {"fits": 0, "seconds": 0.0})
        done["fits"] += 1
        done["seconds"] = round(done["seconds"] + scores.seconds, 6)
    return found


def _lines(outcomes: Sequence[Outcome]) -> list[str]:
    """What it amounts to: the notes of the tables."""
    return [note for o in outcomes if o.grids for note in o.notes]


def _summary(outcomes: Sequence[Outcome]) -> list[Content]:
    lines = _lines(outcomes)
    return [Heading("What it amounts to", "summary"), Bullets(lines)] if lines else []


def _section(outcome: Outcome, drawn: dict[str, bytes]) -> list[Content]:
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


def _markdown(outcome: Outcome) -> list[str]:
    if not outcome.grids:
        return []
    grids = [grid_markdown(grid) for grid in outcome.grids]
    return [f"## {outcome.title}\n", f"{outcome.caption}\n", *grids]


def _about(wanted: Plan, made: dict) -> dict:
    protocol = wanted.scope.protocol
    told = asdict(protocol) | {"scaling": dict(protocol.scaling)}
    return {**made, "quick": wanted.scope.quick, "fits": wanted.fits, "protocol": told}


def _origin(wanted: Plan, made: dict, trials: bytes) -> list[Content]:
    """How it was made, and the trials behind it."""
    about = _about(wanted, made)
    texts = [f"{key}: {json.dumps(value)}" for key, value in about.items()]
    return [
        Heading("How it was made", "origin"),
        Bullets(texts),
        Paragraph("Every trial behind these numbers:"),
        Download("trials.csv", trials),
    ]
