"""The map of a fit: samples by the parts in them, in one plane."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage

from robustnmf.report.fitted_data import Fit
from robustnmf.report.fitted_plots import BLUE, GRAY, LEGEND, MARGIN, RED, log_axis, rounded
from robustnmf.report.names import display_name
from robustnmf.report.page import Plot

MAX_CATEGORIES = 11
"""Colours of the map; what is rarer is drawn as others."""

FAR_OFF, NEAR_ZERO = 20, 1e-3
"""How many times the 90th percentile of the samples the largest is, for an axis of the map to be
logarithmic, and what share of the median is drawn as its end."""

PALETTE = (
    BLUE, "#e8590c", "#2b8a3e", "#9c36b5", "#b08900", "#0c8599", "#a61e4d", "#5c940d", "#5f3dc4",
    "#845ef7", "#495057",
)  # fmt: skip


def map_plot(fit: Fit, indices: np.ndarray) -> Plot:
    """Plot samples by the amounts of one or two parts, or by the shares of more parts.

    More parts are the corners of a polygon (RadViz: Hoffman et al., 1997): a sample lies at the
    mean of the corners, weighted by the squared shares of the parts in it.
    """
    corners = None
    if fit.codes.shape[1] > 2:
        shares = fit.part_shares(indices)
        corners = part_corners(shares)
        x, y = _places_between(corners, shares).T
        titles = ("", "")
        x_axis: dict[str, Any] = {}
        y_axis: dict[str, Any] = {}
    else:
        x, y, titles = _places_by_amount(fit, indices)
        x, x_axis = _spread_out(x)
        y, y_axis = _spread_out(y)
    traces: list[dict[str, Any]] = []
    groups: list[tuple[str, np.ndarray, Any]]
    if fit.table.colors is None:
        groups = [("follow the parts", ~fit.outliers[indices], BLUE)]
    else:
        groups = _color_groups(np.asarray(fit.table.colors)[indices])
    outliers = fit.outliers[indices]
    is_colored = fit.table.colors is not None
    kind = "scattergl" if len(indices) > 1000 else "scatter"
    for name, mask, color in groups:
        is_scale = not isinstance(color, str)
        for is_outlier in (False, True) if is_colored else (False,):
            points = np.flatnonzero(mask & (outliers == is_outlier))
            if not len(points):
                continue
            marker: dict[str, Any] = {"size": 8 if is_outlier else 5, "opacity": 0.75}
            marker["symbol"] = "x" if is_outlier else "circle"
            if is_scale:
                values = color[points]
                marker |= {
                    "color": values.tolist(),
                    "colorscale": "Viridis",
                    "coloraxis": "coloraxis",
                }
            else:
                marker["color"] = color
            traces.append(
                _points(fit, indices, points, x, y)
                | {"type": kind, "name": f"{name}, outliers" if is_outlier else name}
                | {"marker": marker}
            )
    if not is_colored and outliers.any():
        marker = {"color": RED, "size": 6, "opacity": 0.8}
        points = np.flatnonzero(outliers)
        traces.append(
            _points(fit, indices, points, x, y)
            | {"type": kind, "name": "outliers", "marker": marker}
        )
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": titles[0]}, **x_axis},
        "yaxis": {"title": {"text": titles[1]}, **y_axis},
        "height": 440, "margin": MARGIN, "legend": LEGEND, "template": "none",
        "showlegend": True, "hovermode": "closest",
    }  # fmt: skip
    if corners is not None:
        traces.append(_corner_labels(corners))
        # All parts in view, whatever samples there are, and circles round.
        layout["xaxis"] = {"visible": False, "range": [-1.4, 1.4], "constrain": "domain"}
        layout["yaxis"] = {"visible": False, "range": [-1.15, 1.15], "scaleanchor": "x"}
        layout |= {"height": 560, "legend": LEGEND | {"y": -0.02}}
    if any("coloraxis" in trace.get("marker", {}) for trace in traces):
        title = escape(display_name(fit.color_by or ""))
        layout["coloraxis"] = {
            "colorscale": "Viridis",
            "colorbar": {"title": {"text": title}, "thickness": 12, "len": 0.8},
        }
    return Plot(traces, layout, "Map of the samples by their codes")


def _points(
    fit: Fit, indices: np.ndarray, points: np.ndarray, x: np.ndarray, y: np.ndarray
) -> dict[str, Any]:
    """Return the places and names of some of the samples that are drawn."""
    return {
        "mode": "markers", "x": rounded(x[points]), "y": rounded(y[points]), "hoverinfo": "text",
        "text": [escape(display_name(fit.table.ids[int(i)])) for i in indices[points]],
    }  # fmt: skip


def _places_by_amount(
    fit: Fit, indices: np.ndarray
) -> tuple[np.ndarray, np.ndarray, tuple[str, str]]:
    """Return where samples of one or two parts are (len(indices),) twice, and titles of axes."""
    codes = np.asarray(fit.codes[indices], dtype=float)
    if codes.shape[1] == 1:
        energies = np.asarray(fit.model.energies_)[indices]
        return codes[:, 0], energies, ("amount of part 1", "energy")
    return codes[:, 0], codes[:, 1], ("amount of part 1", "amount of part 2")


def _spread_out(values: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
    """Return values and the settings of their axis: logarithmic if a few dwarf the others.

    On a logarithmic axis, values near zero are drawn at its end.
    """
    positive = values[values > 0]
    if not len(positive) or values.max() <= FAR_OFF * np.quantile(values, 0.9):
        return values, {}
    least = max(float(positive.min()), NEAR_ZERO * float(np.median(positive)))
    values = np.maximum(values, least)
    return values, log_axis(values)


def _places_between(corners: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return where samples (samples, 2) with shares (samples, k) of the parts are."""
    squares = shares**2
    totals = squares.sum(axis=1, keepdims=True)
    return squares / np.where(totals > 0, totals, 1.0) @ corners


def part_corners(shares: np.ndarray) -> np.ndarray:
    """Place parts on a circle (k, 2) by their shares (samples, k) in samples.

    Parts that occur together are neighbours, so that samples of both lie between them.
    """
    norms = np.linalg.norm(shares, axis=0)
    unit = (shares / np.where(norms > 0, norms, 1.0)).T
    order = leaves_list(linkage(unit, "average", optimal_ordering=True))
    angles = np.empty(len(order))
    angles[order] = np.pi / 2 - 2 * np.pi * np.arange(len(order)) / len(order)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _corner_labels(corners: np.ndarray) -> dict[str, Any]:
    """Name the corners (k, 2) of the map."""
    names = [f"part {j + 1}" for j in range(len(corners))]
    outside = corners * (1.13, 1.07)  # texts are wider than high
    return {
        "type": "scatter", "mode": "text", "x": rounded(outside[:, 0]),
        "y": rounded(outside[:, 1]), "text": names, "hoverinfo": "skip", "showlegend": False,
    }  # fmt: skip


def _color_groups(colors: np.ndarray) -> list[tuple[str, np.ndarray, Any]]:
    """Return the groups of samples of one colour: name, which samples, and colour or values."""
    if colors.dtype.kind == "f":
        known = np.isfinite(colors)
        if len(np.unique(colors[known])) > MAX_CATEGORIES:
            groups: list[tuple[str, np.ndarray, Any]] = [("samples", known, colors)]
            rest = "missing" if np.isnan(colors[~known]).all() else "missing or infinite"
            return groups if known.all() else [*groups, (rest, ~known, GRAY)]
        texts = np.array([f"{value:g}" for value in colors], dtype=object)
    else:
        texts = colors
    values, counts = np.unique(texts.astype(str), return_counts=True)
    if len(values) > MAX_CATEGORIES:
        common = values[np.sort(np.argsort(-counts, kind="stable")[: MAX_CATEGORIES - 1])]
    else:
        common = values
    groups = [
        (escape(display_name(str(value))), texts == value, color)
        for value, color in zip(common, PALETTE, strict=False)
    ]
    others = ~np.isin(texts.astype(str), common)
    return [*groups, ("others", others, GRAY)] if others.any() else groups
