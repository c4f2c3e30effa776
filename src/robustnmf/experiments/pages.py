"""Write outcomes of experiments as a page, tables and figures: the paper's, and benchmarks.

Charts are drawn twice: interactive for the page, as PNG and SVG for files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robustnmf.experiments.contamination.judge import Score
from robustnmf.experiments.contamination.scenario import Scenario
from robustnmf.experiments.contamination.study import Row as ScoreRow
from robustnmf.experiments.contamination.study import Study
from robustnmf.experiments.outcome import Cell, Chart, Grid, Images, Outcome
from robustnmf.experiments.reproduce import Plan
from robustnmf.experiments.store import Store
from robustnmf.experiments.trial import Scores, Task
from robustnmf.files.output import comma_separated, write_whole
from robustnmf.files.page import (
    Bullets,
    Content,
    Download,
    Heading,
    Links,
    Paragraph,
    Picture,
    Plot,
    Row,
    Table,
    TableCell,
    figure_bytes,
    mosaic,
    page,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = {
    "EWRNMF": "#1c6dd0", "FWRNMF": "#d6336c", "HuberRNMF": "#2b8a3e", "ConvexNMF": "#b07d2b",
    "NMFL2": "#6a51a3", "EucNMF": "#4c4c4c",
}  # fmt: skip
"""Colours of the paper's methods; other lines have them by their place in the chart."""

CHART_COLUMNS = 3


def write_benchmark(
    rows: Sequence[ScoreRow],
    outcomes: Sequence[Outcome],
    run_record: dict[str, Any],
    folder: Path,
    study: Study,
) -> list[Path]:
    """Write all files of a study; return their paths, the page first."""
    behind = "Every score behind these numbers:", "scores.csv", scores_csv(rows)
    return write_outcomes(study.title, study.lead, outcomes, run_record, behind, folder)


def scores_csv(rows: Sequence[ScoreRow]) -> bytes:
    """Return every score of every scenario as CSV; empty where it does not apply."""
    header = [field.name for kind in (Scenario, Score) for field in fields(kind)]
    texts = [
        ["" if isinstance(v, float) and np.isnan(v) else short(v)
         for v in (*astuple(scenario), *astuple(score))]
        for scenario, score in rows
    ]  # fmt: skip
    return comma_separated(header, texts)


TITLE = "Adaptive weighted NMF: the paper's tables and figures, reproduced"
LEAD = (
    "Every number of the paper, next to ours. The paper chooses hyperparameters by the labels, "
    "which are not available in real clustering problems. So each table of the paper is followed "
    "by a table that does not use the labels. Marks show accuracies that mean little, for example "
    "an accuracy near the share of the largest class."
)


def write_reproduction(
    outcomes: Sequence[Outcome], plan: Plan, store: Store, run_record: dict[str, Any], folder: Path
) -> list[Path]:
    """Write all files; return their paths, the page first."""
    rows = list(store.rows(plan.tasks))
    protocol = asdict(plan.scope.protocol) | {"scaling": dict(plan.scope.protocol.scaling)}
    record = {
        **run_record, "fitting": fitting(rows), "quick": plan.scope.quick, "fits": plan.fits,
        "protocol": protocol,
    }  # fmt: skip
    behind = "Every trial behind these numbers:", "trials.csv", trials_csv(rows)
    return write_outcomes(TITLE, LEAD, outcomes, record, behind, folder)


def fitting(rows: Sequence[tuple[Task, Scores]]) -> dict[str, dict[str, float]]:
    """Count the fits of each machine, and their seconds."""
    machines: dict[str, dict[str, float]] = {}
    for _, scores in rows:
        sums = machines.setdefault(scores.machine, {"fits": 0, "seconds": 0.0})
        sums["fits"] += 1
        sums["seconds"] = round(sums["seconds"] + scores.seconds, 6)
    return machines


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


def write_outcomes(
    title: str,
    lead: str,
    outcomes: Sequence[Outcome],
    run_record: dict[str, Any],
    behind: tuple[str, str, bytes],
    folder: Path,
) -> list[Path]:
    """Write a page, tables as CSV and Markdown, and figures; return the paths, the page first.

    ``behind`` is a text, name and content of the file of the numbers behind the results.
    """
    text, name, data = behind
    files = {name: data, "run.json": json.dumps(run_record, indent=1).encode()}
    notes = notes_of(outcomes)
    content: list[Content] = [Paragraph(lead)]
    if notes:
        content += [Heading("What it amounts to", "summary"), Bullets(notes)]
    content.append(Links([(o.key, o.title) for o in outcomes]))
    markdown = [f"# {title}\n", *(f"- {note}" for note in notes), ""]
    for outcome in outcomes:
        figures = still(outcome)
        files |= {f"{outcome.key}.{kind}": data for kind, data in figures.items()}
        for grid in outcome.grids:
            files[f"{outcome.key}{grid.suffix}.csv"] = grid_csv(grid)
        content += section(outcome, figures)
        if outcome.grids:
            markdown += [f"## {outcome.title}\n", f"{outcome.caption}\n"]
            markdown += [grid_markdown(grid) for grid in outcome.grids]
    content += [
        Heading("How it was made", "origin"),
        Bullets([f"{key}: {json.dumps(value)}" for key, value in run_record.items()]),
        Paragraph(text),
        Download(name, data),
    ]
    files["tables.md"] = "\n".join(markdown).encode()
    files["report.html"] = page(title, content).encode()
    for name, data in files.items():
        write_whole(folder / name, data)
    return [folder / name for name in ("report.html", *sorted(set(files) - {"report.html"}))]


def notes_of(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the notes of all tables, which sum up the results."""
    return [note for o in outcomes if o.grids for note in o.notes]


def section(outcome: Outcome, figures: dict[str, bytes]) -> list[Content]:
    """Return the section of an outcome: tables with downloads, charts, images, notes."""
    parts: list[Content] = [Heading(outcome.title, outcome.key), Paragraph(outcome.caption)]
    for grid in outcome.grids:
        cells = [[_cell(cell) for cell in row] for row in grid.rows]
        parts.append(Table(grid.header, cells, grid.title))
        parts += [Paragraph(note, "note") for note in grid.notes]
        parts.append(Download(f"{outcome.key}{grid.suffix}.csv", grid_csv(grid)))
    if outcome.charts:
        parts.append(Row([interactive(chart) for chart in outcome.charts]))
    if outcome.images:
        parts.append(Picture(figures["png"], outcome.title))
    if not outcome.grids:
        parts += [Paragraph(note, "note") for note in outcome.notes]
    return parts


def _cell(cell: Cell) -> TableCell:
    """Return a cell of an outcome as a cell of a page; long texts have a class of their own."""
    text_class = ("text",) if cell.number is None and len(cell.text) > 40 else ()
    return TableCell(cell.text, cell.number, (*cell.marks, *text_class), cell.hint)


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


def color(name: str, place: int) -> str:
    """Return the color of a line: that of its method, or else by its place in the chart."""
    return COLORS.get(name, list(COLORS.values())[place % len(COLORS)])


def interactive(chart: Chart) -> Plot:
    """Return a chart for the page; it has hover texts and a legend that hides lines."""
    data: list[dict[str, Any]] = []
    for place, line in enumerate(chart.lines):
        line_color = color(line.name, place)
        trace: dict[str, Any] = {
            "type": "scatter", "name": line.name, "x": list(line.x), "y": list(line.y),
            "mode": "markers" if chart.scatter else "lines+markers",
            "line": {"color": line_color, "dash": "dash" if line.dashed else "solid"},
            "marker": {"color": line_color, "size": 4 if chart.scatter else 6, "opacity": 0.7},
        }  # fmt: skip
        if line.error is not None and not line.dashed:
            trace["error_y"] = {"type": "data", "array": list(line.error), "thickness": 1}
        data.append(trace)
    axis_type = "log" if is_logarithmic(chart) else "-"
    layout = {
        "title": {"text": chart.title, "font": {"size": 15}},
        "xaxis": {"title": {"text": chart.x_label}, "type": axis_type},
        "yaxis": {"title": {"text": chart.y_label}},
        "margin": {"l": 60, "r": 10, "t": 40, "b": 50}, "template": "none",
        "legend": {"orientation": "h", "y": -0.25}, "showlegend": len(chart.lines) > 1,
    }  # fmt: skip
    return Plot(data, layout, f"{chart.title}: {chart.y_label} against {chart.x_label}")


def is_logarithmic(chart: Chart) -> bool:
    """Whether the horizontal axis spans powers of ten."""
    x = [value for line in chart.lines for value in line.x]
    return not chart.scatter and all(value > 0 for value in x) and max(x) > 1000 * min(x)


def still(outcome: Outcome) -> dict[str, bytes]:
    """Draw the charts and images of an outcome as PNG and SVG; return {} if it has none."""
    panels: list[Chart | Images] = [*outcome.charts, *outcome.images]
    if not panels:
        return {}
    from matplotlib.figure import Figure

    columns = min(CHART_COLUMNS if len(panels) > 2 else 2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.6 * columns, 3.5 * rows), layout="constrained")
    figure.suptitle(outcome.title, fontsize=12)
    for place, panel in enumerate(panels):
        axes = figure.add_subplot(rows, columns, place + 1)
        if isinstance(panel, Images):
            axes.imshow(
                mosaic(panel.images), cmap="gray_r", interpolation="nearest", vmin=0, vmax=1
            )
            axes.set_title(panel.title, fontsize=10)
            axes.set_axis_off()
        else:
            draw_chart(axes, panel, legend=place == 0)
    return {kind: figure_bytes(figure, kind) for kind in ("png", "svg")}


def draw_chart(axes: Axes, chart: Chart, *, legend: bool) -> None:
    """Draw a chart."""
    for place, line in enumerate(chart.lines):
        line_color = color(line.name, place)
        if chart.scatter:
            axes.plot(
                line.x, line.y, ".", color=line_color, ms=2, alpha=0.6, label=line.name,
                rasterized=True,
            )  # fmt: skip
        elif line.dashed or line.error is None:
            style = "--" if line.dashed else "-"
            axes.plot(line.x, line.y, style, color=line_color, label=line.name)
        else:
            axes.errorbar(
                line.x, line.y, line.error, color=line_color, label=line.name, marker="o", ms=3,
                lw=1.2, elinewidth=0.6, capsize=2,
            )  # fmt: skip
    if is_logarithmic(chart):
        axes.set_xscale("log")
    axes.set_title(chart.title, fontsize=10)
    axes.set_xlabel(chart.x_label, fontsize=9)
    axes.set_ylabel(chart.y_label, fontsize=9)
    axes.tick_params(labelsize=8)
    if legend and len(chart.lines) > 1:
        axes.legend(fontsize=7, frameon=False)
