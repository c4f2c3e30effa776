"""A fit as files: tables of its parts, codes and samples, the model, and one page to read."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.decomposition import PCA

from robustnmf.report.files import output_file, write_whole
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
    page,
)
from robustnmf.report.plots import mosaic
from robustnmf.report.tables import write_comma_separated
from robustnmf.tables import Table as Data
from robustnmf.text_format import is_number

FILES = ("basis.csv", "codes.csv", "samples.csv", "model.rnmf", "report.html")
MOST_SAMPLES, MOST_POINTS, TOP, LONGEST = 50, 5000, 12, 60
INVISIBLE = re.compile(
    "[\ud800-\udfff\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)
BLUE, RED = "#1c6dd0", "#d6336c"


@dataclass(frozen=True)
class Fit:
    """A fitted model with the table it was fitted to.

    ``selection`` is how the rank was chosen, where it was. Arrays over all samples are computed
    once: the tables and the page read them for every sample.
    """

    model: Any
    table: Data
    codes: np.ndarray
    seconds: float
    image_shape: tuple[int, int] | None = None
    selection: Any = None
    name: str = "data"

    @cached_property
    def weights(self) -> np.ndarray:
        """Importance of every sample over the largest."""
        importances = self.model.sample_importances_
        return importances / max(float(importances.max()), np.finfo(float).tiny)

    @cached_property
    def outliers(self) -> np.ndarray:
        """Which samples the fit left out; not those of which nothing is there."""
        return np.asarray(self.model.outliers_) & ~self.blank

    @cached_property
    def blank(self) -> np.ndarray:
        """Samples of zeros, or without a value that is known: any parts fit them."""
        return (self.model.energies_ <= 0) | (self.model.sample_importances_ <= 0) & (
            np.abs(np.asarray(self.codes)).sum(axis=1) == 0
        )

    @cached_property
    def order(self) -> np.ndarray:
        """Samples from the most outlying on."""
        return np.lexsort((-self.model.energies_, self.weights, self.blank))


def summary(fit: Fit) -> dict[str, Any]:
    """What a script wants to know."""
    model, (samples, features) = fit.model, fit.table.data.shape
    return {
        "samples": int(samples),
        "features": int(features),
        "components": int(model.components_.shape[0]),
        "iterations": int(model.n_iter_),
        "objective": float(model.objective_history_[-1]),
        "effective_sample_size": float(model.effective_sample_size_),
        "blank": int(fit.blank.sum()),
        "outliers": [fit.table.ids[i] for i in fit.order[fit.outliers[fit.order]]],
        "seconds": round(fit.seconds, 3),
        **reading(fit.table),
    }


def reading(table: Data) -> dict[str, Any]:
    """What a script wants to know about how a table was read."""
    return {
        "columns_left_out": table.left_out,
        "cells_made_missing": table.made_missing,
        "text_format": table.text_format,
    }


def write(fit: Fit, folder: Path) -> dict[str, Path]:
    """Write all files of a fit; their paths by name."""
    names = part_names(fit.model.components_.shape[0])
    table, model = fit.table, fit.model
    ids = [safe(name) for name in table.ids]
    columns = (model.sample_importances_, model.energies_, fit.outliers)
    samples = (
        [name, float(importance), float(energy), int(out)]
        for name, importance, energy, out in zip(ids, *columns, strict=True)
    )
    folder.mkdir(parents=True, exist_ok=True)
    paths = output_paths(folder)
    tables = {
        "basis.csv": (["part", *map(safe, table.features)], _lines(names, model.components_)),
        "codes.csv": (["id", *names], _lines(ids, fit.codes)),
        "samples.csv": (["id", "importance", "energy", "outlier"], samples),
    }
    for name, (header, rows) in tables.items():
        with output_file(paths[name]) as file:
            write_comma_separated(file, header, rows)
    model.save(paths["model.rnmf"])
    title = f"robustnmf: {shown(fit.name)}"
    write_whole(paths["report.html"], page(title, contents(fit)).encode())
    return paths


def output_paths(folder: Path) -> dict[str, Path]:
    """Paths of the files that :func:`write` writes, by name."""
    return {name: folder / name for name in FILES}


def _lines(names: Iterable[str], table: Any) -> Iterator[list[Any]]:
    """Rows of a CSV file: a name and the numbers of a row of the table."""
    for name, row in zip(names, table, strict=True):
        yield [name, *np.asarray(row, dtype=float).tolist()]


def part_names(count: int) -> list[str]:
    """What the parts are called in files."""
    return [f"part{j + 1}" for j in range(count)]


def safe(text: str) -> str:
    """A name for a cell of a CSV file, which no spreadsheet takes for a formula."""
    risky = bool(text) and text[0] in "=+-@\t\r\n"
    return f"'{text}" if risky and not is_number(text) else text


def shown(text: str) -> str:
    """A name as a page shows it: visible, and not too long."""
    text = INVISIBLE.sub("\ufffd", text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "\u2026"


def contents(fit: Fit) -> list[Content]:
    """The page."""
    content: list[Content] = [
        Paragraph(_in_words(fit)),
        Heading("What was read", "data"),
        Bullets([shown_note(note) for note in (*fit.table.notes, *fit.table.losses)]),
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


def shown_note(note: str) -> str:
    """A note on what was read, however long its names."""
    note = INVISIBLE.sub("\ufffd", note)
    return note if len(note) <= 5 * LONGEST else note[: 5 * LONGEST] + "\u2026"


def _in_words(fit: Fit) -> str:
    n_samples, n_features = fit.table.data.shape
    count = int(fit.outliers.sum())
    n_eff = float(fit.model.effective_sample_size_)
    rank = int(fit.model.components_.shape[0])
    chosen = "" if fit.selection is None else ", as many as predict hidden entries best,"
    words = (
        f"{n_samples:,} samples with {n_features:,} features were split into {rank} "
        f"parts{chosen} in {fit.model.n_iter_} iterations. "
    )
    blank = int(fit.blank.sum())
    if blank:
        words += f"{blank:,} of the samples are blank: nothing in them is known or above zero. "
    if not count:
        return words + f"No sample stands out; all of them have a say ({n_eff:,.0f} in effect)."
    plural = "samples do" if count > 1 else "sample does"
    farthest = fit.order[fit.outliers[fit.order]][:3]
    worst = ", ".join(shown(fit.table.ids[i]) for i in farthest)
    return words + (
        f"{count:,} {plural} not follow them ({count / n_samples:.1%}) and had little or no say in "
        f"what they are; the farthest off: {worst}. {n_eff:,.0f} samples have a say in effect."
    )


def _parts(fit: Fit) -> list[Content]:
    components = np.asarray(fit.model.components_, dtype=float)
    if fit.image_shape is not None:
        images = components.reshape(-1, *fit.image_shape)
        images = images / np.maximum(images.max(axis=(1, 2), keepdims=True), 1e-300)
        return [Picture(_png(mosaic(images)), f"The {len(images)} parts as images")]
    plots: list[Content] = []
    for j, part in enumerate(components):
        top = np.argsort(part)[::-1][:TOP][::-1]
        data = {
            "type": "bar", "orientation": "h", "x": part[top].tolist(), "marker": {"color": BLUE},
            "y": [f"{place}" for place in range(len(top))],
            "text": [escape(shown(fit.table.features[i])) for i in top],
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
    chosen = fit.order[:MOST_SAMPLES]
    rows = fit.table.data[chosen]
    dense = rows.toarray() if scipy.sparse.issparse(rows) else np.asarray(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names of features, which are those of the fit
        contributions = fit.model.explain(dense)
    cells = []
    for i, parts in zip(chosen, np.nan_to_num(contributions), strict=True):
        top = np.argsort(parts)[::-1][:3]
        total = float(parts.sum()) or 1.0
        told = ", ".join(
            f"{shown(fit.table.features[j])} ({parts[j] / total:.0%})" for j in top if parts[j] > 0
        )
        energy, weight = float(fit.model.energies_[i]), float(fit.weights[i])
        cells.append([
            TableCell(shown(fit.table.ids[i])),
            TableCell("yes" if fit.outliers[i] else "no"),
            TableCell(f"{weight:.3f}", weight),
            TableCell(f"{energy:.4g}", energy),
            TableCell(told, kinds=("text",)),
        ])  # fmt: skip
    header = ("sample", "outlier", "weight", "energy", "features")
    caption = f"The {len(cells)} most outlying of {fit.table.data.shape[0]:,} samples"
    return Table(header, cells, caption)


def _map(fit: Fit) -> Plot:
    """Codes of unit length in the plane where they differ most."""
    codes = np.asarray(fit.codes, dtype=float)
    norms = np.linalg.norm(codes, axis=1, keepdims=True)
    unit = codes / np.where(norms > 0, norms, 1.0)
    plane = np.zeros((len(unit), 2))
    count = min(2, unit.shape[1], len(unit))
    if np.ptp(unit, axis=0).max() > 0:
        plane[:, :count] = PCA(count, random_state=0).fit_transform(unit)
    chosen = np.arange(len(unit))
    if len(chosen) > MOST_POINTS:
        chosen = np.sort(np.random.default_rng(0).permutation(len(chosen))[:MOST_POINTS])
    data = []
    for name, tint, mask in (
        ("follow the parts", BLUE, ~fit.outliers),
        ("outliers", RED, fit.outliers),
    ):
        some = chosen[mask[chosen]]
        data.append({
            "type": "scattergl" if len(chosen) > 1000 else "scatter", "mode": "markers",
            "name": name, "x": plane[some, 0].tolist(), "y": plane[some, 1].tolist(),
            "text": [escape(shown(fit.table.ids[i])) for i in some], "hoverinfo": "text",
            "marker": {"color": tint, "size": 5, "opacity": 0.7},
        })  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "first direction"}}, "height": 420,
        "yaxis": {"title": {"text": "second direction"}}, "template": "none",
        "margin": {"l": 60, "r": 10, "t": 20, "b": 50}, "legend": {"orientation": "h", "y": -0.2},
    }  # fmt: skip
    return Plot(data, layout, "Samples by the shares of the parts in them")


def _objective(fit: Fit) -> Plot:
    history = [float(value) for value in np.asarray(fit.model.objective_history_)]
    line = {"type": "scatter", "mode": "lines", "y": history, "line": {"color": BLUE}}
    layout = {
        "xaxis": {"title": {"text": "iterations since the weights were settled"}}, "height": 320,
        "yaxis": {"title": {"text": "objective"}}, "template": "none",
        "margin": {"l": 70, "r": 10, "t": 20, "b": 50},
    }  # fmt: skip
    return Plot([line], layout, "The objective, which falls with every iteration")


def _ranks(selection: Any) -> Plot:
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


def check_image_shape(shape: tuple[int, int], features: int) -> tuple[int, int]:
    """Height and width, if features are the pixels of such images."""
    height, width = shape
    if height * width != features:
        raise ValueError(
            f"--image-shape is {height}x{width}, but HEIGHTxWIDTH of {features} pixels is needed."
        )
    return shape


def write_codes(file: Any, ids: Sequence[str], codes: np.ndarray, energies: np.ndarray) -> None:
    """Write codes and energies of new samples as CSV to a binary file."""
    names = part_names(codes.shape[1])
    rows = _lines(map(safe, ids), np.column_stack([codes, energies]))
    write_comma_separated(file, ["id", *names, "energy"], rows)
