"""The study of bad samples: which tables and corruptions, goals, tables and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from robustnmf.corruptions import CORRUPTIONS
from robustnmf.datasets._base import DataDir
from robustnmf.experiments.contamination.cells import (
    Band,
    Cells,
    Layout,
    Place,
    Summary,
    averages,
    failures,
    means,
    met,
    number_cell,
    number_cells,
    place_cells,
)
from robustnmf.experiments.contamination.first_steps import DETECTORS, FLAGGING, OUR_DETECTOR
from robustnmf.experiments.contamination.generated import GENERATED, SYNTHETIC
from robustnmf.experiments.contamination.judge import Score
from robustnmf.experiments.contamination.sample_methods import (
    BEST,
    CEILING,
    FOREST_FIRST,
    GROUPS,
    ORACLE_FIRST,
    OURS,
    PLAIN,
    TWO_STEP,
)
from robustnmf.experiments.contamination.scenario import IRIS, Scenario, draw_samples, ranks_of
from robustnmf.experiments.contamination.study import Row, Scope, Study, plan_scope
from robustnmf.experiments.outcome import Cell, Chart, Grid, Line, Outcome

MINORITY = ("small_cluster", "noise", 0.15)
"""Dataset, corruption and share of one more scenario: a cluster that is as small as the noise."""

FULL = Scope(
    datasets=(
        "digits", "wdbc", "orl", SYNTHETIC, "gtfd", "yale", "page_blocks", "thyroid", IRIS,
        *(name for name in GENERATED if name != SYNTHETIC),
    ),
    shares=dict.fromkeys(CORRUPTIONS, (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)),
    seeds=tuple(range(10)),
    groups=tuple(GROUPS),
)  # fmt: skip
QUICK = Scope(
    datasets=("digits", "wdbc", SYNTHETIC, "three_clusters", IRIS),
    shares=dict.fromkeys(CORRUPTIONS, (0.0, 0.1, 0.3)),
    seeds=(0, 5),
    groups=("methods", "two_step", "detectors"),
    corruptions=("noise", "occluded", "foreign", "repeated"),
)

GEOMETRIC = "page_blocks"
"""Dataset scored by the geometric mean: 1% of its samples carry most of the squared error."""

LOST_GOAL, FLAGGED_GOAL, MINORITY_GOAL = 0.02, 0.03, 1.15

GOOD, DETECTION_SHARE = 0.95, 0.2
"""AUROC of a good detector, and the share of bad samples of its table."""

BEHIND = 0.03
"""A cell is behind the best two-step baseline if the difference is larger."""

LISTED = 8
"""Largest number of cells that a note names."""


def scenarios(
    dataset: str, seed: int, shares: Mapping[str, tuple[float, ...]], data_dir: DataDir
) -> Iterator[Scenario]:
    """Yield the clean table at every rank, then every corruption at the default rank."""
    for share in next(iter(shares.values())):
        if not share:
            for rank in ranks_of(dataset, data_dir):
                yield Scenario(dataset, next(iter(shares)), share, seed, rank)
            continue
        for kind in shares:
            yield Scenario(dataset, kind, share, seed)
    if dataset == MINORITY[0] and MINORITY[1] in shares:
        yield Scenario(*MINORITY, seed)


def error(scenario: Scenario, score: Score) -> float:
    """Return the geometric error for `GEOMETRIC`, else the relative error."""
    is_geometric = scenario.dataset == GEOMETRIC
    return score.geometric_error if is_geometric else score.relative_error


CLEAN = Band("clean", lambda place: not place.share, {"mean": 1.01, "worst": 1.05})
LAYOUT = Layout(
    ours=OURS,
    order=lambda name: 2 * (name == OURS) + (BEST in name),
    tuned_datasets=(
        "digits", "wdbc", "orl", "two_clusters", "three_clusters", "few_clusters", IRIS,
    ),
    tuned_seeds=range(5),
    bands=(
        CLEAN,
        Band("5 to 20%", lambda p: 0 < p.share <= 0.2, {"mean": 1.04, "95th percentile": 1.15}),
        Band("30 to 40%", lambda p: 0.2 < p.share <= 0.5, {"mean": 1.12}),
    ),
    error=error,
    baselines=TWO_STEP,
    oracle=ORACLE_FIRST,
)  # fmt: skip
WITHOUT_GOALS = tuple(band._replace(goals={}) for band in LAYOUT.bands)


def outcomes(rows: Sequence[Row], own: Sequence[str] = ()) -> list[Outcome]:
    """Build all tables and figures of the study.

    ``own`` are the user's estimators, which get their own columns in the table of cells.
    """
    results = [
        _errors(rows), _geometric(rows), _lost(rows), _ranks(rows), _cells(rows, own),
        _over_shares(rows), _detection(rows), _known_parts(rows),
    ]  # fmt: skip
    return [outcome for outcome in results if outcome is not None]


def _errors(rows: Sequence[Row]) -> Outcome:
    notes = failures(rows)
    for part, part_rows in LAYOUT.parts(rows).items():
        notes += [*LAYOUT.error_notes(part, part_rows), _by_squared_error(part, part_rows)]
    notes.append(_minority_verdict(rows))
    return Outcome(
        "errors",
        "Error on clean samples",
        "Squared error of held-out clean samples with the components learned from corrupted data, "
        "relative to plain NMF fitted to the clean samples only: mean over all cells / 95th "
        "percentile / worst. A cell is a dataset with a corruption and a share, or a clean table "
        "with a number of components; its value is the mean over the seeds. "
        f"{GEOMETRIC} is judged by the geometric mean of the ratios of single samples, because 1% "
        "of its samples have most of the squared error. Methods with \"best of grid\" use the "
        "hyperparameter that is best on the held-out samples, and "
        f"\"{ORACLE_FIRST}\" uses the true share of corrupted samples. Users know neither.",
        LAYOUT.banded(rows, error, LAYOUT.bands),
        notes=[note for note in notes if note],
    )  # fmt: skip


def _by_squared_error(part: str, rows: Sequence[Row]) -> str:
    """Describe the means if every dataset were scored by the squared error."""
    if not any(scenario.dataset == GEOMETRIC for scenario, _ in rows):
        return ""
    cells = means(rows, OURS, "relative_error")
    by_band = {band.title: band.of(cells) for band in LAYOUT.bands}
    summaries = {title: Summary.of(in_band) for title, in_band in by_band.items() if in_band}
    texts = [f"{t} mean {s.mean:.3f}, worst {s.worst:.3f}" for t, s in summaries.items()]
    return f"{OURS}, {part}, with {GEOMETRIC} by squared error too: {'; '.join(texts)}."


def _minority_verdict(rows: Sequence[Row]) -> str:
    """Describe whether a small cluster is kept in every draw if there is as much noise."""
    dataset, kind, share = MINORITY
    errors = [
        score.relative_error
        for scenario, score in rows
        if (scenario.dataset, scenario.corruption, scenario.share) == MINORITY
        and score.method == OURS
    ]
    if not errors:
        return ""
    successes = sum(error <= MINORITY_GOAL for error in errors)
    return (
        f"{OURS}, {dataset} (15% of the samples) with {share:.0%} {kind}: error at most "
        f"{MINORITY_GOAL:g} in {successes} of {len(errors)} draws, worst {max(errors):.3f} "
        f"({met(successes == len(errors))})."
    )


def _geometric(rows: Sequence[Row]) -> Outcome:
    return Outcome(
        "geometric",
        "Error on clean samples, all samples weighted equally",
        "For each held-out sample, the ratio of its squared error to its error with plain NMF "
        "fitted to the clean samples; geometric mean over the samples: mean over all cells / 95th "
        "percentile / worst. No single sample dominates this error.",
        LAYOUT.banded(rows, "geometric_error", WITHOUT_GOALS),
    )


def _lost(rows: Sequence[Row]) -> Outcome:
    # Detectors have this score, but not at every rank; they have a separate table.
    rows = [row for row in rows if np.isfinite(row[1].relative_error)]
    notes = []
    for part, part_rows in LAYOUT.parts(rows).items():
        if cells := CLEAN.of(means(part_rows, OURS, "lost")):
            summary = Summary.of(cells)
            notes.append(
                f"{OURS}, {part}, clean: {summary.mean:.1%} of the good samples left out "
                f"(goal {LOST_GOAL:.0%}, {met(summary.mean <= LOST_GOAL)}), worst "
                f"{summary.worst:.1%} at {summary.at}."
            )
    return Outcome(
        "lost",
        "Good samples that were left out",
        "Share of the good samples of the training table whose weight is below a tenth of the "
        "average weight, or that a first step removes: mean over all cells / 95th percentile / "
        "worst.",
        LAYOUT.banded(rows, "lost", WITHOUT_GOALS, ".1%"),
        notes=notes,
    )


def _ranks(rows: Sequence[Row]) -> Outcome | None:
    """Tabulate clean tables by rank: RobustNMF and the isolation forest."""
    columns = [
        (f"{method}: {title}", form, CLEAN.of(means(rows, method, score)))
        for method in (OURS, FOREST_FIRST)
        for title, form, score in (("error", ".3f", "relative_error"),
                                   ("geometric", ".3f", "geometric_error"), ("lost", ".1%", "lost"))
    ]  # fmt: skip
    places = sorted(columns[0][2])
    if not places:
        return None
    table = [
        [Cell(place.dataset), _rank_cell(place),
         *(number_cell(cells.get(place), form) for _, form, cells in columns)]
        for place in places
    ]  # fmt: skip
    header = ("dataset", "rank", *(title for title, _, _ in columns))
    return Outcome(
        "ranks",
        "Clean tables with each number of components",
        "Relative error, geometric mean of the ratios of single samples, and share of the samples "
        'that were left out (lost), mean over all seeds. "own" is the default number of '
        "components: ten, one third of the number of features, or the number of clusters.",
        [Grid(f"{OURS} with each number of components", header, table)],
    )


def _rank_cell(place: Place) -> Cell:
    return Cell(str(place.rank) if place.rank else "own", place.rank)


def _cells(rows: Sequence[Row], own: Sequence[str]) -> Outcome:
    """Tabulate every cell: RobustNMF, plain NMF, own methods and the best two-step baseline."""
    ours, geometric = means(rows, OURS, "relative_error"), means(rows, OURS, "geometric_error")
    others = [means(rows, method, "relative_error") for method in (PLAIN, *own)]
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
        numbers = [value, geometric.get(place), *(cells.get(place) for cells in others), other]
        table.append([
            *place_cells(place), _rank_cell(place), *number_cells(numbers, ".3f"),
            Cell(name), Cell("behind" if behind else ""),
        ])  # fmt: skip
    header = ("dataset", "corruption", "share", "rank", OURS, f"{OURS}, geometric", PLAIN, *own,
              "best two-step", "which", f"behind it by more than {BEHIND:g}")  # fmt: skip
    return Outcome(
        "cells",
        "Every dataset and corruption",
        "Relative error and geometric mean of the ratios of single samples, mean over all seeds. "
        "The best two-step baseline is chosen for each cell afterwards; users do not know it.",
        [Grid(f"{OURS} in every cell, all seeds", header, table)],
        notes=_cells_behind(ours, best),
    )


def _cells_behind(ours: Cells, best: Mapping[Place, tuple[float, str]]) -> list[str]:
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


def _over_shares(rows: Sequence[Row]) -> Outcome:
    """Draw the error of each method against the share of bad samples."""
    charts = []
    selection = [row for row in _own_rank(rows) if row[0].dataset != SYNTHETIC]
    for part, part_rows in LAYOUT.parts(selection).items():
        lines = []
        for method, cells in LAYOUT.by_method(part_rows, error).items():
            if shares := sorted({place.share for place in cells}):
                percent = [100 * share for share in shares]
                lines.append(Line(method, percent, averages(cells, "share", shares)))
        charts.append(Chart(part, "corrupted samples in percent", "relative error", lines))
    return Outcome(
        "shares",
        "Error against the share of corrupted samples",
        "Mean over datasets (without the synthetic one) and corruptions, each with its own number "
        "of components.",
        charts=charts,
    )


def _detection(rows: Sequence[Row]) -> Outcome | None:
    """Tabulate how well detectors rank bad samples, and what share of clean tables they flag."""
    rows = _own_rank(rows)
    shares = {scenario.share for scenario, _ in rows if scenario.share}
    if not shares:
        return None
    nearest = min(shares, key=lambda share: abs(share - DETECTION_SHARE))
    at_share = [row for row in rows if row[0].share == nearest]
    names = tuple(DETECTORS)
    auroc = {name: means(at_share, name, "auroc") for name in (*names, CEILING)}
    places = sorted(auroc[OUR_DETECTOR])
    if not places:
        return None
    ours, ceiling = auroc[OUR_DETECTOR], auroc[CEILING]
    detectable = [p for p in places
                  if max(auroc[name].get(p, 0.0) for name in names[1:]) >= GOOD]  # fmt: skip
    misses = [place for place in detectable if ours[place] < GOOD]
    table = []
    for place in places:
        values = [auroc[name].get(place, np.nan) for name in names]
        best = np.nanmax(values)
        cells = [number_cell(v, ".3f", ("best",) if v == best else ()) for v in values]
        names_of_place = (Cell(place.dataset), Cell(place.corruption))
        table.append([*names_of_place, *cells, number_cell(ceiling[place], ".3f")])
    listing = ", ".join(
        f"{p.dataset} {p.corruption} {ours[p]:.2f} (ceiling {ceiling[p]:.2f})" for p in misses
    )
    share = f"{nearest:.0%}"
    note = (
        f"With {share} corrupted samples, a detector of scikit-learn reaches an AUROC of {GOOD} in "
        f"{len(detectable)} of {len(places)} cells; {OUR_DETECTOR} does in "
        f"{len(detectable) - len(misses)} of these{f', not in: {listing}' if misses else ''}."
    )
    grids = [Grid("AUROC", ("dataset", "corruption", *names, CEILING), table)]
    flagged = {name: CLEAN.of(means(rows, name, "lost")) for name in FLAGGING}
    if clean := sorted(flagged[OUR_DETECTOR]):
        table = [
            [Cell(place.dataset), *number_cells((f.get(place) for f in flagged.values()), ".1%")]
            for place in clean
        ]
        title = "flagged samples of clean tables"
        grids.append(Grid(title, ("dataset", *FLAGGING), table, suffix="_clean"))
    return Outcome(
        "detection",
        "Finding the corrupted samples",
        f"Area under the ROC curve with {share} corrupted samples, mean over all seeds. "
        "EllipticEnvelope uses principal components if there are many features. The last column "
        "is an upper limit: it ranks samples by their errors with plain NMF fitted to the good "
        "samples only. The second table shows the share of the samples of clean tables that each "
        "detector flags.",
        grids,
        notes=[note, *_flagged_verdict(flagged[OUR_DETECTOR])],
    )


def _flagged_verdict(flagged: Cells) -> list[str]:
    """Describe how many samples of clean iris, digits and clusters our detector flags."""
    cells = {
        place: value for place, value in flagged.items()
        if place.dataset in ("iris", "digits") or place.dataset.endswith(("_clusters", "_cluster"))
    }  # fmt: skip
    if not cells:
        return []
    summary = Summary.of(cells)
    return [
        f"{OUR_DETECTOR} flags at most {summary.worst:.1%} of clean iris, digits and clusters, at "
        f"{summary.at} (goal {FLAGGED_GOAL:.0%}, {met(summary.worst <= FLAGGED_GOAL)})."
    ]


def _known_parts(rows: Sequence[Row]) -> Outcome | None:
    """Tabulate the distance from the true components of the synthetic table."""
    selection = [row for row in _own_rank(rows) if row[0].dataset == SYNTHETIC]
    shares = sorted({scenario.share for scenario, _ in selection})
    table = [
        [Cell(method), *number_cells(averages(cells, "share", shares), ".4f")]
        for method, cells in LAYOUT.by_method(selection, "parts_distance").items() if cells
    ]  # fmt: skip
    if not table:
        return None
    header = ("method", *(f"{share:.0%}" for share in shares))
    return Outcome(
        "parts",
        "Known components",
        "Generated data with ten known components: one minus the cosine between learned and true "
        "components, mean over corruptions and seeds, by the share of corrupted samples.",
        [Grid("distance from the true components", header, table)],
    )


def _own_rank(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of scenarios at the default rank of the table."""
    return [row for row in rows if not row[0].rank]


SAMPLES = Study(
    "contamination",
    "Corrupted samples: errors of each method",
    "Every method learns components from data with corrupted samples. The score is the error on "
    "clean samples that were held out, relative to plain NMF fitted to the clean samples only: "
    "1 means that the corrupted samples do no harm.",
    partial(plan_scope, scenarios, FULL, QUICK),
    draw_samples,
    GROUPS,
    outcomes,
    ("sample_methods.py",),
)
