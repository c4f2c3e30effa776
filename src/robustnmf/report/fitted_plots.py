"""Plots of the samples of a fit: sorted energies, heat map of codes; at most some thousand."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from robustnmf.report.fitted_data import Fit
from robustnmf.report.names import display_name
from robustnmf.report.page import Plot

MAX_POINTS, MAX_OUTLIERS, MAX_COLUMNS, MAX_LABELS = 4000, 1000, 240, 6000
"""Points of a plot, outliers among them, samples and cells with labels of the heat map."""

MANY_DECADES = 1000
"""Ratio of energies from which on only powers of ten are marked on their axis."""

BLUE, RED, GRAY = "#1c6dd0", "#d6336c", "#868e96"
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
                "x": (points + 1).tolist(), "y": rounded(energies[order[points]]),
                "text": [escape(display_name(fit.table.ids[int(i)])) for i in order[points]],
                "marker": {"color": color, "size": 4},
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
    layout = {
        "xaxis": {"title": {"text": "samples, in the order of their energies"}},
        "yaxis": {"title": {"text": "energy"}, **log_axis(drawn)},
        "height": 340, "margin": MARGIN | {"l": 70}, "legend": LEGEND | {"y": -0.3},
        "template": "none", "showlegend": True, "hovermode": "closest",
    }  # fmt: skip
    return Plot(traces, layout, "Energies of the samples in increasing order, with the cutoff")


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
    """Plot the codes of samples as a heat map, ordered by their main part; return how many too."""
    indices = draw_samples(fit, MAX_COLUMNS)
    codes = np.asarray(fit.codes[indices], dtype=float)
    inside = ~fit.outliers[indices]
    largest = codes[inside].max(axis=0) if inside.any() else codes.max(axis=0)
    relative = np.minimum(codes / np.where(largest > 0, largest, 1.0), 1.0)
    main = relative.argmax(axis=1)
    order = np.lexsort((-relative.max(axis=1), main))
    trace: dict[str, Any] = {
        "type": "heatmap", "z": [rounded(row) for row in relative[order].T],
        "y": [f"part {j + 1}" for j in range(codes.shape[1])], "zmin": 0, "zmax": 1,
        "colorscale": [[0, "rgba(28,109,208,0)"], [1, BLUE]], "hoverinfo": "y+z",
        "colorbar": {"thickness": 12, "len": 0.9},
    }  # fmt: skip
    if codes.size <= MAX_LABELS:
        names = [escape(display_name(fit.table.ids[int(i)])) for i in indices[order]]
        trace |= {"text": [names] * codes.shape[1], "hoverinfo": "y+z+text"}
    layout = {
        "xaxis": {
            "title": {"text": "samples, by their main part"}, "showticklabels": False, "ticks": "",
            "showgrid": False,
        },
        "yaxis": {"autorange": "reversed", "automargin": True, "showgrid": False, "ticks": ""},
        "template": "none",
        "height": 140 + 24 * min(codes.shape[1], 30), "margin": MARGIN | {"b": 40},
    }  # fmt: skip
    return Plot([trace], layout, "Codes of the samples, of each part over its largest"), len(
        indices
    )


def rounded(values: np.ndarray) -> list[float]:
    """Return numbers with five digits, which a plot can show."""
    return [float(f"{value:.5g}") for value in np.asarray(values, dtype=float).tolist()]
