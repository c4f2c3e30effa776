"""Tables of the benchmark of bad entries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robustnmf.experiments.contamination.cells import (
    Row,
    Value,
    band_cell,
    cells_in,
    failures,
    goals_text,
    means_of,
    number_cell,
    part_grid,
    verdict,
)
from robustnmf.experiments.contamination.entries.goals import (
    BANDS,
    CEILING_BANDS,
    CLEAN,
    MIXED,
    SCATTERED,
    EntryBand,
    auroc_verdicts,
    baseline_verdict,
    halfway_verdict,
    over_ceiling,
    parts_of,
    score_value,
)
from robustnmf.experiments.contamination.entries.methods import CEILING, OURS
from robustnmf.experiments.outcome import Cell, Grid, Outcome

LAST = (CEILING, OURS)
"""Methods at the end of every table."""


def outcomes(rows: Sequence[Row]) -> list[Outcome]:
    """Build all tables of the benchmark."""
    return [_errors(rows), _over_ceiling(rows), _auroc(rows), _seconds(rows), _cells(rows)]


def methods_of(rows: Sequence[Row]) -> list[str]:
    """Return all methods: the ceiling and ours last."""
    names = dict.fromkeys(score.method for _, score in rows)
    return sorted(names, key=lambda name: LAST.index(name) if name in LAST else -1)


def _errors(rows: Sequence[Row]) -> Outcome:
    notes = failures(rows)
    parts = parts_of(rows)
    error = score_value("relative_error")
    for part, part_rows in parts.items():
        cells = means_of(part_rows, OURS, error)
        notes += [verdict(OURS, part, cells, band) for band in (CLEAN, MIXED)]
        notes += [baseline_verdict(part, part_rows, band) for band in BANDS]
        notes.append(halfway_verdict(part, part_rows))
    return Outcome(
        "errors",
        "Error on clean samples",
        "Squared error of clean samples held back, with the basis learned from the spoiled table, "
        "relative to plain NMF of the same table before: mean over all cells / 95th percentile / "
        "worst. A cell is a dataset with a corruption and a share, and a mean over seeds. "
        f"\"{CEILING}\" has these entries as missing values, and methods with \"best of\" have "
        "what is best on the samples held back: no user has either.",
        [_banded(part, part_rows, BANDS, error) for part, part_rows in parts.items()],
        notes=[note for note in notes if note],
    )  # fmt: skip


def _over_ceiling(rows: Sequence[Row]) -> Outcome:
    value = over_ceiling(rows)
    parts = parts_of(rows)
    scattered = CEILING_BANDS[BANDS.index(SCATTERED)]
    notes = [
        verdict(f"{OURS}, error over the ceiling's", part, means_of(part_rows, OURS, value),
                scattered)
        for part, part_rows in parts.items()
    ]  # fmt: skip
    return Outcome(
        "ceiling",
        "Error relative to the ceiling",
        f"The same errors relative to those of \"{CEILING}\" in the same scenario: mean over all "
        "cells / 95th percentile / worst.",
        [_banded(part, part_rows, CEILING_BANDS, value) for part, part_rows in parts.items()],
        notes=[note for note in notes if note],
    )  # fmt: skip


def _banded(part: str, rows: Sequence[Row], bands: Sequence[EntryBand], value: Value) -> Grid:
    """Tabulate a value by method and band: mean / 95th percentile / worst cell."""
    table = []
    for method in methods_of(rows):
        cells = means_of(rows, method, value)
        if cells:
            table.append([Cell(method), *(band_cell(cells, band) for band in bands)])
    headers = [f"{b.title} ({goals_text(b)})" if b.goals else b.title for b in bands]
    return part_grid(part, rows, headers, table)


def _auroc(rows: Sequence[Row]) -> Outcome:
    """Tabulate how well methods rank bad entries by corruption, and bad samples."""
    columns = [
        (f"{kind}: {title}", kind, name)
        for title, name in (("entries", "entry_auroc"), ("samples", "auroc"))
        for kind in ("extreme", "large", "covered", "mixed", "missing")
        if name == "entry_auroc" or kind in ("covered", "mixed")
    ]
    grids, notes = [], []
    for part, part_rows in parts_of(rows).items():
        table = []
        for method in methods_of(part_rows):
            numbers = [_mean(part_rows, method, kind, name) for _, kind, name in columns]
            table.append([Cell(method), *(number_cell(number, ".3f") for number in numbers)])
        grids.append(part_grid(part, part_rows, [title for title, _, _ in columns], table))
        notes += auroc_verdicts(part, part_rows)
    return Outcome(
        "auroc",
        "Finding the bad entries and samples",
        "Area under the ROC curve, mean over datasets, shares and seeds. Entries are ranked by "
        "their weights where a method has any, else by the absolute residual under its basis with "
        "the best codes; samples by their squared residuals, or the method's own scores.",
        grids,
        notes=notes,
    )


def _mean(rows: Sequence[Row], method: str, kind: str, name: str) -> float:
    """Return the mean of a score over the cells of a corruption; NaN without any."""
    cells = cells_in(means_of(rows, method, score_value(name)), EntryBand("", (kind,)))
    return float(np.mean(list(cells.values()))) if cells else np.nan


def _seconds(rows: Sequence[Row]) -> Outcome:
    """Tabulate the mean time of a fit by dataset."""
    names = list(dict.fromkeys(scenario.dataset for scenario, _ in rows))
    table = []
    for method in methods_of(rows):
        cells = means_of(rows, method, score_value("seconds"))
        times = [[v for p, v in cells.items() if p.dataset == name] for name in names]
        numbers = [float(np.mean(values)) if values else np.nan for values in times]
        table.append([Cell(method), *(number_cell(number, ".2f") for number in numbers)])
    return Outcome(
        "seconds",
        "Seconds",
        "Time of a fit on one core with its first step or its grid, mean over corruptions, shares "
        "and seeds.",
        [Grid("seconds", ("method", *names), table)],
    )


def _cells(rows: Sequence[Row]) -> Outcome:
    """Tabulate the error of every method in every cell."""
    methods = methods_of(rows)
    cells = {m: means_of(rows, m, score_value("relative_error")) for m in methods}
    places = sorted(set().union(*cells.values()))
    table = [
        [
            Cell(place.dataset), Cell(place.corruption), Cell(f"{place.share:.0%}", place.share),
            *(number_cell(cells[method].get(place), ".3f") for method in methods),
        ]
        for place in places
    ]  # fmt: skip
    return Outcome(
        "cells",
        "Every dataset and corruption",
        "Relative error, mean over all seeds.",
        [Grid("every cell, all seeds", ("dataset", "corruption", "share", *methods), table)],
    )
