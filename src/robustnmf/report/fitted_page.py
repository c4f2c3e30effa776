"""The page of a fit: its components, its samples, and how it converged."""

from __future__ import annotations

import re
import warnings
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
from sklearn.decomposition import PCA

from robustnmf.report.fitted_data import Fit
from robustnmf.report.page import (
    Bullets,
    Content,
    Heading,
    Paragraph,
    Picture,
    Plot,
    Row,
    Table,
    TableCell,
)
from robustnmf.report.plots import mosaic
from robustnmf.tables import take_rows

if TYPE_CHECKING:
    from robustnmf.estimators import RankSelection

MAX_SAMPLES, MAX_POINTS, MAX_FEATURES, MAX_LENGTH = 50, 5000, 12, 60
"""Rows of the table, points of the map, bars of a component, characters of a name."""

BAD_ENTRY, MAX_BAD_ENTRIES = 0.1, 5
"""Weight below which an entry is named in the table, and the most names for a sample."""

INVISIBLE = re.compile(
    "[\ud800-\udfff\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)
BLUE, RED = "#1c6dd0", "#d6336c"


def contents(fit: Fit) -> list[Content]:
    """Return the pieces of the page of a fit."""
    content: list[Content] = [
        Paragraph(_summary_text(fit)),
        Heading("What was read", "data"),
        Bullets([display_note(note) for note in (*fit.table.notes, *fit.table.losses)]),
        Heading("Parts", "parts"),
        Paragraph(
            "Every sample is a sum of these parts, each in its own amount. Of each part the "
            "features it is made of."
        ),
        *_parts(fit),
        Heading("Samples", "samples"),
        Paragraph(
            "From the most outlying on. Weight: its say in the parts, of that of the sample with "
            "the largest. Energy: its squared distance from what the parts make of it, and the "
            "features that have most of it."
        ),
        _samples(fit),
        Heading("Map of the samples", "map"),
        _map(fit),
        Heading("How it was found", "fit"),
        _objective(fit),
    ]
    if fit.selection is not None:
        content += [Heading("Number of parts", "rank"), _ranks(fit.selection)]
    return content


def _summary_text(fit: Fit) -> str:
    """Return the first paragraph: sizes, rank, outliers."""
    n_samples, n_features = fit.table.data.shape
    count = int(fit.outliers.sum())
    n_eff = float(fit.model.effective_sample_size_)
    rank = int(fit.model.components_.shape[0])
    reason = "" if fit.selection is None else ", as many as predict hidden entries best,"
    words = (
        f"{n_samples:,} samples with {n_features:,} features were split into {rank} "
        f"parts{reason} in {fit.model.n_iter_} iterations. "
    )
    blank = int(fit.blank.sum())
    if blank:
        words += f"{blank:,} of the samples are blank: nothing in them is known or above zero. "
    if not count:
        return (
            words + f"No sample stands out; all of them count (effective sample size {n_eff:,.0f})."
        )
    subject = "samples do" if count > 1 else "sample does"
    farthest = fit.order[fit.outliers[fit.order]][:3]
    worst = ", ".join(display_name(fit.table.ids[i]) for i in farthest)
    return words + (
        f"{count:,} {subject} not follow them ({count / n_samples:.1%}) and had little or no "
        f"weight in the fit; the farthest off: {worst}. Effective sample size: {n_eff:,.0f}."
    )


def _parts(fit: Fit) -> list[Content]:
    """Draw the components, as images or as bars of their largest features."""
    components = np.asarray(fit.model.components_, dtype=float)
    if fit.image_shape is not None:
        images = components.reshape(-1, *fit.image_shape)
        images = images / np.maximum(images.max(axis=(1, 2), keepdims=True), 1e-300)
        return [Picture(_png(mosaic(images)), f"The {len(images)} parts as images")]
    plots: list[Content] = []
    for j, part in enumerate(components):
        top = np.argsort(part)[::-1][:MAX_FEATURES][::-1]
        data = {
            "type": "bar", "orientation": "h", "x": part[top].tolist(), "marker": {"color": BLUE},
            "y": [f"{place}" for place in range(len(top))],
            "text": [escape(display_name(fit.table.features[i])) for i in top],
            "textposition": "outside", "cliponaxis": False, "hoverinfo": "x+text",
        }  # fmt: skip
        layout = {
            "title": {"text": f"part {j + 1}", "x": 0.02, "xanchor": "left"},
            "height": 120 + 22 * len(top),
            "yaxis": {"visible": False}, "margin": {"l": 10, "r": 160, "t": 40, "b": 40},
            "template": "none",
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


def _samples(fit: Fit) -> Table:
    """Return the table of the most outlying samples."""
    farthest = fit.order[:MAX_SAMPLES]
    rows = take_rows(fit.table.data, farthest)
    dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names of features, which are those of the fit
        contributions = fit.model.explain(dense)
        has_weights = hasattr(fit.model, "entry_weights")
        weights = fit.model.entry_weights(dense) if has_weights else np.ones_like(contributions)
    cells = []
    for i, energies, entries in zip(
        farthest, np.nan_to_num(contributions), np.nan_to_num(weights, nan=1.0), strict=True
    ):
        top = np.argsort(energies)[::-1][:3]
        total = float(energies.sum()) or 1.0
        features = ", ".join(
            f"{display_name(fit.table.features[j])} ({energies[j] / total:.0%})"
            for j in top
            if energies[j] > 0
        )
        energy, weight = float(fit.model.energies_[i]), float(fit.weights[i])
        cells.append([
            TableCell(display_name(fit.table.ids[i])),
            TableCell("yes" if fit.outliers[i] else "no"),
            TableCell(f"{weight:.3f}", weight),
            TableCell(f"{energy:.4g}", energy),
            TableCell(features, kinds=("text",)),
        ])  # fmt: skip
        if has_weights:
            bad = np.flatnonzero(entries < BAD_ENTRY)
            names = ", ".join(display_name(fit.table.features[j]) for j in bad[:MAX_BAD_ENTRIES])
            more = f" and {len(bad) - MAX_BAD_ENTRIES} more" if len(bad) > MAX_BAD_ENTRIES else ""
            cells[-1].append(TableCell(names + more, len(bad), kinds=("text",)))
    header: tuple[str, ...] = ("sample", "outlier", "weight", "energy", "features")
    header += ("entries without weight",) if has_weights else ()
    caption = f"The {len(cells)} most outlying of {fit.table.data.shape[0]:,} samples"
    return Table(header, cells, caption)


def _map(fit: Fit) -> Plot:
    """Plot the codes, brought to unit norm, in the plane of their first principal components."""
    codes = np.asarray(fit.codes, dtype=float)
    norms = np.linalg.norm(codes, axis=1, keepdims=True)
    unit = codes / np.where(norms > 0, norms, 1.0)
    plane = np.zeros((len(unit), 2))
    count = min(2, unit.shape[1], len(unit))
    if np.ptp(unit, axis=0).max() > 0:
        plane[:, :count] = PCA(count, random_state=0).fit_transform(unit)
    indices = np.arange(len(unit))
    if len(indices) > MAX_POINTS:
        indices = np.sort(np.random.default_rng(0).permutation(len(indices))[:MAX_POINTS])
    data = []
    for name, color, mask in (
        ("follow the parts", BLUE, ~fit.outliers),
        ("outliers", RED, fit.outliers),
    ):
        points = indices[mask[indices]]
        data.append({
            "type": "scattergl" if len(indices) > 1000 else "scatter", "mode": "markers",
            "name": name, "x": plane[points, 0].tolist(), "y": plane[points, 1].tolist(),
            "text": [escape(display_name(fit.table.ids[i])) for i in points], "hoverinfo": "text",
            "marker": {"color": color, "size": 5, "opacity": 0.7},
        })  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "first direction"}}, "height": 420,
        "yaxis": {"title": {"text": "second direction"}}, "template": "none",
        "margin": {"l": 60, "r": 10, "t": 20, "b": 50}, "legend": {"orientation": "h", "y": -0.2},
    }  # fmt: skip
    return Plot(data, layout, "Samples by the shares of the parts in them")


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


def _ranks(selection: RankSelection) -> Plot:
    """Plot the error of hidden entries by rank."""
    curve = {
        "type": "scatter", "mode": "lines+markers", "x": selection.ranks.tolist(),
        "y": selection.mean.tolist(), "line": {"color": BLUE},
        "error_y": {"type": "data", "array": selection.standard_error.tolist()},
    }  # fmt: skip
    layout = {
        "title": {"text": f"recommended: {selection.recommended}"}, "height": 320,
        "xaxis": {"title": {"text": "number of parts"}}, "template": "none",
        "yaxis": {"title": {"text": "error of hidden entries"}},
        "margin": {"l": 70, "r": 10, "t": 40, "b": 50},
    }  # fmt: skip
    return Plot([curve], layout, "Error of hidden entries by the number of parts")


def display_name(text: str) -> str:
    """Return a name as a page shows it: visible, and not too long."""
    text = INVISIBLE.sub("\ufffd", text)
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "\u2026"


def display_note(note: str) -> str:
    """Return a note on what was read as a page shows it: visible, and not too long."""
    note = INVISIBLE.sub("\ufffd", note)
    return note if len(note) <= 5 * MAX_LENGTH else note[: 5 * MAX_LENGTH] + "\u2026"
