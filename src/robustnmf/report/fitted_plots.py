"""Plots of the samples of a fit: map, sorted energies, heat map of codes; at most some thousand."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from robustnmf.report.fitted_data import Fit
from robustnmf.report.names import display_name
from robustnmf.report.page import Plot

MAX_POINTS, MAX_OUTLIERS, MAX_COLUMNS, MAX_LABELS = 4000, 1000, 240, 6000
"""Points of a plot, outliers among them, samples and cells with labels of the heat map."""

MAX_CATEGORIES = 11
"""Colours of the map; what is rarer is drawn as others."""

BLUE, RED, GRAY = "#1c6dd0", "#d6336c", "#868e96"
PALETTE = (
    BLUE, "#e8590c", "#2b8a3e", "#9c36b5", "#b08900", "#0c8599", "#a61e4d", "#5c940d", "#5f3dc4",
    "#845ef7", "#495057",
)  # fmt: skip
MARGIN = {"l": 60, "r": 10, "t": 20, "b": 50}
LEGEND = {"orientation": "h", "y": -0.22}


def draw_samples(fit: Fit, most: int = MAX_POINTS) -> np.ndarray:
    """Return the indices of the samples to plot: the most outlying, and others at random."""
    count = len(fit.codes)
    if count <= most:
        return np.arange(count)
    outlying = fit.order[: min(MAX_OUTLIERS, most // 4)]
    outlying = outlying[fit.outliers[outlying]]
    rest = np.random.default_rng(0).permutation(count)[:most]
    rest = rest[~np.isin(rest, outlying)]
    return np.sort(np.concatenate([outlying, rest[: most - len(outlying)]]))


def count_note(drawn: int, count: int) -> str:
    """Say in words how many of the samples a plot shows, if not all."""
    if drawn >= count:
        return ""
    return f" Shown are {drawn:,} of {count:,} samples: the most outlying, and others at random."


def map_plot(fit: Fit, indices: np.ndarray) -> Plot:
    """Plot samples by their codes: two parts, or a plane of the shares of more parts.

    The plane is that of the first principal components of the samples that are no outliers.
    """
    x, y, titles = _places(fit, indices)
    traces = []
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
        "xaxis": {"title": {"text": titles[0]}}, "yaxis": {"title": {"text": titles[1]}},
        "height": 440, "margin": MARGIN, "legend": LEGEND, "template": "none",
        "showlegend": True, "hovermode": "closest",
    }  # fmt: skip
    if any("coloraxis" in trace["marker"] for trace in traces):
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
        "mode": "markers", "x": _short(x[points]), "y": _short(y[points]), "hoverinfo": "text",
        "text": [escape(display_name(fit.table.ids[int(i)])) for i in indices[points]],
    }  # fmt: skip


def _places(fit: Fit, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[str, str]]:
    """Return where samples are drawn (len(indices),) twice, and the titles of the axes."""
    codes = np.asarray(fit.codes[indices], dtype=float)
    if codes.shape[1] == 1:
        energies = np.asarray(fit.model.energies_)[indices]
        return codes[:, 0], energies, ("amount of part 1", "energy")
    if codes.shape[1] == 2:
        return codes[:, 0], codes[:, 1], ("amount of part 1", "amount of part 2")
    norms = np.linalg.norm(codes, axis=1, keepdims=True)
    unit = codes / np.where(norms > 0, norms, 1.0)
    inside = ~fit.outliers[indices]
    basis = unit[inside] if inside.sum() > 2 else unit
    if len(basis) < 2 or np.ptp(basis, axis=0).max() <= 0:
        return unit[:, 0], unit[:, 1], ("share of part 1", "share of part 2")
    pca = PCA(2, random_state=0).fit(basis)
    plane = pca.transform(unit)
    shares = [f"{share:.0%}" for share in np.nan_to_num(pca.explained_variance_ratio_)]
    titles = (f"first direction ({shares[0]})", f"second direction ({shares[1]})")
    return plane[:, 0], plane[:, 1], titles


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


def energies_plot(fit: Fit) -> Plot:
    """Plot the energies in increasing order with the cutoff, beyond which weights fall."""
    energies = np.asarray(fit.model.energies_, dtype=float)
    order = np.argsort(energies, kind="stable")
    order = order[energies[order] > 0]
    count = len(order)
    places = np.arange(count)
    if count > MAX_POINTS:  # all of the largest, and every so many of the others
        head = np.linspace(0, count - MAX_OUTLIERS, MAX_POINTS - MAX_OUTLIERS, endpoint=False)
        places = np.concatenate([np.unique(head.astype(int)), places[-MAX_OUTLIERS:]])
    traces: list[dict[str, Any]] = []
    for name, color, is_outlier in (("follow the parts", BLUE, False), ("outliers", RED, True)):
        points = places[fit.outliers[order[places]] == is_outlier]
        if len(points):
            traces.append({
                "type": "scatter", "mode": "markers", "name": name, "hoverinfo": "text+y",
                "x": (points + 1).tolist(), "y": _short(energies[order[points]]),
                "text": [escape(display_name(fit.table.ids[int(i)])) for i in order[points]],
                "marker": {"color": color, "size": 4},
            })  # fmt: skip
    cutoff = getattr(getattr(fit.model, "weighting_", None), "cutoff", None)
    if isinstance(cutoff, (int, float)) and 0 < cutoff < np.inf and count:
        traces.append({
            "type": "scatter", "mode": "lines", "name": "cutoff", "hoverinfo": "y",
            "x": [1, count], "y": [float(cutoff)] * 2, "line": {"color": GRAY, "dash": "dash"},
        })  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "samples, in the order of their energies"}},
        "yaxis": {"title": {"text": "energy"}, "type": "log", "exponentformat": "power"},
        "height": 340, "margin": MARGIN | {"l": 70}, "legend": LEGEND | {"y": -0.3},
        "template": "none", "showlegend": True, "hovermode": "closest",
    }  # fmt: skip
    return Plot(traces, layout, "Energies of the samples in increasing order, with the cutoff")


def codes_plot(fit: Fit) -> tuple[Plot, int]:
    """Plot the codes of samples as a heat map, ordered by their main part; return how many too."""
    indices = draw_samples(fit, MAX_COLUMNS)
    codes = np.asarray(fit.codes[indices], dtype=float)
    inside = ~fit.outliers[indices]
    largest = codes[inside].max(axis=0) if inside.any() else codes.max(axis=0)
    relative = np.minimum(codes / np.where(largest > 0, largest, 1.0), 1.0)
    main = relative.argmax(axis=1)
    order = np.lexsort((-relative.max(axis=1), main))
    trace: dict[str, Any] = {
        "type": "heatmap", "z": [_short(row) for row in relative[order].T],
        "y": [f"part {j + 1}" for j in range(codes.shape[1])], "zmin": 0, "zmax": 1,
        "colorscale": [[0, "rgba(28,109,208,0)"], [1, BLUE]], "hoverinfo": "y+z",
        "colorbar": {"thickness": 12, "len": 0.9},
    }  # fmt: skip
    if codes.size <= MAX_LABELS:
        names = [escape(display_name(fit.table.ids[int(i)])) for i in indices[order]]
        trace |= {"text": [names] * codes.shape[1], "hoverinfo": "y+z+text"}
    layout = {
        "xaxis": {"title": {"text": "samples, by their main part"}, "showticklabels": False},
        "yaxis": {"autorange": "reversed", "automargin": True}, "template": "none",
        "height": 140 + 24 * min(codes.shape[1], 30), "margin": MARGIN | {"b": 40},
    }  # fmt: skip
    return Plot([trace], layout, "Codes of the samples, of each part over its largest"), len(
        indices
    )


def _short(values: np.ndarray) -> list[float]:
    """Return numbers with five digits, which a plot can show."""
    return [float(f"{value:.5g}") for value in np.asarray(values, dtype=float).tolist()]
