"""What a method is given: a table of which some samples are spoiled, and what it is judged by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from robustnmf.corruptions import spoil
from robustnmf.corruptions._base import Shape
from robustnmf.datasets import load_dataset
from robustnmf.experiments.protocol import PROTOCOL

LARGEST = 900
"""Samples of a dataset that take part, drawn anew for every seed."""

HELD_BACK = 1 / 3
"""Share of the samples that no method sees; none of them is spoiled."""

SYNTHETIC = "synthetic"


@dataclass(frozen=True)
class Data:
    """Samples to learn from, which of them are spoiled, and clean samples to judge by."""

    dirty: np.ndarray
    bad: np.ndarray
    held_back: np.ndarray
    parts: np.ndarray | None = None

    @property
    def clean(self) -> np.ndarray:
        """The samples to learn from that are not spoiled."""
        return self.dirty[~self.bad]

    @property
    def rank(self) -> int:
        """Ten components, or one for every three features."""
        return max(1, min(10, self.dirty.shape[1] // 3))


@dataclass(frozen=True)
class Scenario:
    """A dataset, how many of its samples are spoiled, in what way, and the draw."""

    dataset: str
    corruption: str
    share: float
    seed: int

    def data(self, data_dir: Any = None) -> Data:
        """The tables of this scenario."""
        rng = np.random.default_rng([self.seed, 1])
        X, shape, parts = _drawn(self.dataset, self.seed, data_dir)
        chosen = rng.permutation(len(X))[:LARGEST]
        held_back = round(HELD_BACK * len(chosen))
        learned = X[chosen[held_back:]]
        dirty, bad = spoil(learned, self.share, [self.corruption], shape, self.seed)
        return Data(dirty, bad, X[chosen[:held_back]], parts)


@lru_cache(maxsize=4)
def _table(dataset: str, data_dir: Any) -> tuple[np.ndarray, Shape]:
    found = load_dataset(dataset, data_dir)
    return PROTOCOL.table(dataset, found.data, noise=0.0), found.image_shape


def _drawn(dataset: str, seed: int, data_dir: Any) -> tuple[np.ndarray, Shape, np.ndarray | None]:
    """A table, the shape of its images, and the parts it is made of where they are known."""
    if dataset != SYNTHETIC:
        return *_table(dataset, data_dir), None
    rng = np.random.default_rng([seed, 2])
    parts = rng.gamma(0.3, size=(10, 60))
    parts /= np.linalg.norm(parts, axis=1, keepdims=True)
    exact = rng.gamma(0.5, size=(LARGEST, 10)) @ parts
    noise = 0.1 * exact.mean() * rng.standard_normal(exact.shape)
    return np.maximum(exact + noise, 0.0), None, parts
