"""The benchmark as tables and figures; what the rules were found on apart from the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from robustnmf.experiments.contamination.benchmark import TUNED_DATASETS, TUNED_SEEDS, Plan
from robustnmf.experiments.contamination.methods import BEST, CEILING, Score
from robustnmf.experiments.contamination.scenario import SYNTHETIC, Scenario
from robustnmf.experiments.contamination.store import ScenarioStore
from robustnmf.experiments.outcome import Cell, Chart, Grid, Line, Outcome

OURS, OUR_DETECTOR = "RobustNMF", "RobustNMFDetector"
GOOD = 0.95
DETECTION_SHARE = 0.2


class Place(NamedTuple):
    """A cell of the benchmark: all seeds of it are averaged."""

    dataset: str
    corruption: str
    share: float

    def __str__(self) -> str:
        return f"{self.dataset}, {self.corruption}, {self.share:.0%}"


class Band(NamedTuple):
    """Shares that are summed up together, with the figures to reach."""

    title: str
    least: float
    most: float
    mean: float
    worst: float


BANDS = (
    Band("clean", 0.0, 0.0, 1.005, 1.02),
    Band("5 to 20%", 0.01, 0.2, 1.01, 1.05),
    Band("30 to 40%", 0.21, 0.5, 1.02, 1.10),
)

Row = tuple[Scenario, Score]
PARTS: dict[str, Callable[[Scenario], bool]] = {
    "tuned": lambda s: s.dataset in TUNED_DATASETS and s.seed in TUNED_SEEDS,
    "held out": lambda s: not PARTS["tuned"](s),
}


def rows_of(wanted: Plan, store: ScenarioStore) -> list[Row]:
    """All scores of a run."""
    return [
        (scenario, score)
        for scenario in wanted.scenarios
        for group in wanted.groups
        for score in store.scores(scenario, group)
    ]


def outcomes(rows: Sequence[Row]) -> list[Outcome]:
    """Everything there is to show."""
    found = [_errors(rows), _cells(rows), _over_shares(rows), _detection(rows)]
    return [outcome for outcome in (*found, _parts(rows)) if outcome is not None]


def means(rows: Iterable[Row], method: str, what: str) -> dict[Place, float]:
    """Mean over the seeds of one score of one method."""
    found: dict[Place, list[float]] = defaultdict(list)
    for scenario, score in rows:
        value = getattr(score, what)
        if score.method == method and np.isfinite(value):
            kind = scenario.corruption if scenario.share else "none"
            found[Place(scenario.dataset, kind, scenario.share)].append(value)
    return {place: float(np.mean(values)) for place, values in found.items()}


def _methods(rows: Iterable[Row], what: str) -> list[str]:
    names = dict.fromkeys(score.method for _, score in rows if np.isfinite(getattr(score, what)))
    return sorted(names, key=lambda name: (name == OURS, BEST in name))


def _errors(rows: Sequence[Row]) -> Outcome:
    grids, notes = [], []
    for part, inside in PARTS.items():
        chosen = [row for row in rows if inside(row[0])]
        if not chosen:
            continue
        table = []
        for method in _methods(chosen, "relative_error"):
            cells = means(chosen, method, "relative_error")
            table.append([Cell(method), *(_band(cells, band) for band in BANDS)])
            if method == OURS:
                notes += [_verdict(part, cells, band) for band in BANDS]
        seeds = sorted({scenario.seed for scenario, _ in chosen})
        names = dict.fromkeys(scenario.dataset for scenario, _ in chosen)
        grids.append(
            Grid(
                f"{part}: {', '.join(names)}; {len(seeds)} seeds",
                ("method", *(f"{b.title} (target {b.mean:g} / {b.worst:g})" for b in BANDS)),
                table,
                suffix="_" + part.replace(" ", "_"),
            )
        )
    return Outcome(
        "errors",
        "Error on clean samples",
        "Squared error of samples held back, with the basis learned from spoiled data, relative to "
        "plain NMF that has seen the clean part of them: mean over all datasets and corruptions / "
        "worst of them, each a mean over seeds. Methods with \"best of grid\" are told which value "
        "of their hyperparameter is best on the samples held back; nobody has that.",
        grids,
        notes=[note for note in notes if note],
    )  # fmt: skip


def _inside(cells: dict[Place, float], band: Band) -> dict[Place, float]:
    return {p: value for p, value in cells.items() if band.least <= p.share <= band.most}


def _band(cells: dict[Place, float], band: Band) -> Cell:
    found = _inside(cells, band)
    if not found:
        return Cell("")
    mean, worst = float(np.mean(list(found.values()))), max(found, key=lambda p: found[p])
    met = mean <= band.mean and found[worst] <= band.worst
    return Cell(
        f"{mean:.3f} / {found[worst]:.3f}", mean, ("best",) if met else (), f"worst: {worst}"
    )


def _verdict(part: str, cells: dict[Place, float], band: Band) -> str:
    found = _inside(cells, band)
    if not found:
        return ""
    mean, worst = float(np.mean(list(found.values()))), max(found, key=lambda p: found[p])
    over = sum(value > band.worst for value in found.values())
    return (
        f"{OURS}, {part}, {band.title}: mean {mean:.3f} (target {band.mean:g}, "
        f"{'met' if mean <= band.mean else 'missed'}), worst {found[worst]:.3f} at {worst} "
        f"(target {band.worst:g}, {'met' if not over else f'missed in {over} of {len(found)}'})."
    )


def _cells(rows: Sequence[Row]) -> Outcome:
    """Every cell of ours beside plain NMF."""
    ours, plain = (means(rows, m, "relative_error") for m in (OURS, "EucNMF"))
    grid = Grid(
        f"{OURS} in every cell, all seeds",
        ("dataset", "corruption", "share", OURS, "EucNMF"),
        [
            [
                Cell(place.dataset), Cell(place.corruption),
                Cell(f"{place.share:.0%}", place.share),
                Cell(f"{value:.3f}", value), Cell(f"{plain[place]:.3f}", plain[place]),
            ]
            for place, value in sorted(ours.items())
        ],
    )  # fmt: skip
    return Outcome("cells", "Every dataset and corruption", "Relative error.", [grid])


def _over_shares(rows: Sequence[Row]) -> Outcome:
    """Relative error over the share of bad samples."""
    charts = []
    for part, inside in PARTS.items():
        chosen = [row for row in rows if inside(row[0]) and row[0].dataset != SYNTHETIC]
        if not chosen:
            continue
        lines = []
        for method in _methods(chosen, "relative_error"):
            cells = means(chosen, method, "relative_error")
            shares = sorted({place.share for place in cells})
            levels = [np.mean([v for p, v in cells.items() if p.share == s]) for s in shares]
            lines.append(Line(method, [100 * s for s in shares], [float(v) for v in levels]))
        charts.append(Chart(part, "bad samples in percent", "relative error", lines))
    return Outcome(
        "shares",
        "Error against the share of bad samples",
        "Mean over datasets (without the synthetic one) and corruptions.",
        charts=charts,
    )


def _detection(rows: Sequence[Row]) -> Outcome | None:
    shares = {scenario.share for scenario, _ in rows if scenario.share}
    if not shares:
        return None
    nearest = min(shares, key=lambda share: abs(share - DETECTION_SHARE))
    chosen = [row for row in rows if row[0].share == nearest]
    names = [OUR_DETECTOR, "IsolationForest", "LocalOutlierFactor", "EllipticEnvelope", "PCA error"]
    shown = [*names, CEILING]
    found = {name: means(chosen, name, "auroc") for name in shown}
    places = sorted(found[OUR_DETECTOR])
    if not places:
        return None
    share = f"{nearest:.0%}"
    reached = [p for p in places if max(found[n][p] for n in names[1:]) >= GOOD]
    lost = [p for p in reached if found[OUR_DETECTOR][p] < GOOD]
    table = []
    for place in places:
        values = [found[name][place] for name in names]
        best = max(values)
        cells = [Cell(f"{v:.3f}", v, ("best",) if v == best else ()) for v in values]
        cells.append(Cell(f"{found[CEILING][place]:.3f}", found[CEILING][place]))
        table.append([Cell(place.dataset), Cell(place.corruption), *cells])
    told = ", ".join(
        f"{p.dataset} {p.corruption} {found[OUR_DETECTOR][p]:.2f} (ceiling {found[CEILING][p]:.2f})"
        for p in lost
    )
    note = (
        f"At {share} bad samples a detector of scikit-learn reaches an AUROC of {GOOD} in "
        f"{len(reached)} of {len(places)} cells; {OUR_DETECTOR} does in {len(reached) - len(lost)} "
        f"of these{f', not in: {told}' if lost else ''}."
    )
    return Outcome(
        "detection",
        "Finding the bad samples",
        f"Area under the ROC curve with {share} bad samples, mean over all seeds. EllipticEnvelope "
        "sees principal components where features are many. The last column is a ceiling: the "
        "errors of a plain NMF that is told which samples are good, and learns from these alone.",
        [Grid("AUROC", ("dataset", "corruption", *shown), table)],
        notes=[note],
    )


def _parts(rows: Sequence[Row]) -> Outcome | None:
    chosen = [row for row in rows if row[0].dataset == SYNTHETIC]
    methods = _methods(chosen, "parts_distance")
    if not methods:
        return None
    shares = sorted({scenario.share for scenario, _ in chosen})
    table = []
    for method in methods:
        cells = means(chosen, method, "parts_distance")
        levels = [float(np.mean([v for p, v in cells.items() if p.share == s])) for s in shares]
        table.append([Cell(method), *(Cell(f"{v:.4f}", v) for v in levels)])
    header = ("method", *(f"{share:.0%}" for share in shares))
    return Outcome(
        "parts",
        "Known parts",
        "Data made of ten known parts: one less the cosine between learned and true parts, mean "
        "over corruptions and seeds, by the share of bad samples.",
        [Grid("distance from the true parts", header, table)],
    )
