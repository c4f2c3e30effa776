"""The study of bad entries: which tables and corruptions, goals and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from robustnmf.datasets._base import DataDir
from robustnmf.experiments.contamination.cells import (
    Band,
    Cells,
    Layout,
    averages,
    failures,
    means,
    met,
    number_cells,
    part_grid,
    place_cells,
    verdict,
)
from robustnmf.experiments.contamination.entry_methods import CEILING, GROUPS, OURS, PLAIN, TWO_STEP
from robustnmf.experiments.contamination.generated import SYNTHETIC
from robustnmf.experiments.contamination.judge import Score
from robustnmf.experiments.contamination.scenario import IRIS, Scenario, draw_entries
from robustnmf.experiments.contamination.study import Row, Scope, Study, plan_scope
from robustnmf.experiments.outcome import Cell, Grid, Outcome

CLUSTERS = ("two_clusters", "three_clusters", "mixed_clusters")
FULL = Scope(
    datasets=(
        "digits", "wdbc", "orl", SYNTHETIC, "gtfd", "yale", "page_blocks", IRIS, *CLUSTERS,
    ),
    # Shares of bad entries by corruption; shares of bad samples for covered blocks.
    shares={
        "extreme": (0.05, 0.1, 0.2), "large": (0.05, 0.1, 0.2), "covered": (0.1, 0.2, 0.3, 0.4),
        "mixed": (0.1,), "missing": (0.1,),
    },
    seeds=tuple(range(6)),
    groups=tuple(GROUPS),
)  # fmt: skip
QUICK = Scope(
    datasets=("digits", "wdbc", SYNTHETIC),
    shares={"extreme": (0.1,), "large": (0.1,), "covered": (0.2,), "mixed": (0.1,),
            "missing": (0.1,)},
    seeds=(0, 3),
    groups=("methods", "two_step", "peers"),
)  # fmt: skip

ENTRY_AUROC_GOALS = {"large": 0.95, "extreme": 0.85}
SAMPLE_AUROC_GOAL = 0.9


def scenarios(
    dataset: str, seed: int, shares: Mapping[str, tuple[float, ...]], data_dir: DataDir
) -> Iterator[Scenario]:
    """Yield the clean table, then every corruption with every share."""
    yield Scenario(dataset, next(iter(shares)), 0.0, seed)
    for kind, kind_shares in shares.items():
        for share in kind_shares:
            yield Scenario(dataset, kind, share, seed)


def _band(title: str, *corruptions: str, **goals: float) -> Band:
    return Band(title, lambda place: place.corruption in corruptions, goals)


SCATTERED = _band("scattered, 5 to 20%", "extreme", "large")
LAYOUT = Layout(
    ours=OURS,
    order=lambda name: 2 * (name == OURS) + (name == CEILING),
    tuned_datasets=("digits", "wdbc", "orl", IRIS, *CLUSTERS),
    tuned_seeds=range(3),
    bands=(
        _band("clean", "none", mean=1.02, worst=1.05),
        SCATTERED,
        _band("covered, 10 to 40%", "covered"),
        _band("mixed", "mixed", mean=1.15),
        _band("missing", "missing"),
    ),
    error="relative_error",
    baselines=TWO_STEP,
)
HALF_COVERED = Band(
    "covered, 20 to 40%", lambda place: place.corruption == "covered" and place.share >= 0.2
)
CEILING_BANDS = tuple(
    band._replace(goals={"mean": 1.10, "worst": 1.5} if band is SCATTERED else {})
    for band in LAYOUT.bands
)
"""The bands with the goals for errors relative to the ceiling."""


def outcomes(rows: Sequence[Row]) -> list[Outcome]:
    """Build all tables of the study."""
    return [_errors(rows), _over_ceiling(rows), _auroc(rows), _seconds(rows), _cells(rows)]


def _errors(rows: Sequence[Row]) -> Outcome:
    notes = failures(rows)
    for part, part_rows in LAYOUT.parts(rows).items():
        notes += [*LAYOUT.error_notes(part, part_rows), _halfway_verdict(part, part_rows)]
    return Outcome(
        "errors",
        "Error on clean samples",
        "Squared error of held-out clean samples with the components learned from the corrupted "
        "table, relative to plain NMF fitted to the clean table: mean over all cells / 95th "
        "percentile / worst. A cell is a dataset with a corruption and a share; its value is the "
        f"mean over the seeds. In \"{CEILING}\", the corrupted entries are marked as missing, and "
        "methods with \"best of\" use the hyperparameter that is best on the held-out samples. "
        "Users know neither.",
        LAYOUT.banded(rows, LAYOUT.error, LAYOUT.bands),
        notes=[note for note in notes if note],
    )  # fmt: skip


def _halfway_verdict(part: str, rows: Sequence[Row]) -> str:
    """Describe whether our method is at least halfway from plain NMF to the ceiling if covered."""
    plain, ours, ceiling = (
        HALF_COVERED.of(means(rows, method, "relative_error")) for method in (PLAIN, OURS, CEILING)
    )
    places = plain.keys() & ours.keys() & ceiling.keys()
    if not places:
        return ""
    numbers = [float(np.mean([cells[p] for p in places])) for cells in (plain, ours, ceiling)]
    halfway = (numbers[0] + numbers[2]) / 2
    successes = sum(ours[p] <= (plain[p] + ceiling[p]) / 2 for p in places)
    return (
        f"{OURS}, {part}, {HALF_COVERED.title}: mean {numbers[1]:.3f}, plain NMF {numbers[0]:.3f}, "
        f"ceiling {numbers[2]:.3f}; at least halfway to the ceiling "
        f"({met(numbers[1] <= halfway)}; in {successes} of {len(places)} cells)."
    )


def _over_ceiling(rows: Sequence[Row]) -> Outcome:
    ceilings = {
        scenario: score.relative_error for scenario, score in rows if score.method == CEILING
    }

    def value(scenario: Scenario, score: Score) -> float:
        return score.relative_error / ceilings.get(scenario, np.nan)

    notes = [
        verdict(f"{OURS}, error relative to the ceiling", part, means(part_rows, OURS, value), band)
        for part, part_rows in LAYOUT.parts(rows).items()
        for band in CEILING_BANDS
        if band.goals
    ]
    return Outcome(
        "ceiling",
        "Error relative to the ceiling",
        f"The same errors relative to the error of \"{CEILING}\" in the same scenario: mean over "
        "all cells / 95th percentile / worst.",
        LAYOUT.banded(rows, value, CEILING_BANDS),
        notes=[note for note in notes if note],
    )  # fmt: skip


def _auroc(rows: Sequence[Row]) -> Outcome:
    """Tabulate how well methods rank bad entries by corruption, and bad samples."""
    kinds = {"entries": ("extreme", "large", "covered", "mixed", "missing"),
             "samples": ("covered", "mixed")}  # fmt: skip
    header = [f"{kind}: {title}" for title, of_title in kinds.items() for kind in of_title]
    grids, notes = [], []
    for part, part_rows in LAYOUT.parts(rows).items():
        entries, samples = (LAYOUT.by_method(part_rows, s) for s in ("entry_auroc", "auroc"))
        table = [
            [Cell(method), *number_cells([
                *averages(entries[method], "corruption", kinds["entries"]),
                *averages(samples[method], "corruption", kinds["samples"]),
            ], ".3f")]
            for method in entries
        ]  # fmt: skip
        grids.append(part_grid(part, part_rows, header, table))
        title = f"{OURS}, {part}"
        for kind, goal in ENTRY_AUROC_GOALS.items():
            cells = _band("", kind).of(entries.get(OURS, {}))
            notes += _auroc_note(f"{title}, {kind}: AUROC of entries", goal, cells)
        title += f", {HALF_COVERED.title}: AUROC of samples"
        notes += _auroc_note(title, SAMPLE_AUROC_GOAL, HALF_COVERED.of(samples.get(OURS, {})))
    return Outcome(
        "auroc",
        "Finding the corrupted entries and samples",
        "Area under the ROC curve, mean over datasets, shares and seeds. Entries are ranked by "
        "their weights if the method has weights of entries, otherwise by their absolute "
        "residuals. Samples are ranked by their squared residuals, or by the scores of the method.",
        grids,
        notes=notes,
    )


def _auroc_note(title: str, goal: float, cells: Cells) -> list[str]:
    """Describe mean and minimum of areas and whether the mean meets a goal; empty without cells."""
    if not cells:
        return []
    mean, worst = float(np.mean(list(cells.values()))), min(cells, key=lambda place: cells[place])
    return [
        f"{title} {mean:.3f} (goal {goal:g}, {met(mean >= goal)}), least {cells[worst]:.3f} at "
        f"{worst}."
    ]


def _seconds(rows: Sequence[Row]) -> Outcome:
    """Tabulate the mean time of a fit by dataset."""
    names = list(dict.fromkeys(scenario.dataset for scenario, _ in rows))
    table = [
        [Cell(method), *number_cells(averages(cells, "dataset", names), ".2f")]
        for method, cells in LAYOUT.by_method(rows, "seconds").items()
    ]
    return Outcome(
        "seconds",
        "Seconds",
        "Time of a fit on one core with its first step or its grid, mean over corruptions, shares "
        "and seeds.",
        [Grid("seconds", ("method", *names), table)],
    )


def _cells(rows: Sequence[Row]) -> Outcome:
    """Tabulate the error of every method in every cell."""
    by_method = LAYOUT.by_method(rows, "relative_error")
    table = [
        [*place_cells(p), *number_cells((cells.get(p) for cells in by_method.values()), ".3f")]
        for p in sorted(set().union(*by_method.values()))
    ]
    return Outcome(
        "cells",
        "Every dataset and corruption",
        "Relative error, mean over all seeds.",
        [Grid("every cell, all seeds", ("dataset", "corruption", "share", *by_method), table)],
    )


ENTRIES = Study(
    "contamination-entries",
    "Corrupted entries: errors of each method",
    "Every method learns components from a table with corrupted entries. The score is the error on "
    "clean samples that were held out, relative to plain NMF fitted to the clean table: 1 means "
    "that the corrupted entries do no harm.",
    partial(plan_scope, scenarios, FULL, QUICK),
    draw_entries,
    GROUPS,
    outcomes,
    ("entry_methods.py",),
)
