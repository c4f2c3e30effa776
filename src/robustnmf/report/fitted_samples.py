"""Tables of a fit: the most outlying samples with what makes them so, and features of parts."""

from __future__ import annotations

import warnings

import numpy as np

from robustnmf.arrays import as_dense
from robustnmf.report.fitted_data import Fit
from robustnmf.report.names import display_name
from robustnmf.report.page import Content, Table, TableCell
from robustnmf.tables import take_rows

MAX_SAMPLES, MAX_NAMED = 500, 3
"""Rows of the table, and features that are named for a sample."""

MAX_ENTRIES = 2_000_000
"""Entries of the samples that are explained: they are made dense."""

TOP_FEATURES, MAX_PARTS, MIN_RATIO, FAR_MORE = 6, 60, 1.05, 1000
"""Features of a part, parts of that table, the least and the largest ratio that is written out."""

MIN_EXPLAINED = 10
BAD_ENTRY, MAX_BAD_ENTRIES = 0.1, 5
"""Weight below which an entry is named in the table, and the most names for a sample."""


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
    from robustnmf.estimators import top_features

    parts = top_features(fit.model, TOP_FEATURES)[:MAX_PARTS]
    if len(parts) < 2 or fit.image_shape is not None:
        return []
    rows: list[list[str | TableCell]] = []
    for i, features in enumerate(parts, start=1):
        listed = [
            f"{fit.feature_name(top.feature)} ({_times(top.ratio)})"
            for top in features
            if top.ratio >= MIN_RATIO
        ]
        rows.append([f"part {i}", TableCell(", ".join(listed) or "none", kinds=("text",))])
    caption = (
        "Features that tell parts from each other; in brackets their share of the part over the "
        "largest share of any other part"
    )
    return [Table(["part", "features"], rows, caption)]


def _times(ratio: float) -> str:
    """Write a ratio of shares."""
    return f"{ratio:.1f} times" if ratio < FAR_MORE else f"over {FAR_MORE} times"
