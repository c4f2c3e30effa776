"""The files of a fit: tables, the model, and one page on its components and samples."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robustnmf.arrays import as_dense
from robustnmf.estimators import RankSelection, top_features
from robustnmf.report import fitted_plots as plots
from robustnmf.report.files import FIT_FILES, output_file, write_comma_separated, write_whole
from robustnmf.report.fitted import Fit, csv_rows, escape_formula, part_names
from robustnmf.report.page import (
    MAX_NOTE,
    Bullets,
    Content,
    Heading,
    Links,
    Paragraph,
    Table,
    TableCell,
    counted,
    display_name,
    format_percent,
    page,
)
from robustnmf.tables import take_rows

MAX_SAMPLES, MAX_NAMED = 500, 3
"""Rows of the table, and features that are named for a sample."""

MAX_ENTRIES = 2_000_000
"""Entries of the samples that are explained: they are made dense."""

TOP_FEATURES, MIN_RATIO, FAR_MORE = 6, 1.05, 1000
"""Features of a part in their table, the least and the largest ratio that is written out."""

MIN_EXPLAINED = 10
BAD_ENTRY, MAX_BAD_ENTRIES = 0.1, 5
"""Weight below which an entry is named in the table, and the most names for a sample."""


def write(fit: Fit, folder: Path, run_record: dict[str, Any] | None = None) -> dict[str, Path]:
    """Write all files of a fit, the record of its run among them; return their paths by name."""
    names = part_names(fit.model.components_.shape[0])
    table, model = fit.table, fit.model
    ids = [escape_formula(name) for name in table.ids]
    numbers = np.column_stack([model.sample_importances_, model.energies_])
    features = [escape_formula(name) for name in table.features]
    paths = {name: folder / name for name in FIT_FILES}
    tables: dict[str, tuple[list[str], Iterable[Sequence[object]]]] = {
        "basis.csv": (["part", *features], csv_rows(names, fit.components)),
        "codes.csv": (["id", *names], csv_rows(ids, fit.codes)),
        "samples.csv": (
            ["id", "importance", "energy", "outlier"],
            csv_rows(ids, numbers, fit.outliers),
        ),
    }
    for name, (header, rows) in tables.items():
        with output_file(paths[name]) as file:
            write_comma_separated(file, header, rows)
    model.save(paths["model.rnmf"])
    title = f"robustnmf: {display_name(fit.name)}"
    write_whole(paths["report.html"], page(title, contents(fit)).encode())
    text = json.dumps(run_record or {}, indent=1, default=str)
    write_whole(paths["run.json"], f"{text}\n".encode())
    return paths


def contents(fit: Fit) -> list[Content]:
    """Return the pieces of the page of a fit."""
    sections = [section for section in _sections(fit) if section[2]]
    content: list[Content] = [
        Paragraph(_summary_text(fit)),
        Links([(anchor, title) for title, anchor, _ in sections]),
    ]
    for title, anchor, pieces in sections:
        content += [Heading(title, anchor), *pieces]
    return content


def _sections(fit: Fit) -> list[tuple[str, str, list[Content]]]:
    """Return title, anchor and pieces of the sections of the page; some may be empty."""
    count = len(fit.codes)
    drawn = plots.draw_samples(fit)
    codes, n_columns = plots.codes_plot(fit)
    notes = [display_name(note, MAX_NOTE) for note in (*fit.table.notes, *fit.table.losses)]
    messages = [display_name(text, MAX_NOTE) for text in fit.warnings]
    return [
        ("Warnings", "warnings", [Bullets(messages)] if messages else []),
        ("Parts", "parts", [
            Paragraph(_parts_text(fit)), plots.components_plots(fit), *top_features_table(fit),
        ]),
        ("Map of the samples", "map", [
            Paragraph(_map_text(fit) + _count_note(len(drawn), count)), plots.map_plot(fit, drawn),
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
            Paragraph(
                "This weighting has no cutoff: outliers have less than a tenth of an equal weight."
                if fit.cutoffs is None else
                "Samples above their cutoff have less or no weight; small samples have lower "
                "cutoffs."
            ),
            plots.energies_plot(fit),
        ]),
        ("Codes", "codes", [
            Paragraph(
                "How much of each part samples have, of the largest amount of it among samples "
                "that are no outliers." + _count_note(n_columns, count)
            ),
            codes,
        ]),
        ("Number of parts", "rank", [] if fit.selection is None else rank_curve(fit.selection)),
        ("How it was found", "fit", [plots.objective_plot(fit)]),
        ("What was read", "data", [Bullets(notes)]),
    ]  # fmt: skip


def _count_note(drawn: int, count: int) -> str:
    """Say in words how many of the samples a plot shows, if not all."""
    if drawn >= count:
        return ""
    return f" Shown are {drawn:,} of {count:,} samples: the most outlying, and others at random."


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


def _parts_text(fit: Fit) -> str:
    """Say in words what the pictures of components show."""
    count = len(fit.model.components_)
    text = "Every sample is a sum of these parts, each in its own amount."
    if fit.image_shape is None and plots.feature_axis(fit.table) is None:
        text += " Bars: the largest features of a part."
    if fit.scale is not None:
        text += " Features are in units of their scale; basis.csv has the units of the file."
    if count > plots.MAX_PARTS:
        text += f" Shown are {plots.MAX_PARTS} of {count}; all are in basis.csv."
    return text


def rank_curve(selection: RankSelection) -> list[Content]:
    """Say how the number of parts was chosen, in words and in a plot."""
    text = (
        f"Entries were hidden and predicted with {selection.ranks[0]} to {selection.ranks[-1]} "
        f"parts; the error is least with {counted(selection.best, 'part')}. "
    )
    if selection.silhouette is not None:
        text += (
            "Fits from random starts were compared: the silhouette is one where every start finds "
            "the same parts. "
        )
    return [Paragraph(text + selection.reason), plots.rank_plot(selection)]


def samples_table(fit: Fit) -> Table:
    """Return the table of the most outlying samples."""
    count, features = fit.table.data.shape
    farthest = fit.order[:MAX_SAMPLES]
    n_explained = min(len(farthest), max(MIN_EXPLAINED, MAX_ENTRIES // features))
    texts, bad_entries = _explain(fit, farthest[:n_explained])
    names = [f"part {j + 1}" for j in range(fit.codes.shape[1])]
    shares = fit.part_shares(farthest)
    rows = []
    for place, i in enumerate(farthest.tolist()):
        energy, weight = float(fit.model.energies_[i]), float(fit.weights[i])
        main = int(shares[place].argmax())
        share = float(shares[place, main])
        row = [
            TableCell(display_name(fit.table.ids[i])),
            TableCell("yes" if fit.outliers[i] else "blank" if fit.blank[i] else "no"),
            TableCell(f"{weight:.3f}", weight),
            TableCell(f"{energy:.4g}", energy),
            TableCell(f"{names[main]} ({share:.0%})" if share else "none", share),
            TableCell(texts[place] if place < n_explained else "", kinds=("text",)),
        ]
        if bad_entries is not None:
            text, n_bad = bad_entries[place] if place < n_explained else ("", 0)
            row.append(TableCell(text, n_bad, kinds=("text",)))
        rows.append(row)
    header = ["sample", "outlier", "weight", "energy", "main part", "what makes its energy"]
    header += [] if bad_entries is None else ["entries without weight"]
    caption = f"All {count:,} samples, the most outlying first"
    if len(rows) < count:
        caption = f"The {len(rows):,} most outlying of {count:,} samples; all are in samples.csv"
    return Table(header, rows, caption, searchable=True)


def _explain(fit: Fit, indices: np.ndarray) -> tuple[list[str], list[tuple[str, int]] | None]:
    """Say in words what makes the energies of some samples, and which entries have no weight."""
    rows = take_rows(fit.table.data, indices)
    dense = as_dense(rows)
    has_weights = hasattr(fit.model, "entry_weights")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names of features, which are those of the fit
        contributions = np.nan_to_num(fit.model.explain(dense))
        weights = fit.model.entry_weights(dense) if has_weights else None
    texts = []
    for row in contributions:
        chosen, others = contribution_shares(row)
        parts = [
            f"{'↑' if row[j] > 0 else '↓'} {fit.feature_name(j)} {percent}%"
            for j, percent in chosen
        ]
        texts.append(", ".join([*parts, f"others {others}%"] if others else parts))
    if weights is None:
        return texts, None
    bad_entries = []
    for entries in np.nan_to_num(weights, nan=1.0):
        bad = np.flatnonzero(entries < BAD_ENTRY).tolist()
        listed = ", ".join(fit.feature_name(j) for j in bad[:MAX_BAD_ENTRIES])
        more = f" and {len(bad) - MAX_BAD_ENTRIES} more" if len(bad) > MAX_BAD_ENTRIES else ""
        bad_entries.append((listed + more, len(bad)))
    return texts, bad_entries


def contribution_shares(
    contributions: np.ndarray, most: int = MAX_NAMED
) -> tuple[list[tuple[int, int]], int]:
    """Return the largest shares of an energy in percent, with their features, and that of the rest.

    Contributions (features,) are signed; shares are of the sum of their absolute values. They are
    rounded so that they add up to 100 (the largest remainders are rounded up).
    """
    sizes = np.abs(contributions)
    total = float(sizes.sum())
    if not 0 < total < np.inf:
        return [], 0
    top = np.argsort(-sizes, kind="stable")[:most]
    exact = 100 * np.append(sizes[top], max(total - float(sizes[top].sum()), 0.0)) / total
    percents = np.floor(exact).astype(int)
    short = 100 - int(percents.sum())
    percents[np.argsort(percents - exact, kind="stable")[:short]] += 1
    chosen = [(int(j), int(p)) for j, p in zip(top, percents[:-1], strict=True) if p > 0]
    return chosen, 100 - sum(percent for _, percent in chosen)


def top_features_table(fit: Fit) -> list[Content]:
    """Return a table of the features that tell each part from the others, if there are several."""
    parts = top_features(fit.model, TOP_FEATURES)[: plots.MAX_PARTS]
    if len(parts) < 2 or fit.image_shape is not None:
        return []
    rows: list[list[str | TableCell]] = []
    for i, features in enumerate(parts, start=1):
        listed = []
        for top in features:
            times = f"{top.ratio:.1f} times" if top.ratio < FAR_MORE else f"over {FAR_MORE} times"
            if top.ratio >= MIN_RATIO:
                listed.append(f"{fit.feature_name(top.feature)} ({times})")
        rows.append([f"part {i}", TableCell(", ".join(listed) or "none", kinds=("text",))])
    caption = (
        "Features that tell parts from each other; in brackets their share of the part over the "
        "largest share of any other part"
    )
    return [Table(["part", "features"], rows, caption)]
