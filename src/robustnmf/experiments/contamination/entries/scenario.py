"""Scenarios: a training table with and without bad entries, and held-back clean samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robustnmf.corruptions import spoil_entries
from robustnmf.datasets._base import DataDir
from robustnmf.experiments.contamination.scenario import Scenario, split_samples, table_of


@dataclass(frozen=True)
class EntryData:
    """A training table with bad entries, their masks, and held-back clean samples.

    Attributes
    ----------
    dirty, clean : ndarray (n_samples, n_features)
        The training table with and without bad entries; NaN is a missing value.
    bad : ndarray of bool (n_samples, n_features)
    bad_samples : ndarray of bool (n_samples,)
        Samples to be found; none if bad entries are scattered.
    held_back : ndarray (n_held_back, n_features)
    """

    dirty: np.ndarray
    clean: np.ndarray
    bad: np.ndarray
    bad_samples: np.ndarray
    held_back: np.ndarray
    rank: int
    parts: np.ndarray | None = None

    @property
    def has_missing(self) -> bool:
        """Return whether values of the training table are missing."""
        return bool(np.isnan(self.dirty).any())


@dataclass(frozen=True)
class EntryScenario(Scenario):
    """A dataset, the corruption and share of its bad entries, the seed, and the rank."""

    def data(self, data_dir: DataDir = None) -> EntryData:  # type: ignore[override]
        """Draw the samples of this scenario, and spoil entries of the training table."""
        table = table_of(self.dataset, self.seed, data_dir)
        training, held_back = split_samples(table.X, self.seed)
        spoiled = spoil_entries(training, self.share, self.corruption, table.shape, self.seed)
        rank = self.rank or table.rank
        return EntryData(
            spoiled.X, training, spoiled.bad, spoiled.bad_samples, held_back, rank, table.parts
        )
