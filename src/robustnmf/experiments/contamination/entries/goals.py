"""Bands of corruptions of entries, goals, and whether they are met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from robustnmf.experiments.contamination.cells import (
    Place,
    Row,
    Value,
    cells_in,
    comparison,
    means_of,
    split_by,
    split_rows,
)
from robustnmf.experiments.contamination.entries.benchmark import TUNED_DATASETS, TUNED_SEEDS
from robustnmf.experiments.contamination.entries.methods import CEILING, OURS, PLAIN, TWO_STEP
from robustnmf.experiments.contamination.judge import Score
from robustnmf.experiments.contamination.scenario import Scenario

ENTRY_AUROC_GOALS = {"large": 0.95, "extreme": 0.85}
SAMPLE_AUROC_GOAL = 0.9
HALFWAY_SHARE = 0.2
"""Smallest share of covered samples for the goals of covered samples."""

PARTS = split_by(TUNED_DATASETS, TUNED_SEEDS)


class EntryBand(NamedTuple):
    """Some corruptions, with goals for the results of our method, by name."""

    title: str
    corruptions: tuple[str, ...]
    targets: tuple[tuple[str, float], ...] = ()

    @property
    def goals(self) -> dict[str, float]:
        """Return the goals by the name of the number."""
        return dict(self.targets)

    def contains(self, place: Place) -> bool:
        """Return whether a cell has one of the corruptions."""
        return place.corruption in self.corruptions


CLEAN = EntryBand("clean", ("none",), (("mean", 1.02), ("worst", 1.05)))
SCATTERED = EntryBand("scattered, 5 to 20%", ("extreme", "large"))
COVERED = EntryBand("covered, 10 to 40%", ("covered",))
MIXED = EntryBand("mixed", ("mixed",), (("mean", 1.15),))
MISSING = EntryBand("missing", ("missing",))
BANDS = (CLEAN, SCATTERED, COVERED, MIXED, MISSING)

CEILING_BANDS = tuple(
    band._replace(targets=(("mean", 1.10), ("worst", 1.5)) if band is SCATTERED else ())
    for band in BANDS
)
"""The same bands, with the goals for errors relative to the ceiling."""


def parts_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Split rows into tuned, other draws and held out, without empty parts."""
    return split_rows(rows, PARTS)


def score_value(name: str) -> Value:
    """Return a function that returns one score."""
    return lambda scenario, score: float(getattr(score, name))


def over_ceiling(rows: Sequence[Row]) -> Value:
    """Return a function that returns the error relative to the ceiling of the same scenario."""
    ceilings = {
        scenario: score.relative_error for scenario, score in rows if score.method == CEILING
    }

    def value(scenario: Scenario, score: Score) -> float:
        return score.relative_error / ceilings.get(scenario, np.nan)

    return value


def baseline_verdict(part: str, rows: Sequence[Row], band: EntryBand) -> str:
    """Describe whether mean and worst of our method are better than all two-step baselines."""
    cells = {
        method: cells_in(means_of(rows, method, score_value("relative_error")), band)
        for method in (OURS, *TWO_STEP)
    }
    ours = cells.pop(OURS)
    return comparison(part, band.title, ours, cells)


def halfway_verdict(part: str, rows: Sequence[Row]) -> str:
    """Describe whether our method is at least halfway from plain NMF to the ceiling if covered."""
    plain, ours, ceiling = (
        {
            place: value
            for place, value in means_of(rows, method, score_value("relative_error")).items()
            if COVERED.contains(place) and place.share >= HALFWAY_SHARE
        }
        for method in (PLAIN, OURS, CEILING)
    )
    places = plain.keys() & ours.keys() & ceiling.keys()
    if not places:
        return ""
    means = [float(np.mean([cells[p] for p in places])) for cells in (plain, ours, ceiling)]
    halfway = (means[0] + means[2]) / 2
    successes = sum(ours[p] <= (plain[p] + ceiling[p]) / 2 for p in places)
    return (
        f"{OURS}, {part}, covered, 20 to 40%: mean {means[1]:.3f}, plain NMF {means[0]:.3f}, "
        f"ceiling {means[2]:.3f}; at least halfway to the ceiling "
        f"({'met' if means[1] <= halfway else 'missed'}; in {successes} of {len(places)} cells)."
    )


def auroc_verdicts(part: str, rows: Sequence[Row]) -> list[str]:
    """Describe how well our method ranks bad entries and covered samples."""
    entries = means_of(rows, OURS, score_value("entry_auroc"))
    texts = [
        _auroc_text(f"{OURS}, {part}, {kind}: AUROC of entries", goal,
                    {p: v for p, v in entries.items() if p.corruption == kind})
        for kind, goal in ENTRY_AUROC_GOALS.items()
    ]  # fmt: skip
    samples = means_of(rows, OURS, score_value("auroc"))
    covered = {p: v for p, v in samples.items() if COVERED.contains(p) and p.share >= HALFWAY_SHARE}
    title = f"{OURS}, {part}, covered, 20 to 40%: AUROC of samples"
    texts.append(_auroc_text(title, SAMPLE_AUROC_GOAL, covered))
    return [text for text in texts if text]


def _auroc_text(title: str, goal: float, cells: Mapping[Place, float]) -> str:
    """Describe mean and minimum of areas and whether the mean meets a goal; empty without cells."""
    if not cells:
        return ""
    mean, worst = float(np.mean(list(cells.values()))), min(cells, key=lambda place: cells[place])
    return (
        f"{title} {mean:.3f} (goal {goal:g}, {'met' if mean >= goal else 'missed'}), least "
        f"{cells[worst]:.3f} at {worst}."
    )
