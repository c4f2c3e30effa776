"""Cells of a benchmark, their summaries by band and part, and goals, for both benchmarks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from robustnmf.experiments.contamination.benchmark import Plan
from robustnmf.experiments.contamination.judge import Score
from robustnmf.experiments.contamination.scenario import Scenario
from robustnmf.experiments.contamination.store import ScenarioStore
from robustnmf.experiments.outcome import Cell, Grid

ROUNDING = 5e-4
"""Numbers are equal if they differ less: half a unit of the third digit."""

Row = tuple[Scenario, Score]
Value = Callable[[Scenario, Score], float]
"""Returns a number of a score; NaN if there is none."""

Parts = Mapping[str, Callable[[Scenario], bool]]
"""Returns whether a scenario belongs to a part, by the name of the part."""


class Place(NamedTuple):
    """A cell of the benchmark, averaged over its seeds; rank 0 is the default of the table."""

    dataset: str
    corruption: str
    share: float
    rank: int = 0

    def __str__(self) -> str:
        rank = f", rank {self.rank}" if self.rank else ""
        return f"{self.dataset}, {self.corruption}, {self.share:.0%}{rank}"


class CellBand(Protocol):
    """Some cells of a benchmark, with goals for their summary."""

    @property
    def title(self) -> str: ...

    @property
    def goals(self) -> dict[str, float]:
        """Return the goals by the name of the number."""

    def contains(self, place: Place) -> bool:
        """Return whether a cell belongs to the band."""


@dataclass(frozen=True)
class Summary:
    """Mean, 95th percentile and worst of some cells, and the worst cell."""

    mean: float
    percentile: float
    worst: float
    at: Place

    @classmethod
    def of(cls, cells: Mapping[Place, float]) -> Summary:
        """Summarise at least one cell."""
        values, at = list(cells.values()), max(cells, key=lambda place: cells[place])
        return cls(float(np.mean(values)), float(np.percentile(values, 95)), cells[at], at)

    @property
    def figures(self) -> dict[str, float]:
        """Return the numbers by name, as in goals."""
        return {"mean": self.mean, "95th percentile": self.percentile, "worst": self.worst}

    def meets(self, goals: Mapping[str, float]) -> bool:
        """Return whether no goal is exceeded."""
        return all(self.figures[name] <= goal for name, goal in goals.items())


def rows_of(run_plan: Plan, store: ScenarioStore) -> list[Row]:
    """Return the finished scores of a plan, each with its scenario."""
    return [
        (scenario, score)
        for scenario in run_plan.scenarios
        for group in run_plan.groups_of(scenario)
        for score in store.scores(scenario, group)
    ]


def split_by(tuned_datasets: Collection[str], tuned_seeds: Collection[int]) -> Parts:
    """Return the parts: tuned, other draws of the tuned tables, and held out tables."""
    return {
        "tuned": lambda s: s.dataset in tuned_datasets and s.seed in tuned_seeds,
        "other draws": lambda s: s.dataset in tuned_datasets and s.seed not in tuned_seeds,
        "held out": lambda s: s.dataset not in tuned_datasets,
    }


def split_rows(rows: Sequence[Row], parts: Parts) -> dict[str, list[Row]]:
    """Split rows into parts without empty parts."""
    by_part = {part: [row for row in rows if belongs(row[0])] for part, belongs in parts.items()}
    return {part: part_rows for part, part_rows in by_part.items() if part_rows}


def means_of(rows: Iterable[Row], method: str, value_of: Value) -> dict[Place, float]:
    """Return the mean over the seeds of one value of one method, by cell."""
    values: dict[Place, list[float]] = defaultdict(list)
    for scenario, score in rows:
        if score.method != method:
            continue
        value = value_of(scenario, score)
        if np.isfinite(value):
            kind = scenario.corruption if scenario.share else "none"
            place = Place(scenario.dataset, kind, scenario.share, scenario.rank)
            values[place].append(value)
    return {place: float(np.mean(seeds)) for place, seeds in values.items()}


def cells_in(cells: Mapping[Place, float], band: CellBand) -> dict[Place, float]:
    """Return the cells that belong to a band."""
    return {place: value for place, value in cells.items() if band.contains(place)}


def band_cell(cells: Mapping[Place, float], band: CellBand, form: str = ".3f") -> Cell:
    """Format the numbers of a band, marked if its goals are met; empty without cells."""
    band_cells = cells_in(cells, band)
    if not band_cells:
        return Cell("")
    summary = Summary.of(band_cells)
    meets_goals = bool(band.goals) and summary.meets(band.goals)
    text = " / ".join(format(value, form) for value in summary.figures.values())
    return Cell(text, summary.mean, ("best",) if meets_goals else (), f"worst: {summary.at}")


def part_grid(
    part: str, rows: Sequence[Row], header: Sequence[str], table: Sequence[Sequence[Cell]]
) -> Grid:
    """Return the table of a part, with its datasets and the number of its seeds in the title."""
    seeds = {scenario.seed for scenario, _ in rows}
    names = dict.fromkeys(scenario.dataset for scenario, _ in rows)
    title = f"{part}: {', '.join(names)}; {len(seeds)} seeds"
    return Grid(title, ("method", *header), table, suffix="_" + part.replace(" ", "_"))


def number_cell(value: float | None, form: str, marks: tuple[str, ...] = ()) -> Cell:
    """Format a number; NaN is an empty cell."""
    if value is None or not np.isfinite(value):
        return Cell("")
    return Cell(format(value, form), value, marks)


def goals_text(band: CellBand) -> str:
    """Return the goals of a band as text."""
    return f"goal: {', '.join(f'{name} {goal:g}' for name, goal in band.goals.items())}"


def verdict(method: str, part: str, cells: Mapping[Place, float], band: CellBand) -> str:
    """Describe the results of a method in a band and whether goals are met; empty without cells."""
    band_cells = cells_in(cells, band)
    if not band_cells:
        return ""
    summary = Summary.of(band_cells)
    texts = []
    for name, value in summary.figures.items():
        text = f"{name} {value:.3f}"
        if name == "worst":
            text += f" at {summary.at}"
        if name in band.goals:
            goal = band.goals[name]
            text += f" (goal {goal:g}, {'met' if value <= goal else 'missed'})"
        texts.append(text)
    return f"{method}, {part}, {band.title}: {', '.join(texts)}."


def figures_behind(
    ours: Mapping[Place, float], baseline: Mapping[Place, float]
) -> list[str] | None:
    """List where our mean and worst are behind a baseline's; None without common cells."""
    common = ours.keys() & baseline.keys()
    if not common:
        return None
    our_figures = Summary.of({place: ours[place] for place in common}).figures
    figures = Summary.of({place: baseline[place] for place in common}).figures
    return [
        f"{name} {our_figures[name]:.3f} against {figures[name]:.3f}"
        for name in ("mean", "worst") if our_figures[name] > figures[name] + ROUNDING
    ]  # fmt: skip


def comparison(
    part: str,
    title: str,
    ours: Mapping[Place, float],
    baselines: Mapping[str, Mapping[Place, float]],
) -> str:
    """Describe whether our mean and worst are better than every baseline; empty without any."""
    behind = {name: figures_behind(ours, cells) for name, cells in baselines.items()}
    if all(figures is None for figures in behind.values()):
        return ""
    losses = [f"{name} ({', '.join(figures)})" for name, figures in behind.items() if figures]
    text = f"missed: behind {'; '.join(losses)}" if losses else "met"
    return f"Ahead of every two-step baseline, {part}, {title}: {text}."


def failures(rows: Sequence[Row]) -> list[str]:
    """Describe which methods raised errors, in how many scenarios, and the first error of each."""
    by_method: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row[1].failure:
            by_method[row[1].method].append(row)
    totals = Counter(score.method for _, score in rows)
    return [
        f"{method} failed in {len(failing)} of {totals[method]} scenarios, which its figures "
        f"leave out; first {failing[0][0].dataset}, {failing[0][0].corruption}, "
        f"{failing[0][0].share:.0%}, seed {failing[0][0].seed}: {failing[0][1].failure}"
        for method, failing in by_method.items()
    ]
