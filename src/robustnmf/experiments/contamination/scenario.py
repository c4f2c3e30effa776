"""What a method is given: a table of which some samples are spoiled, and what it is judged by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.datasets import load_iris

from robustnmf.corruptions import spoil
from robustnmf.corruptions._base import Shape
from robustnmf.datasets import load_dataset
from robustnmf.experiments.contamination.generated import GENERATED
from robustnmf.experiments.protocol import PROTOCOL

LARGEST = 900
"""Samples of a dataset that take part, drawn anew for every seed."""

HELD_BACK = 1 / 3
"""Share of the samples that no method sees; none of them is spoiled."""

RANKS = (2, 5, 10, 20, 40)
"""Ranks at which clean tables are fitted, beside the one of the table, as far as they fit."""

IRIS = "iris"
EMBEDDED = (IRIS, *GENERATED)
"""Tables that need no files."""


@dataclass(frozen=True)
class Data:
    """Samples to learn from, which of them are spoiled, and clean samples to judge by."""

    dirty: np.ndarray
    bad: np.ndarray
    held_back: np.ndarray
    rank: int
    parts: np.ndarray | None = None

    @property
    def clean(self) -> np.ndarray:
        """The samples to learn from that are not spoiled."""
        return self.dirty[~self.bad]


@dataclass(frozen=True)
class Table:
    """All samples of a table, the shape of its images, known parts, and the rank of its own."""

    X: np.ndarray
    shape: Shape
    parts: np.ndarray | None
    rank: int


@dataclass(frozen=True)
class Scenario:
    """A dataset, how many of its samples are spoiled, in what way, the draw, and the rank.

    Rank 0 stands for the table's own: ten, or one for every three features, or the number of its
    clusters.
    """

    dataset: str
    corruption: str
    share: float
    seed: int
    rank: int = 0

    def data(self, data_dir: Any = None) -> Data:
        """The tables of this scenario."""
        rng = np.random.default_rng([self.seed, 1])
        table = table_of(self.dataset, self.seed, data_dir)
        chosen = rng.permutation(len(table.X))[:LARGEST]
        held_back = round(HELD_BACK * len(chosen))
        learned = table.X[chosen[held_back:]]
        dirty, bad = spoil(learned, self.share, [self.corruption], table.shape, self.seed)
        rank = self.rank or table.rank
        return Data(dirty, bad, table.X[chosen[:held_back]], rank, table.parts)


def ranks_of(dataset: str, data_dir: Any = None) -> tuple[int, ...]:
    """Ranks at which a clean table is fitted; 0 is its own, others leave a third of the features.

    Half of the samples that are learned from is the other limit.
    """
    table = table_of(dataset, 0, data_dir)
    samples = (1 - HELD_BACK) * min(len(table.X), LARGEST)
    most = min(2 * table.X.shape[1] / 3, samples / 2)
    return (0, *(rank for rank in RANKS if rank <= most and rank != table.rank))


def table_of(dataset: str, seed: int, data_dir: Any = None) -> Table:
    """A table as methods see it; generated ones are drawn anew for every seed."""
    if dataset in GENERATED:
        found = GENERATED[dataset](np.random.default_rng([seed, 2]))
        return Table(found.X, None, found.parts, found.rank)
    return _loaded(dataset, data_dir)


@lru_cache(maxsize=4)
def _loaded(dataset: str, data_dir: Any) -> Table:
    if dataset == IRIS:
        X = load_iris().data
        return Table(X / X.max(axis=0), None, None, 3)
    found = load_dataset(dataset, data_dir)
    X = PROTOCOL.table(dataset, found.data, noise=0.0)
    return Table(X, found.image_shape, None, max(1, min(10, X.shape[1] // 3)))
