"""Scenarios: a training table with bad samples or entries, and clean samples for scoring."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sklearn.datasets import load_iris

from robustnmf.corruptions import spoil, spoil_entries
from robustnmf.corruptions.entries import Shape
from robustnmf.datasets import load_dataset
from robustnmf.datasets._base import DataDir
from robustnmf.experiments.contamination.generated import GENERATED, Table
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
class Scenario:
    """A dataset, the corruption and share of its bad samples or entries, the seed, and the rank.

    Rank 0 is the default of the table: the number of its clusters, or ten but at most one third of
    the number of features.
    """

    dataset: str
    corruption: str
    share: float
    seed: int
    rank: int = 0


@dataclass(frozen=True)
class Data:
    """A training table with bad samples or entries, and clean samples held back."""

    dirty: np.ndarray  # the training table (n_samples, n_features); NaN is a missing value
    bad: np.ndarray  # mask (n_samples,) of bad samples; none if bad entries are scattered
    held_back: np.ndarray  # (n_held_back, n_features)
    rank: int
    parts: np.ndarray | None = None  # true components (n_parts, n_features), if they are known
    original: np.ndarray | None = None  # the training table before entries were corrupted

    @property
    def clean(self) -> np.ndarray:
        """Return the original training table, or else the samples that are not bad."""
        return self.dirty[~self.bad] if self.original is None else self.original

    @property
    def bad_entries(self) -> np.ndarray:
        """Return the mask (n_samples, n_features) of corrupted entries, without missing values."""
        return (self.dirty != self.clean) & ~np.isnan(self.dirty)

    @property
    def has_missing(self) -> bool:
        """Return whether values of the training table are missing."""
        return bool(np.isnan(self.dirty).any())


Draw = Callable[[Scenario, DataDir], Data]
"""Draws the data of a scenario."""


def draw_samples(scenario: Scenario, data_dir: DataDir = None) -> Data:
    """Draw the samples of a scenario, and corrupt a share of the training samples."""
    table, training, held_back = _split(scenario, data_dir)
    kinds, seed = [scenario.corruption], scenario.seed
    dirty, bad = spoil(training, scenario.share, kinds, table.shape, seed)
    return Data(dirty, bad, held_back, scenario.rank or table.rank, table.parts)


def draw_entries(scenario: Scenario, data_dir: DataDir = None) -> Data:
    """Draw the samples of a scenario, and corrupt entries of the training table."""
    table, training, held_back = _split(scenario, data_dir)
    rank = scenario.rank or table.rank
    return with_bad_entries(scenario, training, held_back, rank, table.shape, table.parts)


def with_bad_entries(
    scenario: Scenario,
    X: np.ndarray,
    held_back: np.ndarray,
    rank: int,
    shape: Shape = None,
    parts: np.ndarray | None = None,
) -> Data:
    """Corrupt entries of a training table (n_samples, n_features)."""
    spoiled = spoil_entries(X, scenario.share, scenario.corruption, shape, scenario.seed)
    return Data(spoiled.X, spoiled.bad_samples, held_back, rank, parts, X)


def _split(scenario: Scenario, data_dir: DataDir) -> tuple[Table, np.ndarray, np.ndarray]:
    """Draw at most `LARGEST` samples of a table; return it, training and held-back samples."""
    table = table_of(scenario.dataset, scenario.seed, data_dir)
    rows = np.random.default_rng([scenario.seed, 1]).permutation(len(table.X))[:LARGEST]
    held_back = round(HELD_BACK * len(rows))
    return table, table.X[rows[held_back:]], table.X[rows[:held_back]]


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
        return GENERATED[dataset](np.random.default_rng([seed, 2]))
    return _load_table(dataset, None if data_dir is None else os.fspath(data_dir))


@lru_cache(maxsize=4)
def _load_table(dataset: str, data_dir: str | None) -> Table:
    if dataset == IRIS:
        X = load_iris().data
        return Table(X / X.max(axis=0), None, 3)
    bunch = load_dataset(dataset, data_dir)
    X = PROTOCOL.table(dataset, bunch.data, noise=0.0)
    return Table(X, None, max(1, min(10, X.shape[1] // 3)), bunch.image_shape)
