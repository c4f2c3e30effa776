"""The paper's six methods with their grids, and the settings that the paper does not specify.

The protocol was chosen with the paper's EucNMF column only and then frozen: the search is
``benchmarks/protocol.py``, its result ``results/paper/protocol.md``. If random starts do not
distinguish scalings, ``benchmarks/scalings.py`` decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robustnmf.corruptions import gaussian
from robustnmf.weightings import L21, Entropy, Fuzzy, Huber, Uniform, Weighting

ParameterValue = float | str | None
"""Value of a hyperparameter: a number, "auto", or None for a method without one."""


@dataclass(frozen=True)
class Method:
    """A method of the experiments."""

    name: str
    weighting: Callable[..., Weighting]  # takes the value of the hyperparameter, if there is one
    parameter: str | None = None
    grid: tuple[float, ...] = ()  # values that the paper chooses from, by the labels
    default: ParameterValue = None  # needs no labels; "auto" is estimated from the energies
    structure: str = "free"

    @property
    def values(self) -> tuple[ParameterValue, ...]:
        """Return all values to run: the grid, and the default if it is not on the grid."""
        if self.parameter is None:
            return (None,)
        extra = () if self.default in self.grid else (self.default,)
        return (*self.grid, *extra)

    def make(self, value: ParameterValue) -> Weighting:
        """Make the weighting with this value."""
        return self.weighting() if self.parameter is None else self.weighting(value)


POWERS_OF_TEN = tuple(10.0**i for i in range(-4, 5))
HALVES = tuple(1.5 + 0.5 * i for i in range(20))

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("EucNMF", Uniform),
        Method("ConvexNMF", Uniform, structure="convex"),
        Method("NMFL2", L21),
        Method("HuberRNMF", Huber, "cutoff", POWERS_OF_TEN, "auto"),
        Method("FWRNMF", Fuzzy, "p", HALVES, "auto"),
        Method("EWRNMF", Entropy, "gamma", POWERS_OF_TEN, "auto"),
    )
}
PROPOSED = ("FWRNMF", "EWRNMF")


def _shifted(X: np.ndarray) -> np.ndarray:
    """Shift features with negative values by their minimum."""
    return X - np.minimum(X.min(axis=0), 0.0)


def _divide(table: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Divide by sizes; rows or columns of size zero are unchanged."""
    return table / np.where(sizes > 0, sizes, 1.0)


def unit_rows(table: np.ndarray) -> np.ndarray:
    """Return rows of norm one; rows of zeros are unchanged."""
    return _divide(table, np.linalg.norm(table, axis=1, keepdims=True))


SCALINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "raw": _shifted,
    "largest": lambda X: _shifted(X) / _shifted(X).max(),
    "features": lambda X: _divide(X - X.min(axis=0), np.ptp(X, axis=0)),
    "maxima": lambda X: _divide(_shifted(X), _shifted(X).max(axis=0)),
    "samples": lambda X: unit_rows(_shifted(X)),
}
"""Scalings by name: unchanged (shifted if negative), divided by the largest value, each feature to
[0, 1], each feature divided by its largest value, each sample to norm one."""


@dataclass(frozen=True)
class Protocol:
    """The settings from a table to scores."""

    scaling: tuple[tuple[str, str], ...] = ()  # one of ``SCALINGS`` by dataset, else "features"
    noise: float = 0.05  # level c of ``X + c N(0, X)``
    noise_on: str = "scaled"  # noise is added after the scaling; "raw": before
    noise_seed: int = 0  # all methods and starts have the same noise
    starts: int = 10  # random starts of every method
    iterations: int = 200  # exact number of the paper's multiplicative updates
    codes: str = "unit"  # codes are scaled to norm one before k-means; "raw": they are not
    kmeans_init: str = "k-means++"
    kmeans_starts: int = 10  # the best by inertia is used
    seed: int = 0  # of all starts

    def table(self, dataset: str, X: np.ndarray, noise: float) -> np.ndarray:
        """Return the scaled and noisy data of a dataset."""
        scaled = SCALINGS[self.scaling_of(dataset)]
        if self.noise_on == "raw":
            return scaled(gaussian(_shifted(X), noise, self.noise_seed))
        return gaussian(scaled(X), noise, self.noise_seed)

    def scaling_of(self, dataset: str) -> str:
        """Return the name of the scaling of a dataset."""
        return dict(self.scaling).get(dataset, "features")


PROTOCOL = Protocol((
    ("yale", "largest"), ("orl", "features"), ("gtfd", "maxima"), ("winequality_red", "features"),
    ("winequality_white", "features"), ("page_blocks", "features"), ("balance", "features"),
    ("thyroid", "features"), ("wdbc", "maxima"), ("dimdata", "features"), ("digits", "largest"),
))  # fmt: skip
"""The frozen protocol."""
