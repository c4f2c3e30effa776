"""Trials turned into the numbers of a table: choice of the hyperparameter, mean, spread, marks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from robustnmf.experiments.methods import Method
from robustnmf.experiments.trial import Scores

MEASURES = {"accuracy": "ACC", "information": "NMI"}
ONE_CLUSTER = 0.95
LARGEST_CLASS = 0.005

MARKS = {
    "one": "one cluster holds over 95% of the samples, from at least one start",
    "class": "the accuracy is within half a point of the share of the largest class",
    "few": "the effective sample size is below the rank, from at least one start: a few samples "
    "have all the say",
}
"""What the marks of cells mean."""


@dataclass(frozen=True)
class Level:
    """Scores of one value of the hyperparameter over all starts, as shares of one."""

    value: float | str | None
    mean: float
    deviation: float
    effective_sample_sizes: tuple[float, ...]
    largest_clusters: tuple[float, ...]

    @property
    def starts(self) -> int:
        """Number of starts."""
        return len(self.largest_clusters)

    @property
    def effective_sample_size(self) -> float:
        """Mean over the starts."""
        return float(np.mean(self.effective_sample_sizes))

    @property
    def largest_cluster(self) -> float:
        """Mean share over the starts."""
        return float(np.mean(self.largest_clusters))

    @property
    def in_one_cluster(self) -> int:
        """From how many starts one cluster holds nearly everything."""
        return sum(share > ONE_CLUSTER for share in self.largest_clusters)

    def collapsed(self, rank: int) -> int:
        """From how many starts fewer samples have a say than there are components."""
        return sum(size < rank for size in self.effective_sample_sizes)


def levels(scores: Iterable[Scores], measure: str) -> dict[float | str | None, Level]:
    """The scores of every value."""
    groups: dict = {}
    for found in scores:
        groups.setdefault(found.value, []).append(found)
    return {value: _level(value, group, measure) for value, group in groups.items()}


def _level(value: float | str | None, group: list[Scores], measure: str) -> Level:
    numbers = np.array([getattr(found, measure) for found in group])
    return Level(
        value,
        float(numbers.mean()),
        float(numbers.std(ddof=1)) if len(numbers) > 1 else 0.0,
        tuple(found.effective_sample_size for found in group),
        tuple(found.largest_cluster for found in group),
    )


def best(found: dict[float | str | None, Level], method: Method) -> Level:
    """The paper's choice: the value of the grid with the best score, by the labels."""
    grid = [found[value] for value in (method.grid or (None,)) if value in found]
    return max(grid, key=lambda level: level.mean)


def blind(found: dict[float | str | None, Level], method: Method) -> Level:
    """The choice without labels: the default."""
    return found[method.default]


def marks(level: Level, measure: str, largest_class: float, rank: int) -> tuple[str, ...]:
    """What a reader should know before being impressed."""
    told = []
    if level.in_one_cluster:
        told.append("one")
    if measure == "accuracy" and abs(level.mean - largest_class) <= LARGEST_CLASS:
        told.append("class")
    if level.collapsed(rank):
        told.append("few")
    return tuple(told)
