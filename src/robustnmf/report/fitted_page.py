"""The files of a fit: tables, the model, and one page on its components and samples."""

from __future__ import annotations

import json
import os
import shlex
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from robustnmf._version import __version__
from robustnmf.arrays import as_dense
from robustnmf.estimators import RankSelection, top_features
from robustnmf.files.output import output_file
from robustnmf.files.page import (
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
from robustnmf.report import FILES
from robustnmf.report import fitted_plots as plots
from robustnmf.report.fitted import Fit, column_names, write_csv
from robustnmf.tables import join_first, take_rows

MAX_SAMPLES, MAX_NAMED, MAX_GROUPS = 500, 3, 60
"""Rows of the table, features that are named for a sample, and groups of the coloured column."""

MAX_ENTRIES = 2_000_000
"""Entries of the samples that are explained: they are made dense."""

TOP_FEATURES, MIN_RATIO, FAR_MORE = 6, 1.05, 1000
"""Features of a component in their table, the least and the largest ratio that is written."""

MIN_EXPLAINED = 10
BAD_ENTRY, MAX_BAD_ENTRIES = 0.1, 5
"""Weight below which an entry is named in the table, and the most names for a sample."""


def write(fit: Fit, folder: Path, run_record: dict[str, Any] | None = None) -> dict[str, Path]:
    """Write all files of a fit, the record of its run among them; return their paths by name.

    All of them are replaced at the end, so that after an error none is of another fit.
    """
    table, model = fit.table, fit.model
    names = column_names(model.components_.shape[0])
    numbers = np.column_stack([model.sample_importances_, model.energies_])
    paths = {name: folder / name for name in FILES}
    title = f"robustnmf: {display_name(fit.name)}"
    record = run_record or {}
    html = page(title, contents(fit, record.get("command", ())))
    text = json.dumps(record, indent=1, default=str)
    try:
        with ExitStack() as stack:
            files = {name: stack.enter_context(output_file(path)) for name, path in paths.items()}
            write_csv(files["basis.csv"], "component", names, table.features, fit.components)
            write_csv(files["codes.csv"], "id", table.ids, names, fit.codes)
            columns = ["importance", "energy"]
            write_csv(files["samples.csv"], "id", table.ids, columns, numbers, fit.outliers)
            model._write_to(files["model.rnmf"])
            files["report.html"].write(html.encode())
            files["run.json"].write(f"{text}\n".encode())
            for file in files.values():
                file.flush()
    except OSError as error:
        error.filename = error.filename or os.fspath(folder)
        raise
    return paths


def contents(fit: Fit, command: Sequence[str] = ()) -> list[Content]:
    """Return the pieces of the page of a fit, with the command that made it if it is given."""
    sections = [section for section in _sections(fit, command) if section[2]]
    content: list[Content] = [
        Paragraph(_summary_text(fit)),
        Links([(anchor, title) for title, anchor, _ in sections]),
    ]
    for title, anchor, pieces in sections:
        content += [Heading(title, anchor), *pieces]
    return content


def _sections(fit: Fit, command: Sequence[str]) -> list[tuple[str, str, list[Content]]]:
    """Return title, anchor and pieces of the sections of the page; some may be empty."""
    sample, _, component = fit.table.words
    drawn = plots.draw_samples(fit)
    codes, n_columns = plots.codes_plot(fit)
    notes = [display_name(note, MAX_NOTE) for note in (*fit.table.notes, *fit.table.losses)]
    messages = [display_name(text, MAX_NOTE) for text in fit.warnings]
    return [
        ("Warnings", "warnings", [Bullets(messages)] if messages else []),
        (f"{component.capitalize()}s", "components", [
            Paragraph(_components_text(fit)), plots.components_plots(fit),
            *top_features_table(fit),
        ]),
        ("Mean usage by group", "usage", usage_by_group(fit)),
        (f"Map of the {sample}s", "map", [
            Paragraph(_map_text(fit) + _count_note(fit, len(drawn))), plots.map_plot(fit, drawn),
        ]),
        (f"Outliers and other {sample}s", "samples", [
            Paragraph(
                f"Most unusual {sample}s first. The weight is relative to the largest weight; "
                "missing values do not lower it. The energy is the reconstruction error of a "
                f"{sample}; the last column shows which {fit.table.words.feature}s cause most of "
                f"it: ↑ more than the {component}s explain, ↓ less. The main {component} has the "
                f"largest share in the approximation of the {sample}."
            ),
            samples_table(fit),
        ]),
        ("Reconstruction errors", "energies", [
            Paragraph(
                f"This weighting has no cutoff: outliers are {sample}s with less than a tenth of "
                "the mean weight."
                if fit.cutoffs is None else
                f"{sample.capitalize()}s with an energy (reconstruction error) above their cutoff "
                f"are down-weighted or left out; small {sample}s have lower cutoffs."
            ),
            plots.energies_plot(fit),
        ]),
        ("Codes", "codes", [
            Paragraph(
                f"The amount of each {component} in a {sample}, relative to the largest amount "
                f"among {sample}s that are not outliers." + _count_note(fit, n_columns)
            ),
            codes,
        ]),
        (f"Number of {component}s", "rank",
         [] if fit.selection is None else rank_curve(fit.selection)),
        ("How it was computed", "fit", [*_facts(fit, command), plots.objective_plot(fit)]),
        ("How the file was read", "data", [Bullets(notes)]),
    ]  # fmt: skip


def _facts(fit: Fit, command: Sequence[str]) -> list[Content]:
    """Return the command, version and parameters that repeat the fit."""
    model = fit.model
    line = shlex.join(["robustnmf", *command])
    facts = [
        f"Version: robustnmf {__version__}",
        f"Random seed: {model.random_state}",
        f"Loss: {model.loss}, weighting: {model.weighting}, start: {model.init or 'default'}",
        f"Missing values: {fit.missing_text}",
    ]
    shown = [Paragraph(display_name(line, len(line)), "command")] if command else []
    return [*shown, Bullets(facts)]


def _count_note(fit: Fit, drawn: int) -> str:
    """Say in words how many of the samples a plot shows, if not all."""
    if drawn >= len(fit.codes):
        return ""
    return (
        f" The plot shows {drawn:,} of {len(fit.codes):,} {fit.table.words.sample}s: the most "
        "unusual ones, and a random sample of the others."
    )


def _summary_text(fit: Fit) -> str:
    """Return the first paragraph: sizes, number of components, outliers."""
    sample, feature, component = fit.table.words
    n_samples, n_features = fit.table.data.shape
    count = int(fit.outliers.sum())
    n_eff = float(fit.model.effective_sample_size_)
    rank = int(fit.model.components_.shape[0])
    reason = "" if fit.selection is None else ", the recommended number,"
    words = (
        f"{counted(n_samples, sample)} with {counted(n_features, feature)} were factorised into "
        f"{counted(rank, component)}{reason} in {counted(fit.model.n_iter_, 'iteration')}. "
    )
    if fit.missing.any():
        words += f"{fit.missing_text}. "
    blank = int(fit.blank.sum())
    if blank:
        words += f"{counted(blank, f'blank {sample}')}: all values are zero or missing. "
    if not count:
        return words + f"There are no outliers. The effective sample size is {n_eff:,.0f}."
    *first, last = (display_name(fit.table.ids[i]) for i in fit.order[: min(count, 3)].tolist())
    worst = f"are {', '.join(first)} and {last}" if first else f"is {last}"
    return words + (
        f"{counted(count, 'outlier')} ({format_percent(count / n_samples)}) "
        f"{'were' if count > 1 else 'was'} down-weighted or left out; the most extreme {worst}. "
        f"The effective sample size is {n_eff:,.0f}."
    )


def _map_text(fit: Fit) -> str:
    sample, _, component = fit.table.words
    few = {1: f"by the code of the {component}", 2: f"by the codes of both {component}s"}
    place = few.get(fit.codes.shape[1], f"by the shares of the {component}s in them")
    colors = "" if fit.color_by is None else f"by {display_name(fit.color_by)}; outliers are x"
    text = f"{sample.capitalize()}s {place}, coloured {colors or 'by whether they are outliers'}."
    if fit.codes.shape[1] <= 2:
        return text + (
            f" An axis is logarithmic if a few {sample}s have much larger codes than the others; "
            "values near zero are then drawn at its end."
        )
    return text + (
        f" The larger the share of a {component}, the nearer a {sample} is to it; {sample}s that "
        f"mix many {component}s lie near the centre."
    )


def _components_text(fit: Fit) -> str:
    sample, feature, component = fit.table.words
    count = len(fit.model.components_)
    text = f"Each {sample} is a weighted sum of these {component}s."
    if fit.image_shape is None and plots.feature_axis(fit.table) is None:
        text += f" Bars show the largest {feature}s of each {component}."
    if fit.scale is not None:
        text += " Features are in units of their scale; basis.csv has the units of the file."
    if count > plots.MAX_COMPONENTS:
        text += f" The first {plots.MAX_COMPONENTS} of {count} are shown; all are in basis.csv."
    return text


def usage_by_group(fit: Fit) -> list[Content]:
    """Return a table of the mean usage of each component in the groups of the coloured column."""
    sample, _, component = fit.table.words
    if fit.color_by is None or fit.table.colors is None:
        columns = join_first(map(display_name, fit.table.groupings))
        return [Paragraph(
            f"--color-by COLUMN adds the mean usage of each {component} in the groups of a column "
            f"of obs, here one of: {columns}."
        )] if columns else []  # fmt: skip
    column = display_name(fit.color_by)
    labels = plots.group_labels(np.asarray(fit.table.colors))
    if labels is None:
        return [Paragraph(f"{column} holds many different numbers, which form no groups.")]
    shares = fit.component_shares(np.arange(len(fit.codes)))
    is_used = shares.sum(axis=1) > 0
    shares = shares[is_used]
    groups, members, counts = np.unique(labels[is_used], return_inverse=True, return_counts=True)
    names = fit.component_names[: plots.MAX_COMPONENTS]
    rows: list[list[str | TableCell]] = []
    for i in np.argsort(-counts, kind="stable")[:MAX_GROUPS].tolist():
        group = display_name(str(groups[i]))
        usages = shares[members == i].mean(axis=0).tolist()
        cells = [
            TableCell(f"{usage:.0%}", usage, hint=f"{group}, {name}: {usage:.2%}", shade=usage)
            for name, usage in zip(names, usages, strict=False)
        ]
        rows.append([group, TableCell(f"{counts[i]:,}", float(counts[i])), *cells])
    text = (
        f"The usage of a {component} is its share in the approximation of a {sample}; the usages "
        f"of a {sample} sum to 100%. Each row is the mean of a group. Hover over a number for more "
        "digits."
    )
    caption = f"Mean usage of each {component} by {column}"
    if len(groups) > MAX_GROUPS:
        caption += f"; the {MAX_GROUPS} largest of {len(groups)} groups"
    return [Paragraph(text), Table([column, f"{sample}s", *names], rows, caption)]


def rank_curve(selection: RankSelection) -> list[Content]:
    """Describe how the number of components was chosen, in words and in a plot."""
    text = (
        f"Entries were hidden and predicted with {selection.ranks[0]} to {selection.ranks[-1]} "
        f"components; the error is least with {counted(selection.best, 'component')}. "
    )
    if selection.silhouette is not None:
        text += (
            "Fits from random starts were compared: a silhouette of 1 means that all starts find "
            "the same components, and components are stable if it is at least 0.8. "
        )
    return [Paragraph(text + selection.reason), plots.rank_plot(selection)]


def samples_table(fit: Fit) -> Table:
    """Return the table of the most outlying samples."""
    count, features = fit.table.data.shape
    farthest = fit.order[:MAX_SAMPLES]
    n_explained = min(len(farthest), max(MIN_EXPLAINED, MAX_ENTRIES // features))
    texts, bad_entries = _explain(fit, farthest[:n_explained])
    names = fit.component_names
    shares = fit.component_shares(farthest)
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
    sample, _, component = fit.table.words
    header = [sample, "outlier", "weight", "energy", f"main {component}", "largest residuals"]
    header += [] if bad_entries is None else ["entries without weight"]
    caption = f"All {counted(count, sample)}"
    if len(rows) < count:
        caption = f"The {len(rows):,} most unusual of {count:,} {sample}s; all are in samples.csv"
    return Table(header, rows, caption, searchable=True)


def _explain(fit: Fit, indices: np.ndarray) -> tuple[list[str], list[tuple[str, int]] | None]:
    """Name the features with the largest residuals, and the entries without weight."""
    dense = as_dense(take_rows(fit.table.data, indices))
    has_weights = hasattr(fit.model, "entry_weights")
    with warnings.catch_warnings(action="ignore"):  # names of features are those of the fit
        contributions = np.nan_to_num(fit.model.explain(dense))
        weights = fit.model.entry_weights(dense) if has_weights else None
    texts = []
    for row in contributions:
        chosen, others = contribution_shares(row)
        named = [
            f"{'↑' if row[j] > 0 else '↓'} {fit.feature_name(j)} {percent}%"
            for j, percent in chosen
        ]
        texts.append(", ".join([*named, f"others {others}%"] if others else named))
    if weights is None:
        return texts, None
    bad_entries = []
    for entries in np.nan_to_num(weights, nan=1.0):
        bad = np.flatnonzero(entries < BAD_ENTRY).tolist()
        listed = ", ".join(fit.feature_name(j) for j in bad[:MAX_BAD_ENTRIES])
        more = f" and {len(bad) - MAX_BAD_ENTRIES} more" if len(bad) > MAX_BAD_ENTRIES else ""
        bad_entries.append((listed + more, len(bad)))
    return texts, bad_entries


def contribution_shares(contributions: np.ndarray) -> tuple[list[tuple[int, int]], int]:
    """Return the largest shares of an energy in percent, with their features, and that of the rest.

    Contributions (features,) are signed; shares are of the sum of their absolute values. They are
    rounded so that they add up to 100 (the largest remainders are rounded up).
    """
    sizes = np.abs(contributions)
    total = float(sizes.sum())
    if not 0 < total < np.inf:
        return [], 0
    top = np.argsort(-sizes, kind="stable")[:MAX_NAMED]
    exact = 100 * np.append(sizes[top], max(total - float(sizes[top].sum()), 0.0)) / total
    percents = np.floor(exact).astype(int)
    short = 100 - int(percents.sum())
    percents[np.argsort(percents - exact, kind="stable")[:short]] += 1
    chosen = [(int(j), int(p)) for j, p in zip(top, percents[:-1], strict=True) if p > 0]
    return chosen, 100 - sum(percent for _, percent in chosen)


def top_features_table(fit: Fit) -> list[Content]:
    """Return a table of the most distinctive features of components, if there are several."""
    distinctive = top_features(fit.model, TOP_FEATURES)[: plots.MAX_COMPONENTS]
    if len(distinctive) < 2 or fit.image_shape is not None:
        return []
    _, feature, component = fit.table.words
    rows: list[list[str | TableCell]] = []
    for name, features in zip(fit.component_names, distinctive, strict=False):
        listed = []
        for top in sorted(features, key=lambda top: -min(top.ratio, FAR_MORE)):
            if top.ratio >= MIN_RATIO:
                times = f"{top.ratio:.1f}" if top.ratio < FAR_MORE else f"over {FAR_MORE}"
                listed.append(f"{fit.feature_name(top.feature)} ({times} times)")
        rows.append([name, TableCell(", ".join(listed) or "none", kinds=("text",))])
    caption = (
        f"Most distinctive {feature}s of each {component} (in parentheses: how many times larger "
        f"than in any other {component})"
    )
    return [Table([component, f"{feature}s"], rows, caption)]
