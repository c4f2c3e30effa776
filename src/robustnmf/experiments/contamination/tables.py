"""Tables of the benchmark; datasets that were used for tuning have separate tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from robustnmf.experiments.contamination.cells import (
    Place,
    Row,
    Summary,
    band_cell,
    cells_in,
    failures,
    goals_text,
    number_cell,
    part_grid,
    verdict,
)
from robustnmf.experiments.contamination.figures import detection, known_parts, over_shares
from robustnmf.experiments.contamination.goals import (
    BANDS,
    CLEAN,
    GEOMETRIC,
    baseline_verdict,
    lost_verdict,
    means,
    minority_verdict,
    parts_of,
)
from robustnmf.experiments.contamination.methods import BEST, OURS, PLAIN
from robustnmf.experiments.contamination.two_step import FOREST_FIRST, ORACLE_FIRST, TWO_STEP
from robustnmf.experiments.outcome import Cell, Grid, Outcome

BEHIND = 0.03
"""A cell is behind the best two-step baseline if the difference is larger."""

LISTED = 8
"""Largest number of cells that a note names."""


def outcomes(rows: Sequence[Row], own: Sequence[str] = ()) -> list[Outcome]:
    """Build all tables and figures of the benchmark.

    ``own`` are the user's estimators, which get their own columns in the table of cells.
    """
    methods = methods_of(rows, "relative_error")
    results = [
        _errors(rows), _geometric(rows), _lost(rows), _ranks(rows), _cells(rows, own),
        over_shares(rows, methods), detection(rows), known_parts(rows, methods),
    ]  # fmt: skip
    return [outcome for outcome in results if outcome is not None]


def methods_of(rows: Iterable[Row], score_name: str) -> list[str]:
    """Return the methods that have a score, the grids and RobustNMF last."""
    names = dict.fromkeys(
        score.method for _, score in rows if np.isfinite(getattr(score, score_name))
    )
    return sorted(names, key=lambda name: (name == OURS, BEST in name))


def _errors(rows: Sequence[Row]) -> Outcome:
    grids, notes = [], failures(rows)
    for part, part_rows in parts_of(rows).items():
        headers = [f"{band.title} ({goals_text(band)})" for band in BANDS]
        grids.append(_banded(part, part_rows, "error", headers, "relative_error"))
        cells = means(part_rows, OURS, "error")
        notes += [verdict(OURS, part, cells, band) for band in BANDS]
        notes += [baseline_verdict(part, part_rows, band) for band in BANDS]
        notes.append(_by_squared_error(part, part_rows))
    notes.append(minority_verdict(rows))
    return Outcome(
        "errors",
        "Error on clean samples",
        "Squared error of samples held back, with the basis learned from spoiled data, relative to "
        "plain NMF that has seen the clean part of them: mean over all cells / 95th percentile / "
        "worst. A cell is a dataset with a corruption and a share, or a clean table at a rank, and "
        f"a mean over seeds. {GEOMETRIC} is judged by the geometric mean of the samples' ratios: "
        "1% of its samples carry most of the squared error. Methods with \"best of grid\" use the "
        "value of their hyperparameter that is best on the samples held back, and "
        f"\"{ORACLE_FIRST}\" the true share of bad samples: no user has either.",
        grids,
        notes=[note for note in notes if note],
    )  # fmt: skip


def _by_squared_error(part: str, rows: Sequence[Row]) -> str:
    """Describe the means if every dataset were scored by the squared error."""
    if not any(scenario.dataset == GEOMETRIC for scenario, _ in rows):
        return ""
    cells = means(rows, OURS, "relative_error")
    by_band = {band.title: cells_in(cells, band) for band in BANDS}
    summaries = {
        title: Summary.of(band_cells) for title, band_cells in by_band.items() if band_cells
    }
    texts = [
        f"{title} mean {summary.mean:.3f}, worst {summary.worst:.3f}"
        for title, summary in summaries.items()
    ]
    return f"{OURS}, {part}, with {GEOMETRIC} by squared error too: {'; '.join(texts)}."


def _banded(
    part: str,
    rows: Sequence[Row],
    value_name: str,
    headers: Sequence[str],
    score_name: str,
    form: str = ".3f",
) -> Grid:
    """Tabulate a value (see `means`) by method and band: mean / 95th percentile / worst cell.

    Methods without the score ``score_name`` are left out.
    """
    table = []
    for method in methods_of(rows, score_name):
        cells = means(rows, method, value_name)
        bands = BANDS if value_name == "error" else [band.without_goals() for band in BANDS]
        table.append([Cell(method), *(band_cell(cells, band, form) for band in bands)])
    return part_grid(part, rows, headers, table)


def _geometric(rows: Sequence[Row]) -> Outcome:
    titles = [band.title for band in BANDS]
    return Outcome(
        "geometric",
        "Error on clean samples, every sample alike",
        "Geometric mean over the samples held back of their squared error relative to that under "
        "plain NMF of the clean samples: mean over all cells / 95th percentile / worst. No single "
        "sample decides it.",
        [
            _banded(part, part_rows, "geometric_error", titles, "geometric_error")
            for part, part_rows in parts_of(rows).items()
        ],
    )


def _lost(rows: Sequence[Row]) -> Outcome:
    titles = [band.title for band in BANDS]
    # Detectors have this score, but not at every rank; they have a separate table.
    basis_rows = [row for row in rows if np.isfinite(row[1].relative_error)]
    parts = parts_of(basis_rows)
    notes = [lost_verdict(part, part_rows) for part, part_rows in parts.items()]
    return Outcome(
        "lost",
        "Good samples that lost their weight",
        "Share of the good samples of the training table whose importance is below a tenth of the "
        "average one, or that a first step drops: mean over all cells / 95th percentile / worst.",
        [
            _banded(part, part_rows, "lost", titles, "lost", ".1%")
            for part, part_rows in parts.items()
        ],
        notes=[note for note in notes if note],
    )


def _ranks(rows: Sequence[Row]) -> Outcome | None:
    """Tabulate clean tables by rank: RobustNMF and the isolation forest."""
    scores = ("relative_error", "geometric_error", "lost")
    cells = {
        (method, score): cells_in(means(rows, method, score), CLEAN)
        for method in (OURS, FOREST_FIRST) for score in scores
    }  # fmt: skip
    places = sorted(cells[OURS, scores[0]])
    if not places:
        return None
    forms = dict(zip(scores, (".3f", ".3f", ".1%"), strict=True))
    table = [
        [
            Cell(place.dataset), Cell(str(place.rank) if place.rank else "own", place.rank),
            *(number_cell(values.get(place), forms[score]) for (_, score), values in cells.items()),
        ]
        for place in places
    ]  # fmt: skip
    titles = ("error", "geometric", "lost")
    header = (
        "dataset", "rank", *(f"{OURS}: {title}" for title in titles),
        *(f"{FOREST_FIRST}: {title}" for title in titles),
    )  # fmt: skip
    return Outcome(
        "ranks",
        "Clean tables at every rank",
        "Relative error, geometric mean of the samples' ratios, and share of the samples that lost "
        "their weight, mean over all seeds. The table's own rank is ten, one for every three "
        "features, or the number of its clusters.",
        [Grid(f"{OURS} at every rank", header, table)],
    )


def _cells(rows: Sequence[Row], own: Sequence[str]) -> Outcome:
    """Tabulate every cell: RobustNMF, plain NMF, own methods and the best two-step baseline."""
    ours, geometric = means(rows, OURS, "relative_error"), means(rows, OURS, "geometric_error")
    plain = means(rows, PLAIN, "relative_error")
    of_own = [means(rows, method, "relative_error") for method in own]
    by_method = {method: means(rows, method, "relative_error") for method in TWO_STEP}
    best: dict[Place, tuple[float, str]] = {}
    for place in ours:
        values = [(cells[place], name) for name, cells in by_method.items() if place in cells]
        if values:
            best[place] = min(values)
    table = []
    for place, value in sorted(ours.items()):
        other, name = best.get(place, (None, ""))
        behind = other is not None and value > other + BEHIND
        table.append([
            Cell(place.dataset), Cell(place.corruption), Cell(f"{place.share:.0%}", place.share),
            Cell(str(place.rank) if place.rank else "own", place.rank),
            number_cell(value, ".3f"), number_cell(geometric.get(place), ".3f"),
            number_cell(plain.get(place), ".3f"),
            *(number_cell(values.get(place), ".3f") for values in of_own),
            number_cell(other, ".3f"),
            Cell(name), Cell("behind" if behind else ""),
        ])  # fmt: skip
    header = ("dataset", "corruption", "share", "rank", OURS, f"{OURS}, geometric", PLAIN, *own,
              "best two-step", "which", f"behind it by more than {BEHIND:g}")  # fmt: skip
    return Outcome(
        "cells",
        "Every dataset and corruption",
        "Relative error, mean over all seeds; the geometric mean of the samples' ratios beside it. "
        "The best two-step baseline is the best of each cell, which no user can choose.",
        [Grid(f"{OURS} in every cell, all seeds", header, table)],
        notes=_cells_behind(ours, best),
    )


def _cells_behind(
    ours: Mapping[Place, float], best: Mapping[Place, tuple[float, str]]
) -> list[str]:
    """Describe in how many cells RobustNMF is behind a two-step baseline, and list the worst."""
    if not best:
        return []
    behind = {p: ours[p] - other for p, (other, _) in best.items() if ours[p] > other + BEHIND}
    farthest = sorted(behind, key=lambda place: -behind[place])[:LISTED]
    names = "; ".join(f"{p}: {ours[p]:.2f} against {best[p][0]:.2f}" for p in farthest)
    return [
        f"{OURS} is behind the best two-step baseline of the cell by more than {BEHIND:g} in "
        f"{len(behind)} of {len(best)} cells{f', farthest {names}' if names else ''}."
    ]
