"""Cells of the benchmark, bands of shares of bad samples, goals, and whether they are met."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robustnmf.experiments.contamination.benchmark import MINORITY, TUNED_DATASETS, TUNED_SEEDS
from robustnmf.experiments.contamination.detection import OUR_DETECTOR
from robustnmf.experiments.contamination.judge import Score
from robustnmf.experiments.contamination.methods import OURS
from robustnmf.experiments.contamination.scenario import Scenario
from robustnmf.experiments.contamination.two_step import ORACLE_FIRST, TWO_STEP

GEOMETRIC = "page_blocks"
"""Dataset scored by the geometric mean: 1% of its samples carry most of the squared error."""

LOST_GOAL, FLAGGED_GOAL, MINORITY_GOAL = 0.02, 0.03, 1.15
ROUNDING = 5e-4
"""Difference below which figures count as equal: half a unit of the third digit."""

Row = tuple[Scenario, Score]


class Place(NamedTuple):
    """A cell of the benchmark, averaged over its seeds; rank 0 is the table's own."""

    dataset: str
    corruption: str
    share: float
    rank: int = 0

    def __str__(self) -> str:
        rank = f", rank {self.rank}" if self.rank else ""
        return f"{self.dataset}, {self.corruption}, {self.share:.0%}{rank}"


class Band(NamedTuple):
    """Range of shares of bad samples, with goals for RobustNMF (NaN where there is none)."""

    title: str
    lowest: float
    highest: float
    mean: float
    percentile: float = np.nan
    worst: float = np.nan

    @property
    def goals(self) -> dict[str, float]:
        """Return the goals there are, by the name of the figure."""
        every = {"mean": self.mean, "95th percentile": self.percentile, "worst": self.worst}
        return {name: goal for name, goal in every.items() if np.isfinite(goal)}


CLEAN = Band("clean", 0.0, 0.0, 1.01, worst=1.05)
BANDS = (
    CLEAN,
    Band("5 to 20%", 0.01, 0.2, 1.04, percentile=1.15),
    Band("30 to 40%", 0.21, 0.5, 1.12),
)

PARTS: dict[str, Callable[[Scenario], bool]] = {
    "tuned": lambda s: s.dataset in TUNED_DATASETS and s.seed in TUNED_SEEDS,
    "other draws": lambda s: s.dataset in TUNED_DATASETS and s.seed not in TUNED_SEEDS,
    "held out": lambda s: s.dataset not in TUNED_DATASETS,
}


@dataclass(frozen=True)
class Summary:
    """Mean, 95th percentile and worst of some cells, and which cell is the worst."""

    mean: float
    percentile: float
    worst: float
    at: Place

    @classmethod
    def of(cls, cells: Mapping[Place, float]) -> Summary:
        """Summarise cells; there has to be one."""
        values, at = list(cells.values()), max(cells, key=lambda place: cells[place])
        return cls(float(np.mean(values)), float(np.percentile(values, 95)), cells[at], at)

    @property
    def figures(self) -> dict[str, float]:
        """Return the figures by name, as goals name them."""
        return {"mean": self.mean, "95th percentile": self.percentile, "worst": self.worst}

    def meets(self, goals: Mapping[str, float]) -> bool:
        """Return whether no goal is exceeded."""
        return all(self.figures[name] <= goal for name, goal in goals.items())


def parts_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Split rows into tuned, other draws and held out; parts without rows are left out."""
    parts = {part: [row for row in rows if belongs(row[0])] for part, belongs in PARTS.items()}
    return {part: part_rows for part, part_rows in parts.items() if part_rows}


def means(rows: Iterable[Row], method: str, score_name: str) -> dict[Place, float]:
    """Return the mean over the seeds of one score of one method, by cell.

    ``score_name`` is the name of a score, or "error" (see `value_of`).
    """
    values: dict[Place, list[float]] = defaultdict(list)
    for scenario, score in rows:
        if score.method != method:
            continue
        value = value_of(scenario, score, score_name)
        if np.isfinite(value):
            kind = scenario.corruption if scenario.share else "none"
            place = Place(scenario.dataset, kind, scenario.share, scenario.rank)
            values[place].append(value)
    return {place: float(np.mean(seeds)) for place, seeds in values.items()}


def value_of(scenario: Scenario, score: Score, score_name: str) -> float:
    """Return a score by name; "error" is the geometric error for `GEOMETRIC`, else the relative."""
    if score_name == "error":
        score_name = "geometric_error" if scenario.dataset == GEOMETRIC else "relative_error"
    return float(getattr(score, score_name))


def cells_in(cells: Mapping[Place, float], band: Band) -> dict[Place, float]:
    """Return the cells whose share of bad samples is in a band."""
    return {p: value for p, value in cells.items() if band.lowest <= p.share <= band.highest}


def verdict(part: str, cells: Mapping[Place, float], band: Band) -> str:
    """Say what RobustNMF reaches in a band, and whether goals are met; empty without cells."""
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
    return f"{OURS}, {part}, {band.title}: {', '.join(texts)}."


def comparison(part: str, rows: Sequence[Row], band: Band) -> str:
    """Say whether RobustNMF is ahead of every two-step baseline in a band, by mean and by worst.

    Cells that both have are compared. The oracle is listed apart: it uses the true bad samples.
    """
    ours = cells_in(means(rows, OURS, "error"), band)
    behind: dict[str, list[str]] = {}
    for method in (*TWO_STEP, ORACLE_FIRST):
        baseline = cells_in(means(rows, method, "error"), band)
        common = ours.keys() & baseline.keys()
        if not common:
            continue
        our_figures = Summary.of({place: ours[place] for place in common}).figures
        figures = Summary.of({place: baseline[place] for place in common}).figures
        behind[method] = [
            f"{name} {our_figures[name]:.3f} against {figures[name]:.3f}"
            for name in ("mean", "worst") if our_figures[name] > figures[name] + ROUNDING
        ]  # fmt: skip
    if not behind.keys() & set(TWO_STEP):
        return ""
    losses = [
        f"{method} ({', '.join(behind[method])})" for method in TWO_STEP if behind.get(method)
    ]
    text = f"missed: behind {'; '.join(losses)}" if losses else "met"
    oracle = behind.get(ORACLE_FIRST)
    aside = f" Behind the oracle: {', '.join(oracle)}." if oracle else ""
    return f"Ahead of every two-step baseline, {part}, {band.title}: {text}.{aside}"


def lost_verdict(part: str, rows: Sequence[Row]) -> str:
    """Say how many good samples of clean tables lose their weight."""
    cells = cells_in(means(rows, OURS, "lost"), CLEAN)
    if not cells:
        return ""
    summary = Summary.of(cells)
    return (
        f"{OURS}, {part}, clean: {summary.mean:.1%} of the good samples without weight (goal "
        f"{LOST_GOAL:.0%}, {'met' if summary.mean <= LOST_GOAL else 'missed'}), worst "
        f"{summary.worst:.1%} at {summary.at}."
    )


def flagged_verdict(rows: Sequence[Row]) -> str:
    """Say how many samples of clean iris, digits and clusters our detector flags."""
    cells = {
        place: value
        for place, value in cells_in(means(rows, OUR_DETECTOR, "lost"), CLEAN).items()
        if place.dataset in ("iris", "digits") or place.dataset.endswith(("_clusters", "_cluster"))
    }
    if not cells:
        return ""
    summary = Summary.of(cells)
    return (
        f"{OUR_DETECTOR} flags at most {summary.worst:.1%} of clean iris, digits and clusters, at "
        f"{summary.at} (goal {FLAGGED_GOAL:.0%}, "
        f"{'met' if summary.worst <= FLAGGED_GOAL else 'missed'})."
    )


def minority_verdict(rows: Sequence[Row]) -> str:
    """Say whether a small cluster survives beside as much noise, in every draw."""
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
        f"{OURS}, {dataset} (15% of the samples) beside {share:.0%} {kind}: error at most "
        f"{MINORITY_GOAL:g} in {successes} of {len(errors)} draws, worst {max(errors):.3f} "
        f"({'met' if successes == len(errors) else 'missed'})."
    )


def failures(rows: Sequence[Row]) -> list[str]:
    """Say which methods raised errors, in how many scenarios, and the first error of each."""
    by_method: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row[1].failure:
            by_method[row[1].method].append(row)
    return [
        f"{method} failed in {len(failing)} scenarios, which its figures leave out; first "
        f"{failing[0][0].dataset}, {failing[0][0].corruption}, {failing[0][0].share:.0%}, seed "
        f"{failing[0][0].seed}: {failing[0][1].failure}"
        for method, failing in by_method.items()
    ]
