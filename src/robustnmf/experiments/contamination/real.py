"""The studies of real tables: every suitable table of R, with bad samples or with bad entries.

RobustNMF is compared with plain NMF and with plain NMF after an outlier detector, and
``loss="truncated"`` with two-step baselines and with published methods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

import numpy as np

from robustnmf.datasets._base import DataDir
from robustnmf.experiments.contamination import entry_methods, real_tables, sample_methods
from robustnmf.experiments.contamination.cells import failures, met, number_cells
from robustnmf.experiments.contamination.real_tables import ENTRY_KINDS, MAIN, SAMPLE_KINDS, Kind
from robustnmf.experiments.contamination.sample_methods import RANKED_BY, REAL_FIRST
from robustnmf.experiments.contamination.scenario import Scenario
from robustnmf.experiments.contamination.study import Plan, Row, Study
from robustnmf.experiments.outcome import Cell, Chart, Grid, Line, Outcome

SEED = 3

AUROC_GOAL, GOAL_SHARE = 0.985, 0.15
"""Least mean AUROC of our detector, and the share of bad samples that it is for."""

BEHIND = 0.01
"""A note lists cells where the geometric mean of RobustNMF is worse by more than this."""

GROUP = "methods"

Values = dict[Kind, dict[str, list[float]]]
"""A number of every table, by kind and method."""


def plan(
    kinds: Sequence[Kind], half: str = "even", *, quick: bool = False, data_dir: DataDir = None
) -> Plan:
    """Plan a run on the tables at even or at odd positions; every eighth of them if quick."""
    names = real_tables.names_of(half, quick=quick, data_dir=data_dir)
    return Plan(tuple(Scenario(name, *kind, SEED) for name in names for kind in kinds), (GROUP,))


def sample_outcomes(rows: Sequence[Row]) -> list[Outcome]:
    """Build all tables of the study of bad samples, and the charts of errors against shares."""
    errors, best, found, lost = (
        values_of(rows, name, SAMPLE_KINDS, sample_methods.REAL_METHODS)
        for name in ("relative_error", "best_described_error", "found", "lost")
    )
    means = (("mean of the main five", MAIN), ("mean of all", tuple(errors)))
    count = len({scenario.dataset for scenario, _ in rows})
    caption = (
        f"Squared error of held-out good samples of {count} tables, relative to plain NMF fitted "
        "to the good samples only: geometric mean / 97th percentile over tables."
    )
    return [
        Outcome("errors", "Error on good samples", caption, [error_grid("errors", errors, means)],
                notes=[*failures(rows), *behind(errors, sample_methods.OURS, REAL_FIRST)]),
        Outcome("best_described", "Error on the best-described samples",
                f"The 90% of the held-out samples that each method describes best. {caption}",
                [error_grid("errors on the best-described 90%", best, means)]),
        Outcome("left_out", "Samples left out",
                "Share of corrupted / good samples that are left out, mean over tables.",
                [_left_out_grid(found, lost)]),
        _auroc_outcome(values_of(rows, "auroc", SAMPLE_KINDS, tuple(RANKED_BY))),
        Outcome("shares", "Error against the share of corrupted samples",
                "Geometric mean over tables.",
                charts=charts_of(errors, list(dict(SAMPLE_KINDS))[1:])),
    ]  # fmt: skip


def entry_outcomes(rows: Sequence[Row]) -> list[Outcome]:
    """Build the tables of the study of bad entries."""
    errors, seconds = (
        values_of(rows, name, ENTRY_KINDS, entry_methods.REAL_METHODS)
        for name in ("relative_error", "seconds")
    )
    count = len({scenario.dataset for scenario, _ in rows})
    means = [("mean of all", tuple(errors))]
    notes = behind(errors, entry_methods.OURS, entry_methods.REAL_RIVALS)
    return [
        Outcome("errors", "Error on good samples",
                f"Squared error of held-out samples of {count} tables, relative to plain NMF "
                "fitted to the clean table: geometric mean / 97th percentile over tables.",
                [error_grid("errors", errors, means)], notes=[*failures(rows), *notes]),
        Outcome("seconds", "Seconds", "Time of a fit on one core, with its first step: geometric "
                "mean / 97th percentile over tables.", [error_grid("seconds", seconds, [])]),
    ]  # fmt: skip


def _left_out_grid(found: Values, lost: Values) -> Grid:
    def percent(shares: list[float]) -> str:
        return f"{np.mean(shares):.1%}" if shares else "-"

    table = [
        [Cell(title_of(kind)), *(Cell(f"{percent(found[kind][method])} / {percent(shares)}")
                               for method, shares in by_method.items())]
        for kind, by_method in lost.items()
    ]  # fmt: skip
    return Grid(
        "corrupted / good samples left out", ("scenario", *sample_methods.REAL_METHODS), table
    )


def _auroc_outcome(areas: Values) -> Outcome:
    numbers = {
        title_of(kind): np.array([np.mean(area) for area in by_method.values()])
        for kind, by_method in areas.items() if all(by_method.values())
    }  # fmt: skip
    goals = [title_of(kind) for kind in areas if kind[1] == GOAL_SHARE]
    notes = []
    if numbers and all(title in numbers for title in goals):
        ours, *others = numbers["mean of 15%"] = np.mean([numbers[g] for g in goals], axis=0)
        notes = [
            f"Goal: a mean AUROC of {AUROC_GOAL} or more with 15% corrupted samples, and no other "
            f"detector ahead: {met(ours >= max(AUROC_GOAL, *others))}."
        ]
    table = [[Cell(title), *number_cells(row.tolist(), ".4f")] for title, row in numbers.items()]
    return Outcome(
        "auroc", "Finding the corrupted samples",
        "Area under the ROC curve of the scores of each detector, mean over tables.",
        [Grid("AUROC", ("scenario", *RANKED_BY.values()), table)], notes=notes,
    )  # fmt: skip


def values_of(
    rows: Sequence[Row], name: str, kinds: Sequence[Kind], methods: Sequence[str]
) -> Values:
    """Collect a score of all tables by kind and method; kinds are sorted by name and share."""
    order = list(dict(kinds))
    found = {(scenario.corruption, scenario.share) for scenario, _ in rows}
    values: Values = {
        kind: {method: [] for method in methods}
        for kind in sorted(found, key=lambda kind: (order.index(kind[0]), kind[1]))
    }
    for scenario, score in rows:
        by_method = values[scenario.corruption, scenario.share]
        if score.method in by_method and np.isfinite(number := getattr(score, name)):
            by_method[score.method].append(number)
    return values


def title_of(kind: Kind) -> str:
    """Name a kind with its share."""
    return f"{kind[0]} {kind[1]:.0%}" if kind[1] else kind[0]


def geometric_mean(errors: Sequence[float]) -> float:
    """Compute a geometric mean; NaN without errors."""
    return float(np.exp(np.mean(np.log(errors)))) if errors else np.nan


def error_grid(
    title: str, values: Values, means_over: Iterable[tuple[str, Collection[Kind]]]
) -> Grid:
    """Tabulate geometric mean and 97th percentile by kind, and means over available kinds."""
    means = {kind: list(map(geometric_mean, v.values())) for kind, v in values.items()}
    table = [
        [Cell(title_of(kind)), *(
            Cell(f"{mean:.3f} / {np.quantile(errors, 0.97):.2f}", mean) if errors else Cell("")
            for mean, errors in zip(means[kind], by_method.values(), strict=True)
        )]
        for kind, by_method in values.items()
    ]  # fmt: skip
    for name, kinds in means_over:
        if all(kind in means for kind in kinds):
            numbers = np.mean([means[kind] for kind in kinds], axis=0)
            table.append([Cell(name), *number_cells(numbers.tolist(), ".3f")])
    return Grid(title, ("scenario", *next(iter(values.values()))), table)


def behind(values: Values, ours: str, rivals: Sequence[str]) -> list[str]:
    """Describe where our method is worse than the best of the others."""
    notes = []
    for kind, by_method in values.items():
        means = {method: geometric_mean(errors) for method, errors in by_method.items()}
        best = min(rivals, key=lambda method: means[method])
        if means[ours] > means[best] + BEHIND:
            notes.append(
                f"{title_of(kind)}: {ours} ({means[ours]:.3f}) is behind {best} "
                f"({means[best]:.3f})."
            )
    return notes


def charts_of(values: Values, names: Iterable[str]) -> list[Chart]:
    """Draw the error of each method against the share, for each way to spoil a table."""
    charts = []
    for name in names:
        by_share = {100 * kind[1]: v for kind, v in values.items() if kind[0] in ("clean", name)}
        lines = [
            Line(method, list(by_share), [geometric_mean(v[method]) for v in by_share.values()])
            for method in next(iter(by_share.values()))
        ]
        charts.append(Chart(name, "corrupted samples in percent", "relative error", lines))
    return charts


REAL = Study(
    "contamination-real",
    "Real tables with corrupted samples: errors of each method",
    "Every method learns components from a real table with corrupted samples. The score is the "
    "error on good samples that were held out, relative to plain NMF fitted to the good samples "
    "only: 1 means that the corrupted samples do no harm.",
    partial(plan, SAMPLE_KINDS),
    real_tables.draw_samples,
    {GROUP: sample_methods.real_methods},
    sample_outcomes,
    ("sample_methods.py", "real_tables.py"),
    real_tables.FLOOR,
)
REAL_ENTRIES = Study(
    "contamination-real-entries",
    "Real tables with corrupted entries: errors of each method",
    "Every method learns components from a real table with corrupted entries. The score is the "
    "error on samples that were held out, relative to plain NMF fitted to the clean table: 1 means "
    "that the corrupted entries do no harm.",
    partial(plan, ENTRY_KINDS),
    real_tables.draw_entries,
    {GROUP: entry_methods.real_methods},
    entry_outcomes,
    ("entry_methods.py", "real_tables.py"),
    real_tables.FLOOR,
)
