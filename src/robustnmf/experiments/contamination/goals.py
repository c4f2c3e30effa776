"""Bands of shares of bad samples, goals, and whether they are met."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from robustnmf.experiments.contamination.benchmark import MINORITY, TUNED_DATASETS, TUNED_SEEDS
from robustnmf.experiments.contamination.cells import (
    Place,
    Row,
    Summary,
    cells_in,
    comparison,
    figures_behind,
    means_of,
    split_by,
    split_rows,
)
from robustnmf.experiments.contamination.detection import OUR_DETECTOR
from robustnmf.experiments.contamination.judge import Score
from robustnmf.experiments.contamination.methods import OURS
from robustnmf.experiments.contamination.scenario import Scenario
from robustnmf.experiments.contamination.two_step import ORACLE_FIRST, TWO_STEP

GEOMETRIC = "page_blocks"
"""Dataset scored by the geometric mean: 1% of its samples carry most of the squared error."""

LOST_GOAL, FLAGGED_GOAL, MINORITY_GOAL = 0.02, 0.03, 1.15


class Band(NamedTuple):
    """Range of shares of bad samples, with goals for RobustNMF (NaN if there is none)."""

    title: str
    lowest: float
    highest: float
    mean: float
    percentile: float = np.nan
    worst: float = np.nan

    @property
    def goals(self) -> dict[str, float]:
        """Return the goals by the name of the number."""
        every = {"mean": self.mean, "95th percentile": self.percentile, "worst": self.worst}
        return {name: goal for name, goal in every.items() if np.isfinite(goal)}

    def without_goals(self) -> Band:
        """Return the same band without goals."""
        return self._replace(mean=np.nan, percentile=np.nan, worst=np.nan)

    def contains(self, place: Place) -> bool:
        """Return whether the share of bad samples of a cell is in this band."""
        return self.lowest <= place.share <= self.highest


CLEAN = Band("clean", 0.0, 0.0, 1.01, worst=1.05)
BANDS = (
    CLEAN,
    Band("5 to 20%", 0.01, 0.2, 1.04, percentile=1.15),
    Band("30 to 40%", 0.21, 0.5, 1.12),
)

PARTS = split_by(TUNED_DATASETS, TUNED_SEEDS)


def parts_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Split rows into tuned, other draws and held out, without empty parts."""
    return split_rows(rows, PARTS)


def means(rows: Iterable[Row], method: str, score_name: str) -> dict[Place, float]:
    """Return the mean over the seeds of one score of one method, by cell.

    ``score_name`` is the name of a score, or "error" (see `value_of`).
    """
    return means_of(rows, method, lambda scenario, score: value_of(scenario, score, score_name))


def value_of(scenario: Scenario, score: Score, score_name: str) -> float:
    """Return a score by name; "error" is the geometric error for `GEOMETRIC`, else the relative."""
    if score_name == "error":
        score_name = "geometric_error" if scenario.dataset == GEOMETRIC else "relative_error"
    return float(getattr(score, score_name))


def baseline_verdict(part: str, rows: Sequence[Row], band: Band) -> str:
    """Describe whether mean and worst of RobustNMF are better than all two-step baselines.

    Common cells are compared. The oracle is separate because it uses the true bad samples.
    """
    ours = cells_in(means(rows, OURS, "error"), band)
    baselines = {m: cells_in(means(rows, m, "error"), band) for m in TWO_STEP}
    text = comparison(part, band.title, ours, baselines)
    oracle = figures_behind(ours, cells_in(means(rows, ORACLE_FIRST, "error"), band))
    return f"{text} Behind the oracle: {', '.join(oracle)}." if text and oracle else text


def lost_verdict(part: str, rows: Sequence[Row]) -> str:
    """Describe how many good samples of clean tables lose their weight."""
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
    """Describe how many samples of clean iris, digits and clusters our detector flags."""
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
        f"{OURS}, {dataset} (15% of the samples) beside {share:.0%} {kind}: error at most "
        f"{MINORITY_GOAL:g} in {successes} of {len(errors)} draws, worst {max(errors):.3f} "
        f"({'met' if successes == len(errors) else 'missed'})."
    )
