"""How the number of parts was chosen: the section of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from robustnmf.report.fitted_plots import BLUE, RED
from robustnmf.report.names import counted
from robustnmf.report.page import Content, Paragraph, Plot

if TYPE_CHECKING:
    from robustnmf.estimators import RankSelection

ORANGE = "#e8710a"


def rank_curve(selection: RankSelection) -> list[Content]:
    """Return the text and the plot of a comparison of numbers of parts."""
    return [Paragraph(_text(selection)), _plot(selection)]


def _text(selection: RankSelection) -> str:
    """Say in words how the number of parts was chosen."""
    text = (
        f"Entries were hidden and predicted with {selection.ranks[0]} to {selection.ranks[-1]} "
        f"parts; the error is least with {counted(selection.best, 'part')}. "
    )
    if selection.silhouette is not None:
        text += (
            "Fits from random starts were compared: the silhouette is one where every start finds "
            "the same parts. "
        )
    return text + selection.reason


def _plot(selection: RankSelection) -> Plot:
    """Plot the error of hidden entries by rank, and the silhouette on a second axis."""
    chosen = selection.ranks == selection.recommended
    ranks = selection.ranks.tolist()
    curves = [{
        "type": "scatter", "mode": "lines+markers", "x": ranks,
        "y": selection.mean.tolist(), "line": {"color": BLUE}, "name": "error of hidden entries",
        "marker": {"size": 8, "color": [RED if is_chosen else BLUE for is_chosen in chosen]},
        "error_y": {"type": "data", "array": selection.standard_error.tolist()},
    }]  # fmt: skip
    layout: dict[str, Any] = {
        "title": {"text": f"recommended: {selection.recommended}"}, "height": 320,
        "xaxis": {"title": {"text": "number of parts"}}, "template": "none",
        "yaxis": {"title": {"text": "error of hidden entries"}}, "showlegend": False,
        "margin": {"l": 70, "r": 10, "t": 40, "b": 50},
    }  # fmt: skip
    if selection.silhouette is not None:
        known = [None if value != value else value for value in selection.silhouette.tolist()]
        curves.append({
            "type": "scatter", "mode": "lines+markers", "x": ranks, "y": known, "yaxis": "y2",
            "line": {"color": ORANGE}, "marker": {"symbol": "square"}, "name": "silhouette",
        })  # fmt: skip
        layout["margin"]["r"] = 60
        layout["yaxis2"] = {
            "title": {"text": "silhouette (stability)", "font": {"color": ORANGE}},
            "overlaying": "y", "side": "right", "showgrid": False, "range": [-0.05, 1.05],
            "tickmode": "linear", "dtick": 0.25,
        }  # fmt: skip
    return Plot(curves, layout, "Error of hidden entries, and stability, by the number of parts")
