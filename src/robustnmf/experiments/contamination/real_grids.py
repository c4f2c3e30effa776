"""Tables and charts of the benchmarks on real tables: means over tables, by scenario and method."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from robustnmf.experiments.contamination.cells import Row, number_cell
from robustnmf.experiments.outcome import Cell, Chart, Grid, Line

BEHIND = 0.01
"""A note lists cells where the geometric mean of RobustNMF is worse by more than this."""

Kind = tuple[str, float]
"""A way to corrupt a table, and the share of bad samples or entries."""

Values = dict[Kind, dict[str, list[float]]]
"""A number of every table, by kind and method."""


def values_of(
    rows: Sequence[Row], name: str, order: Sequence[str], methods: Sequence[str]
) -> Values:
    """Collect a score of all tables by kind, sorted by an order of their names, and by method."""
    kinds = {(scenario.corruption, scenario.share) for scenario, _ in rows}
    values: Values = {
        kind: {method: [] for method in methods}
        for kind in sorted(kinds, key=lambda kind: (order.index(kind[0]), kind[1]))
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
            table.append([Cell(name), *(number_cell(number, ".3f") for number in numbers)])
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
        charts.append(Chart(name, "bad samples in percent", "relative error", lines))
    return charts
