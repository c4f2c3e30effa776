"""The page of a fit: its components, its samples, and how it converged."""

from __future__ import annotations

from html import escape
from io import BytesIO
from itertools import pairwise
from typing import Any

import numpy as np

from robustnmf.report.fitted_data import Fit
from robustnmf.report.fitted_map import map_plot
from robustnmf.report.fitted_plots import (
    BLUE,
    codes_plot,
    count_note,
    draw_samples,
    energies_plot,
)
from robustnmf.report.fitted_rank import rank_curve
from robustnmf.report.fitted_samples import samples_table, top_features_table
from robustnmf.report.names import counted, display_name, display_note, format_percent
from robustnmf.report.page import (
    Bullets,
    Content,
    Heading,
    Links,
    Paragraph,
    Picture,
    Plot,
    Row,
)
from robustnmf.report.plots import mosaic
from robustnmf.tables import Table, to_number

MAX_FEATURES, MAX_PARTS = 12, 60
"""Bars of a component, and components that are drawn."""

MIN_AXIS, MAX_AXIS = 20, 3000
"""Features that are numbers in increasing order (wavelengths, times) from which on components are
drawn as lines, and points of such a line."""


def contents(fit: Fit) -> list[Content]:
    """Return the pieces of the page of a fit."""
    count = len(fit.codes)
    drawn = draw_samples(fit)
    codes, n_columns = codes_plot(fit)
    sections: list[tuple[str, str, list[Content]]] = [
        ("Warnings", "warnings", [Bullets([display_note(text) for text in fit.warnings])]),
        ("Parts", "parts", [Paragraph(_parts_text(fit)), *_parts(fit), *top_features_table(fit)]),
        ("Map of the samples", "map", [
            Paragraph(_map_text(fit) + count_note(len(drawn), count)),
            map_plot(fit, drawn),
        ]),
        ("Outliers and other samples", "samples", [
            Paragraph(
                "Most unusual samples first. The weight is relative to the largest weight; missing "
                "values do not lower it. Energy: the distance of a sample from what the parts make "
                "of it, with the features that have most of it: ↑ more than the parts explain, ↓ "
                "less. Main part: that with the largest share in the approximation of the sample."
            ),
            samples_table(fit),
        ]),
        ("Energies", "energies", [
            Paragraph(_energies_text(fit)),
            energies_plot(fit),
        ]),
        ("Codes", "codes", [
            Paragraph(
                "How much of each part samples have, of the largest amount of it among samples "
                "that are no outliers." + count_note(n_columns, count)
            ),
            codes,
        ]),
    ]  # fmt: skip
    if fit.selection is not None:
        sections.append(("Number of parts", "rank", rank_curve(fit.selection)))
    sections += [
        ("How it was found", "fit", [_objective(fit)]),
        ("What was read", "data", [_notes(fit.table)]),
    ]
    if not fit.warnings:
        del sections[0]
    content: list[Content] = [
        Paragraph(_summary_text(fit)),
        Links([(anchor, title) for title, anchor, _ in sections]),
    ]
    for title, anchor, pieces in sections:
        content += [Heading(title, anchor), *pieces]
    return content


def _notes(table: Table) -> Bullets:
    """Return what was taken for data, and what was not."""
    return Bullets([display_note(note) for note in (*table.notes, *table.losses)])


def _summary_text(fit: Fit) -> str:
    """Return the first paragraph: sizes, rank, outliers."""
    n_samples, n_features = fit.table.data.shape
    count = int(fit.outliers.sum())
    n_eff = float(fit.model.effective_sample_size_)
    rank = int(fit.model.components_.shape[0])
    reason = "" if fit.selection is None else ", the number that was recommended,"
    words = (
        f"{counted(n_samples, 'sample')} with {counted(n_features, 'feature')} were split into "
        f"{counted(rank, 'part')}{reason} in {counted(fit.model.n_iter_, 'iteration')}. "
    )
    if fit.missing.any():
        words += f"{fit.missing_text}. "
    blank = int(fit.blank.sum())
    if blank:
        words += f"{blank:,} of the samples are blank: nothing in them is known or above zero. "
    if not count:
        return (
            words + f"No sample stands out; all of them count (effective sample size {n_eff:,.0f})."
        )
    subject = "samples do" if count > 1 else "sample does"
    farthest = fit.order[: 3 + blank]
    farthest = farthest[fit.outliers[farthest]][:3]
    worst = ", ".join(display_name(fit.table.ids[int(i)]) for i in farthest)
    return words + (
        f"{count:,} {subject} not follow them ({format_percent(count / n_samples)}) and had less "
        f"or no weight in the fit; the farthest off: {worst}. Effective sample size: {n_eff:,.0f}."
    )


def _map_text(fit: Fit) -> str:
    """Say in words what the map shows."""
    place = {1: "by the amount of the part in them", 2: "by the amounts of both parts in them"}.get(
        fit.codes.shape[1], "by the shares of the parts in them"
    )
    colors = "" if fit.color_by is None else f" by {display_name(fit.color_by)}; outliers are x"
    text = f"Samples {place}, coloured{colors or ' by whether they follow the parts'}."
    if fit.codes.shape[1] <= 2:
        text += (
            " An axis is logarithmic if a few samples are far off; values near zero are then drawn "
            "at its end."
        )
    else:
        text += (
            " The larger the share of a part, the nearer a sample is to it; samples of many parts "
            "are in the middle."
        )
    return text


def _energies_text(fit: Fit) -> str:
    """Say in words which samples are outliers by their energies."""
    if fit.cutoffs is None:
        return "This weighting has no cutoff: outliers have less than a tenth of an equal weight."
    return "Samples above their cutoff have less or no weight; small samples have lower cutoffs."


def _parts_text(fit: Fit) -> str:
    """Say in words what the pictures of components show."""
    count = len(fit.model.components_)
    text = "Every sample is a sum of these parts, each in its own amount."
    if fit.image_shape is None and feature_axis(fit.table) is None:
        text += " Bars: the largest features of a part."
    if fit.scale is not None:
        text += " Features are in units of their scale; basis.csv has the units of the file."
    if count > MAX_PARTS:
        text += f" Shown are {MAX_PARTS} of {count}; all are in basis.csv."
    return text


def feature_axis(table: Table) -> np.ndarray | None:
    """Return the names of features as numbers (features,), if they increase, as wavelengths do."""
    if not table.named or len(table.features) < MIN_AXIS:
        return None
    numbers = [to_number(name) for name in table.features]
    known = [number for number in numbers if number is not None and np.isfinite(number)]
    if len(known) < len(numbers) or any(one >= other for one, other in pairwise(known)):
        return None
    return np.array(known)


def _parts(fit: Fit) -> list[Content]:
    """Draw the components: as images, as lines, or as bars of their largest features."""
    components = np.asarray(fit.model.components_, dtype=float)[:MAX_PARTS]
    if fit.image_shape is not None:
        images = components.reshape(-1, *fit.image_shape)
        images = images / np.maximum(images.max(axis=(1, 2), keepdims=True), 1e-300)
        return [Picture(_png(mosaic(images)), f"{counted(len(images), 'part')} as images")]
    axis = feature_axis(fit.table)
    plots: list[Content] = []
    for j, part in enumerate(components):
        title = {"text": f"part {j + 1}", "x": 0.02, "xanchor": "left"}
        if axis is not None:
            step = -(-len(axis) // MAX_AXIS)
            line = {
                "type": "scatter", "mode": "lines", "x": axis[::step].tolist(),
                "y": part[::step].tolist(), "line": {"color": BLUE, "width": 1.5},
            }  # fmt: skip
            layout: dict[str, Any] = {
                "title": title, "height": 240, "margin": {"l": 50, "r": 10, "t": 40, "b": 40},
                "template": "none", "yaxis": {"rangemode": "tozero"},
            }  # fmt: skip
            plots.append(Plot([line], layout, f"Part {j + 1} along the features"))
            continue
        top = np.argsort(part)[::-1][:MAX_FEATURES][::-1]
        data = {
            "type": "bar", "orientation": "h", "x": part[top].tolist(), "marker": {"color": BLUE},
            "y": [f"{place}" for place in range(len(top))],
            "text": [escape(fit.feature_name(int(i))) for i in top],
            "textposition": "outside", "cliponaxis": False, "hoverinfo": "x+text",
        }  # fmt: skip
        layout = {
            "title": title, "height": 120 + 22 * len(top), "template": "none",
            "yaxis": {"visible": False}, "margin": {"l": 10, "r": 160, "t": 40, "b": 40},
        }  # fmt: skip
        plots.append(Plot([data], layout, f"Part {j + 1}: its largest features"))
    return [Row(plots)]


def _png(sheet: np.ndarray) -> bytes:
    """Return an image (height, width), with values from 0 to 1, as PNG."""
    from matplotlib.figure import Figure

    height, width = sheet.shape
    figure = Figure(figsize=(8, 8 * height / width), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(sheet, cmap="gray_r", interpolation="nearest", vmin=0, vmax=1)
    axes.set_axis_off()
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=100, metadata={"Software": None})
    return buffer.getvalue()


def _objective(fit: Fit) -> Plot:
    """Plot the objective by iteration."""
    history = [float(value) for value in np.asarray(fit.model.objective_history_)]
    line = {"type": "scatter", "mode": "lines", "y": history, "line": {"color": BLUE}}
    layout = {
        "xaxis": {"title": {"text": "iterations since the weights were settled"}}, "height": 320,
        "yaxis": {"title": {"text": "objective"}}, "template": "none",
        "margin": {"l": 70, "r": 10, "t": 20, "b": 50},
    }  # fmt: skip
    return Plot([line], layout, "The objective, which falls with every iteration")
