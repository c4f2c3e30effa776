"""What the paper leaves open, decided once: by its EucNMF column alone, then frozen.

The search behind it is ``benchmarks/protocol.py``, its outcome ``results/paper/protocol.md``.
Scalings that random starts do not tell apart are tied; ``benchmarks/scalings.py`` decides ties.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robustnmf.corruptions import gaussian


def _shifted(X: np.ndarray) -> np.ndarray:
    """No value below zero; features that hold some are shifted by their minimum."""
    return X - np.minimum(X.min(axis=0), 0.0)


def _over_largest(X: np.ndarray) -> np.ndarray:
    return _shifted(X) / _shifted(X).max()


def _over_feature_largest(X: np.ndarray) -> np.ndarray:
    largest = _shifted(X).max(axis=0)
    return _shifted(X) / np.where(largest > 0, largest, 1.0)


def _by_feature(X: np.ndarray) -> np.ndarray:
    spread = np.ptp(X, axis=0)
    return (X - X.min(axis=0)) / np.where(spread > 0, spread, 1.0)


def _unit_samples(X: np.ndarray) -> np.ndarray:
    return unit_rows(_shifted(X))


def unit_rows(table: np.ndarray) -> np.ndarray:
    """Rows of norm one; rows of zeros stay."""
    norms = np.linalg.norm(table, axis=1, keepdims=True)
    return table / np.where(norms > 0, norms, 1.0)


SCALINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "raw": _shifted,
    "largest": _over_largest,
    "features": _by_feature,
    "maxima": _over_feature_largest,
    "samples": _unit_samples,
}
"""By name: as they are (no value below zero), over the largest value, each feature from 0 to 1,
each feature over its largest value, each sample of norm one."""


@dataclass(frozen=True)
class Protocol:
    """How a table becomes scores.

    Parameters
    ----------
    scaling : tuple of (dataset, scaling)
        Of datasets, one of ``SCALINGS``, "features" for all others.
    noise : float
        Level c of ``X + c N(0, X)``.
    noise_on : {"scaled", "raw"}
        Whether noise is added after the scaling or before.
    noise_seed : int
        Of the one draw that all methods and starts share.
    starts : int
        Random starts of every method.
    iterations : int
        Of the paper's multiplicative updates, no more and no fewer.
    codes : {"raw", "unit"}
        Whether codes are brought to norm one before k-means.
    kmeans_init : {"random", "k-means++"}
    kmeans_starts : int
        Of which the best by inertia counts.
    seed : int
        From which all starts follow.
    """

    scaling: tuple[tuple[str, str], ...] = ()
    noise: float = 0.05
    noise_on: str = "scaled"
    noise_seed: int = 0
    starts: int = 10
    iterations: int = 200
    codes: str = "unit"
    kmeans_init: str = "k-means++"
    kmeans_starts: int = 10
    seed: int = 0

    def table(self, dataset: str, X: np.ndarray, noise: float) -> np.ndarray:
        """The data of a dataset as methods see them."""
        scaled = SCALINGS[self.scaling_of(dataset)]
        if self.noise_on == "raw":
            return scaled(gaussian(_shifted(X), noise, self.noise_seed))
        return gaussian(scaled(X), noise, self.noise_seed)

    def scaling_of(self, dataset: str) -> str:
        """How the table of a dataset is scaled."""
        return dict(self.scaling).get(dataset, "features")

    def but(self, **changes: Any) -> Protocol:
        """The same protocol with some things changed."""
        return replace(self, **changes)


PROTOCOL = Protocol(
    (
        ("yale", "largest"),
        ("orl", "features"),
        ("gtfd", "maxima"),
        ("winequality_red", "features"),
        ("winequality_white", "features"),
        ("page_blocks", "features"),
        ("balance", "features"),
        ("thyroid", "features"),
        ("wdbc", "maxima"),
        ("dimdata", "features"),
        ("digits", "largest"),
    )
)
"""The frozen one."""
