"""Scenarios: a training table with corrupted samples, and clean samples for scoring."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sklearn.datasets import load_iris

from robustnmf.corruptions import spoil
from robustnmf.corruptions.entries import Shape
from robustnmf.datasets import load_dataset
from robustnmf.datasets._base import DataDir
from robustnmf.experiments.contamination.generated import GENERATED
from robustnmf.experiments.protocol import PROTOCOL

LARGEST = 900
"""Maximum number of samples of a dataset, drawn again for every seed."""

HELD_BACK = 1 / 3
"""Share of the samples that are held back for scoring; none of them is corrupted."""

RANKS = (2, 5, 10, 20, 40)
"""Further ranks for clean tables, if they are not too large for the table."""

IRIS = "iris"
EMBEDDED = (IRIS, *GENERATED)
"""Tables that need no files."""


@dataclass(frozen=True)
class Data:
    """Training samples, the mask of bad ones among them, and clean samples held back."""

    dirty: np.ndarray
    bad: np.ndarray
    held_back: np.ndarray
    rank: int
    parts: np.ndarray | None = None

    @property
    def clean(self) -> np.ndarray:
        """Return the training samples that are not corrupted."""
        return self.dirty[~self.bad]


@dataclass(frozen=True)
class Table:
    """All samples of a table, the shape of its images, its true components, and default rank."""

    X: np.ndarray
    shape: Shape
    parts: np.ndarray | None
    rank: int


@dataclass(frozen=True)
class Scenario:
    """A dataset, the corruption and share of its bad samples, the seed, and the rank.

    Rank 0 is the default of the table: the number of its clusters, or ten but at most one third of
    the number of features.
    """

    dataset: str
    corruption: str
    share: float
    seed: int
    rank: int = 0

    def data(self, data_dir: DataDir = None) -> Data:
        """Draw the samples of this scenario, and corrupt a share of the training samples."""
        table = table_of(self.dataset, self.seed, data_dir)
        training, held_back = split_samples(table.X, self.seed)
        dirty, bad = spoil(training, self.share, [self.corruption], table.shape, self.seed)
        return Data(dirty, bad, held_back, self.rank or table.rank, table.parts)


def split_samples(X: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw at most `LARGEST` samples; return those for training, and those held back."""
    rows = np.random.default_rng([seed, 1]).permutation(len(X))[:LARGEST]
    held_back = round(HELD_BACK * len(rows))
    return X[rows[held_back:]], X[rows[:held_back]]


def ranks_of(dataset: str, data_dir: DataDir = None) -> tuple[int, ...]:
    """Return the ranks at which a clean table is fitted; 0 is its default.

    Others are at most two thirds of the features and half of the training samples.
    """
    table = table_of(dataset, 0, data_dir)
    samples = (1 - HELD_BACK) * min(len(table.X), LARGEST)
    largest = min(2 * table.X.shape[1] / 3, samples / 2)
    return (0, *(rank for rank in RANKS if rank <= largest and rank != table.rank))


def table_of(dataset: str, seed: int, data_dir: DataDir = None) -> Table:
    """Return a table after scaling; generated tables are drawn again for every seed."""
    if dataset in GENERATED:
        table = GENERATED[dataset](np.random.default_rng([seed, 2]))
        return Table(table.X, None, table.parts, table.rank)
    return _load_table(dataset, None if data_dir is None else os.fspath(data_dir))


@lru_cache(maxsize=4)
def _load_table(dataset: str, data_dir: str | None) -> Table:
    if dataset == IRIS:
        X = load_iris().data
        return Table(X / X.max(axis=0), None, None, 3)
    bunch = load_dataset(dataset, data_dir)
    X = PROTOCOL.table(dataset, bunch.data, noise=0.0)
    return Table(X, bunch.image_shape, None, max(1, min(10, X.shape[1] // 3)))
