"""Draw charts and images of an outcome: interactive for the page, as PNG and SVG for files."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from robustnmf.experiments.outcome import Chart, Images, Outcome
from robustnmf.report.page import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = {
    "EucNMF": "#4c4c4c",
    "ConvexNMF": "#b07d2b",
    "NMFL2": "#6a51a3",
    "HuberRNMF": "#2b8a3e",
    "FWRNMF": "#d6336c",
    "EWRNMF": "#1c6dd0",
}
OTHER_COLORS = ("#1c6dd0", "#d6336c", "#2b8a3e", "#b07d2b", "#6a51a3", "#4c4c4c")
COLUMNS = 3


def color(name: str, place: int) -> str:
    """Return the color of a line: that of its method, or else by its place in the chart."""
    return COLORS.get(name, OTHER_COLORS[place % len(OTHER_COLORS)])


def interactive(chart: Chart) -> Plot:
    """Return a chart for the page; it has hover texts and a legend that hides lines."""
    data: list[dict[str, Any]] = []
    for place, line in enumerate(chart.lines):
        line_color = color(line.name, place)
        trace: dict[str, Any] = {
            "type": "scatter",
            "name": line.name,
            "x": list(line.x),
            "y": list(line.y),
            "mode": "markers" if chart.scatter else "lines+markers",
            "line": {"color": line_color, "dash": "dash" if line.dashed else "solid"},
            "marker": {"color": line_color, "size": 4 if chart.scatter else 6, "opacity": 0.7},
        }
        if line.error is not None and not line.dashed:
            trace["error_y"] = {"type": "data", "array": list(line.error), "thickness": 1}
        data.append(trace)
    layout = {
        "title": {"text": chart.title, "font": {"size": 15}},
        "xaxis": {
            "title": {"text": chart.x_label},
            "type": "log" if is_logarithmic(chart) else "-",
        },
        "yaxis": {"title": {"text": chart.y_label}},
        "margin": {"l": 60, "r": 10, "t": 40, "b": 50},
        "legend": {"orientation": "h", "y": -0.25},
        "showlegend": len(chart.lines) > 1,
        "template": "none",
    }
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

    columns = min(COLUMNS if len(panels) > 2 else 2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.6 * columns, 3.5 * rows), layout="constrained")
    figure.suptitle(outcome.title, fontsize=12)
    for place, panel in enumerate(panels):
        axes = figure.add_subplot(rows, columns, place + 1)
        if isinstance(panel, Images):
            draw_images(axes, panel)
        else:
            draw_chart(axes, panel, legend=place == 0)
    return {kind: _save(figure, kind) for kind in ("png", "svg")}


def _save(figure: Figure, kind: str) -> bytes:
    """Return a figure as the bytes of a PNG or SVG file; the same bytes every time."""
    from matplotlib import rc_context

    buffer = BytesIO()
    with rc_context({"svg.hashsalt": "robustnmf"}):
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(buffer, format=kind, dpi=110, metadata=metadata)
    return buffer.getvalue()


def draw_chart(axes: Axes, chart: Chart, *, legend: bool) -> None:
    """Draw a chart."""
    for place, line in enumerate(chart.lines):
        line_color = color(line.name, place)
        if chart.scatter:
            axes.plot(
                line.x,
                line.y,
                ".",
                color=line_color,
                ms=2,
                alpha=0.6,
                label=line.name,
                rasterized=True,
            )
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


def draw_images(axes: Axes, panel: Images) -> None:
    """Draw images (count, height, width) in a mosaic."""
    axes.imshow(mosaic(panel.images), cmap="gray_r", interpolation="nearest", vmin=0, vmax=1)
    axes.set_title(panel.title, fontsize=10)
    axes.set_axis_off()


def mosaic(images: np.ndarray) -> np.ndarray:
    """Arrange images (count, height, width) in rows and columns, with lines between them."""
    count, height, width = images.shape
    columns = int(np.ceil(np.sqrt(count * 1.25)))
    rows = -(-count // columns)
    sheet = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1), 0.5)
    for place, image in enumerate(images):
        top, left = (place // columns) * (height + 1), (place % columns) * (width + 1)
        sheet[top : top + height, left : left + width] = image
    return sheet
