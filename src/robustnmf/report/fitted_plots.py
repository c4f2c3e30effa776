"""Plots of a fit: components, map of the samples, errors, codes, objective, numbers of components.

At most a few thousand samples are drawn.
"""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage

from robustnmf.estimators import RankSelection
from robustnmf.files.page import (
    Content,
    Picture,
    Plot,
    Row,
    counted,
    display_name,
    figure_bytes,
    mosaic,
)
from robustnmf.report.fitted import Fit
from robustnmf.tables import Table, to_number

MAX_FEATURES, MAX_COMPONENTS = 12, 60
"""Bars of a component, and components that are drawn."""

MIN_AXIS, MAX_AXIS = 20, 3000
"""Least number of features that increase (wavelengths, times) for components to be drawn as lines,
and points of such a line."""

MAX_POINTS, MAX_OUTLIERS, MAX_COLUMNS, MAX_LABELS = 4000, 1000, 240, 6000
"""Points of a plot, outliers among them, samples and cells with labels of the heat map."""

PICTURE_HEIGHTS = 0.5, 24.0
"""Least and largest height of a picture of images in inches; the pixels of others are stretched."""

MANY_DECADES = 1000
"""Ratio of energies above which only powers of ten are marked on their axis."""

MAX_CATEGORIES = 11
"""Colours of the map; rarer categories are drawn as others."""

FAR_OFF, NEAR_ZERO = 20, 1e-3
"""How many times the 90th percentile of the samples the largest is, for an axis of the map to be
logarithmic, and what share of the median is drawn as its end."""

BLUE, RED, GRAY, ORANGE = "#1c6dd0", "#d6336c", "#868e96", "#e8710a"
PALETTE = (
    BLUE, "#e8590c", "#2b8a3e", "#9c36b5", "#b08900", "#0c8599", "#a61e4d", "#5c940d", "#5f3dc4",
    "#845ef7", "#495057",
)  # fmt: skip
LEGEND = {"orientation": "h", "y": -0.22}


def _plot(
    traces: list[dict[str, Any]], description: str, height: int, margin: str, **layout: Any
) -> Plot:
    """Return a plot of this height; ``margin`` has the left, right, top and bottom one."""
    sides = dict(zip("lrtb", map(int, margin.split()), strict=True))
    return Plot(
        traces, {"height": height, "margin": sides, "template": "none", **layout}, description
    )


def _titled(text: str, **axis: Any) -> dict[str, Any]:
    """Return the settings of an axis with a title beside its numbers, however wide these are."""
    return {"title": {"text": text, "standoff": 10}, "automargin": True, **axis}


def _sample_names(fit: Fit, indices: np.ndarray) -> list[str]:
    """Return the names of samples; escaped, as Plotly takes some HTML in texts."""
    return [escape(display_name(fit.table.ids[int(i)])) for i in indices]


def rounded(values: np.ndarray) -> list[float]:
    """Return numbers with five digits, which a plot can show."""
    return [float(f"{value:.5g}") for value in np.asarray(values, dtype=float).tolist()]


def feature_axis(table: Table) -> np.ndarray | None:
    """Return the names of features as numbers (features,), if they increase, as wavelengths do."""
    if not table.named or len(table.features) < MIN_AXIS:
        return None
    numbers = [to_number(name) for name in table.features]
    known = [number for number in numbers if number is not None and np.isfinite(number)]
    if len(known) < len(numbers) or any(one >= other for one, other in pairwise(known)):
        return None
    return np.array(known)


def components_plots(fit: Fit) -> Content:
    """Draw the components: as images, as lines, or as bars of their largest features."""
    components = np.asarray(fit.model.components_, dtype=float)[:MAX_COMPONENTS]
    if fit.image_shape is not None:
        images = components.reshape(-1, *fit.image_shape)
        images = images / np.maximum(images.max(axis=(1, 2), keepdims=True), 1e-300)
        return Picture(_png(mosaic(images)), f"{counted(len(images), 'component')} as images")
    axis = feature_axis(fit.table)
    names = fit.component_names[:MAX_COMPONENTS]
    return Row([_component_plot(fit, axis, *pair) for pair in zip(names, components, strict=True)])


def _component_plot(fit: Fit, axis: np.ndarray | None, name: str, values: np.ndarray) -> Plot:
    """Draw a component (features,) as a line along an axis, or its largest features as bars."""
    title = {"text": name, "x": 0.02, "xanchor": "left"}
    if axis is not None:
        step = -(-len(axis) // MAX_AXIS)
        line = {
            "type": "scatter", "mode": "lines", "x": axis[::step].tolist(),
            "y": values[::step].tolist(), "line": {"color": BLUE, "width": 1.5},
        }  # fmt: skip
        return _plot(
            [line], f"{name} along the features", 240, "50 10 40 40", title=title,
            yaxis={"rangemode": "tozero"},
        )  # fmt: skip
    top = np.argsort(values)[::-1][:MAX_FEATURES][::-1]
    bars = {
        "type": "bar", "orientation": "h", "x": values[top].tolist(), "marker": {"color": BLUE},
        "y": [f"{place}" for place in range(len(top))],
        "text": [escape(fit.feature_name(int(i))) for i in top],
        "textposition": "outside", "cliponaxis": False, "hoverinfo": "x+text",
    }  # fmt: skip
    description = f"{name}: its largest {fit.table.words.feature}s"
    height = 120 + 22 * len(top)
    return _plot([bars], description, height, "10 160 40 40", title=title, yaxis={"visible": False})


def _png(sheet: np.ndarray) -> bytes:
    """Return an image (height, width), with values from 0 to 1, as PNG."""
    from matplotlib.figure import Figure

    height, width = sheet.shape
    inches = 8 * height / width
    within = float(np.clip(inches, *PICTURE_HEIGHTS))
    figure = Figure(figsize=(8, within), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(
        sheet, cmap="gray_r", interpolation="nearest", vmin=0, vmax=1,
        aspect="equal" if within == inches else "auto",
    )  # fmt: skip
    axes.set_axis_off()
    return figure_bytes(figure, dpi=100)


def objective_plot(fit: Fit) -> Plot:
    """Plot the objective by iteration."""
    history = [float(value) for value in np.asarray(fit.model.objective_history_)]
    line = {"type": "scatter", "mode": "lines", "y": history, "line": {"color": BLUE}}
    return _plot(
        [line], "The objective, which falls with every iteration", 320, "70 10 20 50",
        xaxis=_titled("iterations"), yaxis=_titled("objective"),
    )  # fmt: skip


def rank_plot(selection: RankSelection) -> Plot:
    """Plot the error of hidden entries by rank, and the silhouette on a second axis."""
    chosen = selection.ranks == selection.recommended
    ranks = selection.ranks.tolist()
    curves = [{
        "type": "scatter", "mode": "lines+markers", "x": ranks,
        "y": selection.mean.tolist(), "line": {"color": BLUE}, "name": "error of hidden entries",
        "marker": {"size": 8, "color": [RED if is_chosen else BLUE for is_chosen in chosen]},
        "error_y": {"type": "data", "array": selection.standard_error.tolist()},
    }]  # fmt: skip
    second_axis = {}
    if selection.silhouette is not None:
        known = [None if value != value else value for value in selection.silhouette.tolist()]
        curves.append({
            "type": "scatter", "mode": "lines+markers", "x": ranks, "y": known, "yaxis": "y2",
            "line": {"color": ORANGE}, "marker": {"symbol": "square"}, "name": "silhouette",
        })  # fmt: skip
        second_axis["yaxis2"] = {
            "title": {"text": "silhouette (stability)", "font": {"color": ORANGE}},
            "overlaying": "y", "side": "right", "showgrid": False, "range": [-0.05, 1.05],
            "tickmode": "linear", "dtick": 0.25,
        }  # fmt: skip
    return _plot(
        curves, "Error of hidden entries, and stability, by the number of components", 320,
        "70 60 40 50" if second_axis else "70 10 40 50",
        title={"text": f"recommended: {selection.recommended}"}, showlegend=False,
        xaxis=_titled("number of components"), yaxis=_titled("error of hidden entries"),
        **second_axis,
    )  # fmt: skip


def draw_samples(fit: Fit, most: int = MAX_POINTS) -> np.ndarray:
    """Return the indices of the samples to plot: the most outlying, and others at random."""
    count = len(fit.codes)
    if count <= most:
        return np.arange(count)
    outlying = fit.order[: min(MAX_OUTLIERS, most // 4, int(fit.outliers.sum()))]
    rest = np.random.default_rng(0).permutation(count)[:most]
    rest = rest[~np.isin(rest, outlying)]
    return np.sort(np.concatenate([outlying, rest[: most - len(outlying)]]))


def energies_plot(fit: Fit) -> Plot:
    """Plot the energies in increasing order with the cutoff, above which weights fall."""
    energies = np.asarray(fit.model.energies_, dtype=float)
    order = np.argsort(energies, kind="stable")
    order = order[energies[order] > 0]
    count = len(order)
    places = np.arange(count)
    if count > MAX_POINTS:  # all of the largest, and every so many of the others
        head = np.linspace(0, count - MAX_OUTLIERS, MAX_POINTS - MAX_OUTLIERS, endpoint=False)
        places = np.concatenate([np.unique(head.astype(int)), places[-MAX_OUTLIERS:]])
    traces: list[dict[str, Any]] = []
    for name, color, is_outlier in (("inliers", BLUE, False), ("outliers", RED, True)):
        points = places[fit.outliers[order[places]] == is_outlier]
        if len(points):
            traces.append({
                "type": "scatter", "mode": "markers", "name": name, "hoverinfo": "text+y",
                "x": (points + 1).tolist(), "y": rounded(energies[order[points]]),
                "text": _sample_names(fit, order[points]), "marker": {"color": color, "size": 4},
            })  # fmt: skip
    drawn = energies[order[places]]
    if fit.cutoffs is not None and count:
        cutoffs = fit.cutoffs[order[places]]
        drawn = np.concatenate([drawn, cutoffs])
        traces.append({
            "type": "scatter", "mode": "markers", "name": "cutoff", "hoverinfo": "y",
            "x": (places + 1).tolist(), "y": rounded(cutoffs),
            "marker": {"color": GRAY, "size": 4, "symbol": "line-ew-open"},
        })  # fmt: skip
    return _plot(
        traces, "Energies in increasing order, with the cutoff", 340, "70 10 20 50",
        xaxis=_titled(f"{fit.table.words.sample}s, in increasing order"),
        yaxis=_titled("energy", **log_axis(drawn)), legend=LEGEND | {"y": -0.3}, showlegend=True,
        hovermode="closest",
    )  # fmt: skip


def log_axis(values: np.ndarray) -> dict[str, Any]:
    """Return the settings of a logarithmic axis for positive values, every tick with its number."""
    axis: dict[str, Any] = {"type": "log", "exponentformat": "power", "dtick": 1}
    if not len(values) or values.max() > MANY_DECADES * values.min():
        return axis
    low, high = np.log10([values.min(), values.max()])
    margin = 0.05 * max(high - low, 0.1)
    decades = 10.0 ** np.arange(np.floor(low - margin), np.ceil(high + margin) + 1)
    ticks = np.outer(decades, [1, 2, 5] if high - low > 0.5 else np.arange(1, 10, 0.5)).ravel()
    ticks = ticks[(ticks >= 10 ** (low - margin)) & (ticks <= 10 ** (high + margin))]
    if len(ticks) < 2:
        return {"type": "linear"}
    return {"type": "log", "tickvals": rounded(ticks), "ticktext": [f"{t:,.6g}" for t in ticks]}


def codes_plot(fit: Fit) -> tuple[Plot, int]:
    """Plot codes as a heat map, samples ordered by their main component; return how many too."""
    indices = draw_samples(fit, MAX_COLUMNS)
    codes = np.asarray(fit.codes[indices], dtype=float)
    inside = ~fit.outliers[indices]
    largest = codes[inside].max(axis=0) if inside.any() else codes.max(axis=0)
    relative = np.minimum(codes / np.where(largest > 0, largest, 1.0), 1.0)
    main = relative.argmax(axis=1)
    order = np.lexsort((-relative.max(axis=1), main))
    trace: dict[str, Any] = {
        "type": "heatmap", "z": [rounded(row) for row in relative[order].T],
        "y": fit.component_names, "zmin": 0, "zmax": 1,
        "colorscale": [[0, "rgba(28,109,208,0)"], [1, BLUE]], "hoverinfo": "y+z",
        "colorbar": {"thickness": 12, "len": 0.9},
    }  # fmt: skip
    if codes.size <= MAX_LABELS:
        names = _sample_names(fit, indices[order])
        trace |= {"text": [names] * codes.shape[1], "hoverinfo": "y+z+text"}
    plot = _plot(
        [trace], "Codes, relative to the largest of each component",
        140 + 24 * min(codes.shape[1], 30), "60 10 20 40",
        xaxis=_titled(
            f"{fit.table.words.sample}s, by their main {fit.table.words.component}",
            showticklabels=False, ticks="", showgrid=False,
        ),
        yaxis={"autorange": "reversed", "automargin": True, "showgrid": False, "ticks": ""},
    )  # fmt: skip
    return plot, len(indices)


def map_plot(fit: Fit, indices: np.ndarray) -> Plot:
    """Plot samples by the codes of one or two components, or by the shares of more components.

    More components are the corners of a polygon (RadViz: Hoffman et al., 1997): a sample lies at
    the mean of the corners, weighted by the squared shares of the components in it.
    """
    layout: dict[str, Any] = {"legend": LEGEND, "showlegend": True, "hovermode": "closest"}
    if fit.codes.shape[1] <= 2:
        height, margin = 440, "60 10 20 50"
        columns = [*np.asarray(fit.codes[indices], dtype=float).T, fit.model.energies_[indices]]
        titles = [*(f"code of {name}" for name in fit.component_names), "energy"]
        x, x_axis = _spread_out(columns[0])
        y, y_axis = _spread_out(np.asarray(columns[1]))
        layout |= {"xaxis": _titled(titles[0], **x_axis), "yaxis": _titled(titles[1], **y_axis)}
        labels = []
    else:
        height, margin = 560, "10 10 20 50"
        shares = fit.component_shares(indices)
        corners = component_corners(shares)
        squares = shares**2
        totals = squares.sum(axis=1, keepdims=True)
        x, y = (squares / np.where(totals > 0, totals, 1.0) @ corners).T
        # All components in view, whatever samples there are, and circles round.
        layout["xaxis"] = {"visible": False, "range": [-1.7, 1.7], "constrain": "domain"}
        layout["yaxis"] = {"visible": False, "range": [-1.15, 1.15], "scaleanchor": "x"}
        layout["legend"] = LEGEND | {"y": -0.02}
        labels = [_corner_labels(fit.component_names, corners)]
    traces = []
    kind = "scattergl" if len(indices) > 1000 else "scatter"
    for name, mask, marker in _marked_groups(fit, indices):
        points = np.flatnonzero(mask)
        if len(points):
            traces.append({
                "mode": "markers", "x": rounded(x[points]), "y": rounded(y[points]),
                "hoverinfo": "text", "text": _sample_names(fit, indices[points]), "type": kind,
                "name": name, "marker": marker,
            })  # fmt: skip
    if any("coloraxis" in trace["marker"] for trace in traces):
        title = escape(display_name(fit.color_by or ""))
        layout["coloraxis"] = {
            "colorscale": "Viridis",
            "colorbar": {"title": {"text": title}, "thickness": 12, "len": 0.8},
        }
    return _plot(traces + labels, "Map by the codes", height, margin, **layout)


def _marked_groups(fit: Fit, indices: np.ndarray) -> list[tuple[str, np.ndarray, dict[str, Any]]]:
    """Return the groups of the samples of the map: name, which samples, and their marker."""
    outliers = fit.outliers[indices]
    if fit.table.colors is None:
        return [
            ("inliers", ~outliers, {"color": BLUE, "size": 5, "opacity": 0.75}),
            ("outliers", outliers, {"color": RED, "size": 6, "opacity": 0.8}),
        ]
    groups = []
    for name, mask, color in _color_groups(fit, indices):
        for is_outlier in (False, True):
            members = mask & (outliers == is_outlier)
            marker: dict[str, Any] = {"size": 8 if is_outlier else 5, "opacity": 0.75}
            marker["symbol"] = "x" if is_outlier else "circle"
            if isinstance(color, str):
                marker["color"] = color
            else:
                marker |= {"color": color[members].tolist(), "coloraxis": "coloraxis"}
            groups.append((f"{name}, outliers" if is_outlier else name, members, marker))
    return groups


def group_labels(colors: np.ndarray) -> np.ndarray | None:
    """Return the group of every sample (samples,) as a text; None for a column of many numbers."""
    if colors.dtype.kind != "f":
        return colors.astype(str)
    if len(np.unique(colors[np.isfinite(colors)])) > MAX_CATEGORIES:
        return None
    return np.array([f"{value:g}" for value in colors.tolist()])


def _color_groups(fit: Fit, indices: np.ndarray) -> list[tuple[str, np.ndarray, Any]]:
    """Return the groups of samples of one colour: name, which samples, and colour or values."""
    colors = np.asarray(fit.table.colors)[indices]
    texts = group_labels(colors)
    if texts is None:
        known = np.isfinite(colors)
        many: list[tuple[str, np.ndarray, Any]] = [(f"{fit.table.words.sample}s", known, colors)]
        rest = "missing" if np.isnan(colors[~known]).all() else "missing or infinite"
        return many if known.all() else [*many, (rest, ~known, GRAY)]
    common, counts = np.unique(texts, return_counts=True)
    if len(common) > MAX_CATEGORIES:
        common = common[np.sort(np.argsort(-counts, kind="stable")[: MAX_CATEGORIES - 1])]
    groups = [
        (escape(display_name(str(value))), texts == value, color)
        for value, color in zip(common, PALETTE, strict=False)
    ]
    others = ~np.isin(texts, common)
    return [*groups, ("others", others, GRAY)] if others.any() else groups


def _spread_out(values: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
    """Return values and the settings of their axis: logarithmic if a few dwarf the others."""
    positive = values[values > 0]
    if not len(positive) or values.max() <= FAR_OFF * np.quantile(values, 0.9):
        return values, {}
    values = np.maximum(values, max(positive.min(), NEAR_ZERO * np.median(positive)))
    return values, log_axis(values)


def component_corners(shares: np.ndarray) -> np.ndarray:
    """Place components on a circle (k, 2) by their shares (samples, k) in samples.

    Components that occur together are neighbours, so that samples of both lie between them.
    """
    norms = np.linalg.norm(shares, axis=0)
    unit = (shares / np.where(norms > 0, norms, 1.0)).T
    order = leaves_list(linkage(unit, "average", optimal_ordering=True))
    angles = np.empty(len(order))
    angles[order] = np.pi / 2 - 2 * np.pi * np.arange(len(order)) / len(order)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _corner_labels(names: list[str], corners: np.ndarray) -> dict[str, Any]:
    """Name the corners (k, 2) of the map."""
    sides = ["left" if x < -0.1 else "right" if x > 0.1 else "center" for x in corners[:, 0]]
    heights = ["top" if y > 0.5 else "bottom" if y < -0.5 else "middle" for y in corners[:, 1]]
    x, y = 1.04 * corners.T
    return {
        "type": "scatter", "mode": "text", "x": rounded(x), "y": rounded(y), "text": names,
        "textposition": [" ".join(pair) for pair in zip(heights, sides, strict=True)],
        "hoverinfo": "skip", "showlegend": False,
    }  # fmt: skip
