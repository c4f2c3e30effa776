"""Which scaling a dataset gets: the closest to the paper's EucNMF, as far as starts can tell.

Means over a few random starts differ by chance. Scalings whose distances from the paper differ by
less than two standard errors are tied, and a tie goes to the scaling that other datasets of
the same kind (images, tables) have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

FIRST_STARTS, MOST_STARTS = 10, 100
STANDARD_ERROR = 0.5
"""Points of accuracy and of information that the mean over the starts may be off by."""

TIE = 2.0
"""Standard errors of a difference below which it counts as none."""


@dataclass(frozen=True)
class ScalingScores:
    """EucNMF under one scaling: scores of every start and the paper's mean, all in percent."""

    dataset: str
    scaling: str
    accuracies: tuple[float, ...]
    informations: tuple[float, ...]
    accuracy_in_paper: float
    information_in_paper: float

    @property
    def starts(self) -> int:
        """Number of starts."""
        return len(self.accuracies)

    @property
    def accuracy(self) -> float:
        """Mean over the starts."""
        return float(np.mean(self.accuracies))

    @property
    def information(self) -> float:
        """Mean over the starts."""
        return float(np.mean(self.informations))

    @property
    def distance(self) -> float:
        """How far both means are from the paper's, together."""
        return abs(self.accuracy - self.accuracy_in_paper) + abs(
            self.information - self.information_in_paper
        )

    @property
    def standard_error(self) -> float:
        """Of the distance, over the starts; both measures come from the same starts."""
        accuracy_side = math.copysign(1.0, self.accuracy - self.accuracy_in_paper)
        information_side = math.copysign(1.0, self.information - self.information_in_paper)
        distances = accuracy_side * np.array(self.accuracies) + information_side * np.array(
            self.informations
        )
        return standard_error(distances)


def standard_error(scores: Sequence[float] | np.ndarray) -> float:
    """Of the mean of scores."""
    return float(np.std(scores, ddof=1)) / math.sqrt(len(scores))


def starts_needed(scores: ScalingScores) -> int:
    """Starts after which the standard errors of both means are at most ``STANDARD_ERROR``."""
    deviation = max(np.std(scores.accuracies, ddof=1), np.std(scores.informations, ddof=1))
    needed = math.ceil((deviation / STANDARD_ERROR) ** 2)
    return min(max(needed, FIRST_STARTS), MOST_STARTS)


def tied_scalings(scores: Iterable[ScalingScores]) -> list[str]:
    """Scalings of one dataset that starts do not tell from the closest; the closest first."""
    ranked = sorted(scores, key=lambda one: one.distance)
    closest = ranked[0]
    return [
        one.scaling for one in ranked
        if one is closest or one.distance - closest.distance
        < TIE * math.hypot(one.standard_error, closest.standard_error)
    ]  # fmt: skip


def choose_scalings(
    scores: Iterable[ScalingScores], kind_of: Callable[[str], str]
) -> dict[str, str]:
    """The scaling of every dataset.

    Within a kind, the scaling that most datasets cannot be denied is that of all of them; then
    the same among those that are left. Where as many datasets take either of two scalings, the
    one with the smaller sum of distances is taken.
    """
    by_dataset: dict[str, list[ScalingScores]] = {}
    for one in scores:
        by_dataset.setdefault(one.dataset, []).append(one)
    tied = {dataset: tied_scalings(group) for dataset, group in by_dataset.items()}
    distances = {
        (one.dataset, one.scaling): one.distance
        for group in by_dataset.values()
        for one in group
    }  # fmt: skip
    chosen: dict[str, str] = {}
    for kind in dict.fromkeys(map(kind_of, by_dataset)):
        left = [dataset for dataset in by_dataset if kind_of(dataset) == kind]
        while left:
            takers = {
                scaling: [dataset for dataset in left if scaling in tied[dataset]]
                for scaling in sorted({name for dataset in left for name in tied[dataset]})
            }
            common = min(
                takers,
                key=lambda scaling: (
                    -len(takers[scaling]),
                    sum(distances[dataset, scaling] for dataset in takers[scaling]),
                ),
            )
            chosen |= dict.fromkeys(takers[common], common)
            left = [dataset for dataset in left if dataset not in chosen]
    return {dataset: chosen[dataset] for dataset in by_dataset}
