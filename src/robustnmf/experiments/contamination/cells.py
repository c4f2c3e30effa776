"""Cells of a study, their summaries by band and part, and whether goals are met."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from robustnmf.experiments.contamination.judge import Score
from robustnmf.experiments.contamination.scenario import Scenario
from robustnmf.experiments.contamination.study import Row
from robustnmf.experiments.outcome import Cell, Grid

ROUNDING = 5e-4
"""Numbers are equal if they differ less: half a unit of the third digit."""

Value = str | Callable[[Scenario, Score], float]
"""Name of a score, or a function that returns a number of a score; NaN if there is none."""


class Place(NamedTuple):
    """A cell of the benchmark, averaged over its seeds; rank 0 is the default of the table."""

    dataset: str
    corruption: str
    share: float
    rank: int = 0

    def __str__(self) -> str:
        rank = f", rank {self.rank}" if self.rank else ""
        return f"{self.dataset}, {self.corruption}, {self.share:.0%}{rank}"


Cells = Mapping[Place, float]
"""Mean over the seeds of a number, by cell."""


class Band(NamedTuple):
    """Some cells of a study, with goals for their summary by the name of the number."""

    title: str
    contains: Callable[[Place], bool]
    goals: Mapping[str, float] = {}

    def of(self, cells: Cells) -> dict[Place, float]:
        """Return the cells that belong to the band."""
        return {place: value for place, value in cells.items() if self.contains(place)}

    def __str__(self) -> str:
        goals = ", ".join(f"{name} {goal:g}" for name, goal in self.goals.items())
        return f"{self.title} (goal: {goals})" if goals else self.title


@dataclass(frozen=True)
class Summary:
    """Mean, 95th percentile and worst of some cells, and the worst cell."""

    mean: float
    percentile: float
    worst: float
    at: Place

    @classmethod
    def of(cls, cells: Cells) -> Summary:
        """Summarise at least one cell."""
        values, at = list(cells.values()), max(cells, key=lambda place: cells[place])
        return cls(float(np.mean(values)), float(np.percentile(values, 95)), cells[at], at)

    @property
    def figures(self) -> dict[str, float]:
        """Return the numbers by name, as in goals."""
        return {"mean": self.mean, "95th percentile": self.percentile, "worst": self.worst}


@dataclass(frozen=True)
class Layout:
    """How the cells of a study are compared.

    Tuned datasets and seeds are those that the rules of the library were derived from; all others
    are held out.
    """

    ours: str  # the method with goals
    order: Callable[[str], int]  # place of a method in the tables; equal ones are as in the scores
    tuned_datasets: Collection[str]
    tuned_seeds: Collection[int]
    bands: tuple[Band, ...]
    error: Value  # the error that has the goals
    baselines: tuple[str, ...]  # methods that ours has to be better than
    oracle: str = ""  # a method that uses the true bad samples, compared separately

    def parts(self, rows: Iterable[Row]) -> dict[str, list[Row]]:
        """Split rows into tuned, other draws and held out, without empty parts."""
        parts: dict[str, list[Row]] = {"tuned": [], "other draws": [], "held out": []}
        for scenario, score in rows:
            tuned = "tuned" if scenario.seed in self.tuned_seeds else "other draws"
            part = tuned if scenario.dataset in self.tuned_datasets else "held out"
            parts[part].append((scenario, score))
        return {part: part_rows for part, part_rows in parts.items() if part_rows}

    def by_method(self, rows: Sequence[Row], value: Value) -> dict[str, dict[Place, float]]:
        """Return the cells of a value by method, in the order of the tables."""
        names = dict.fromkeys(score.method for _, score in rows)
        return {name: means(rows, name, value) for name in sorted(names, key=self.order)}

    def banded(
        self, rows: Sequence[Row], value: Value, bands: Sequence[Band], form: str = ".3f"
    ) -> list[Grid]:
        """Tabulate a value by method and band, part by part: mean / 95th percentile / worst."""
        return [
            part_grid(part, part_rows, [str(band) for band in bands], [
                [Cell(method), *(_band_cell(cells, band, form) for band in bands)]
                for method, cells in self.by_method(part_rows, value).items() if cells
            ])
            for part, part_rows in self.parts(rows).items()
        ]  # fmt: skip

    def error_notes(self, part: str, rows: Sequence[Row]) -> list[str]:
        """Describe whether the goals of a part are met, and whether ours is ahead of baselines."""
        cells = {m: means(rows, m, self.error) for m in (self.ours, self.oracle, *self.baselines)}
        notes = [verdict(self.ours, part, cells[self.ours], b) for b in self.bands if b.goals]
        for band in self.bands:
            in_band = {method: band.of(values) for method, values in cells.items()}
            ours, oracle = in_band.pop(self.ours), in_band.pop(self.oracle)
            text = _comparison(part, band.title, ours, in_band)
            behind = _figures_behind(ours, oracle) if text else None
            notes.append(f"{text} Behind the oracle: {', '.join(behind)}." if behind else text)
        return notes


def means(rows: Iterable[Row], method: str, value: Value) -> dict[Place, float]:
    """Return the mean over the seeds of one value of one method, by cell."""
    values: dict[Place, list[float]] = defaultdict(list)
    for scenario, score in rows:
        if score.method != method:
            continue
        number = getattr(score, value) if isinstance(value, str) else value(scenario, score)
        if np.isfinite(number):
            kind = scenario.corruption if scenario.share else "none"
            place = Place(scenario.dataset, kind, scenario.share, scenario.rank)
            values[place].append(number)
    return {place: float(np.mean(seeds)) for place, seeds in values.items()}


def averages(cells: Cells, name: str, columns: Iterable[Any]) -> list[float]:
    """Return the means over the cells whose field ``name`` has each of some values; NaN if none."""
    groups = [[v for p, v in cells.items() if getattr(p, name) == column] for column in columns]
    return [float(np.mean(values)) if values else np.nan for values in groups]


def part_grid(
    part: str, rows: Sequence[Row], header: Sequence[str], table: Sequence[Sequence[Cell]]
) -> Grid:
    """Return the table of a part, with its datasets and the number of its seeds in the title."""
    seeds = {scenario.seed for scenario, _ in rows}
    names = dict.fromkeys(scenario.dataset for scenario, _ in rows)
    title = f"{part}: {', '.join(names)}; {len(seeds)} seeds"
    return Grid(title, ("method", *header), table, suffix="_" + part.replace(" ", "_"))


def _band_cell(cells: Cells, band: Band, form: str) -> Cell:
    """Format the numbers of a band, marked if its goals are met; empty without cells."""
    band_cells = band.of(cells)
    if not band_cells:
        return Cell("")
    summary = Summary.of(band_cells)
    meets_goals = all(summary.figures[name] <= goal for name, goal in band.goals.items())
    marks = ("best",) if band.goals and meets_goals else ()
    text = " / ".join(format(value, form) for value in summary.figures.values())
    return Cell(text, summary.mean, marks, f"worst: {summary.at}")


def number_cell(value: float | None, form: str, marks: tuple[str, ...] = ()) -> Cell:
    """Format a number; NaN is an empty cell."""
    if value is None or not np.isfinite(value):
        return Cell("")
    return Cell(format(value, form), value, marks)


def number_cells(values: Iterable[float | None], form: str) -> list[Cell]:
    """Format numbers."""
    return [number_cell(value, form) for value in values]


def place_cells(place: Place) -> list[Cell]:
    """Return dataset, corruption and share of a cell."""
    share = Cell(f"{place.share:.0%}", place.share)
    return [Cell(place.dataset), Cell(place.corruption), share]


def met(is_met: bool) -> str:
    """Return the word for a goal."""
    return "met" if is_met else "missed"


def verdict(method: str, part: str, cells: Cells, band: Band) -> str:
    """Describe the results of a method in a band and whether goals are met; empty without cells."""
    band_cells = band.of(cells)
    if not band_cells:
        return ""
    summary = Summary.of(band_cells)
    texts = []
    for name, value in summary.figures.items():
        text = f"{name} {value:.3f}"
        if name == "worst":
            text += f" at {summary.at}"
        if name in band.goals:
            text += f" (goal {band.goals[name]:g}, {met(value <= band.goals[name])})"
        texts.append(text)
    return f"{method}, {part}, {band.title}: {', '.join(texts)}."


def _figures_behind(ours: Cells, baseline: Cells) -> list[str] | None:
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


def _comparison(part: str, title: str, ours: Cells, baselines: Mapping[str, Cells]) -> str:
    """Describe whether our mean and worst are better than every baseline; empty without any."""
    behind = {name: _figures_behind(ours, cells) for name, cells in baselines.items()}
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
