"""Generated tables: known components, clusters, rare features, heavy tails, counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from robustnmf.corruptions.entries import Shape

SAMPLES = 900
"""Number of samples of a generated table."""

FEW, VERY_FEW = 60, 36
"""The same for tables with few samples; two thirds of them are for training."""


class Table(NamedTuple):
    """All samples of a table, its true components if known, its rank, and the shape of images."""

    X: np.ndarray
    parts: np.ndarray | None
    rank: int
    shape: Shape = None


Rule = Callable[[np.random.Generator], Table]


def synthetic(rng: np.random.Generator) -> Table:
    """Generate samples of ten known components, with noise of a tenth of the mean."""
    parts = rng.gamma(0.3, size=(10, 60))
    parts /= np.linalg.norm(parts, axis=1, keepdims=True)
    exact = rng.gamma(0.5, size=(SAMPLES, 10)) @ parts
    noise = 0.1 * exact.mean() * rng.standard_normal(exact.shape)
    return Table(np.maximum(exact + noise, 0.0), parts, 10)


def clusters(
    shares: Sequence[float],
    features: int,
    *,
    apart: bool = False,
    noise: float = 0.1,
    samples: int = SAMPLES,
) -> Rule:
    """Return a generator of a table of clusters, one profile each, with multiplicative noise.

    With ``apart``, the profiles have disjoint features, otherwise all features.
    """

    def rule(rng: np.random.Generator) -> Table:
        count = len(shares)
        edges = np.round(samples * np.cumsum(shares) / np.sum(shares)).astype(int)
        labels = np.repeat(np.arange(count), np.diff(edges, prepend=0))
        if apart:
            profiles = np.kron(np.eye(count), 0.5 + rng.random((1, features // count)))
        else:
            profiles = rng.gamma(0.5, size=(count, features))
        sizes = 0.5 + rng.random((len(labels), 1))
        factors = np.exp(noise * rng.standard_normal((len(labels), features)))
        return Table(sizes * profiles[labels] * factors, profiles, count)

    return rule


def rare_features(rng: np.random.Generator) -> Table:
    """Generate six continuous features of three components, and twelve rare binary features."""
    parts = rng.gamma(1.0, size=(3, 6))
    continuous = rng.gamma(1.0, size=(SAMPLES, 3)) @ parts
    continuous = continuous / continuous.max(axis=0)
    continuous = continuous * np.exp(0.1 * rng.standard_normal(continuous.shape))
    binary = rng.random((SAMPLES, 12)) < np.geomspace(0.005, 0.15, 12)
    return Table(np.hstack([continuous, binary.astype(float)]), None, 5)


def heavy_tailed(rng: np.random.Generator) -> Table:
    """Generate samples of five components with log-normal codes and multiplicative noise."""
    parts = rng.gamma(0.5, size=(5, 40))
    exact = rng.lognormal(sigma=1.2, size=(SAMPLES, 5)) @ parts
    return Table(exact * np.exp(0.2 * rng.standard_normal(exact.shape)), parts, 5)


def counts(rng: np.random.Generator) -> Table:
    """Generate sparse counts of six topics over 120 words; most samples have one or two topics."""
    topics = rng.dirichlet(np.full(120, 0.1), size=6)
    mixtures = rng.dirichlet(np.full(6, 0.15), size=SAMPLES)
    lengths = rng.integers(40, 200, size=(SAMPLES, 1))
    return Table(rng.poisson(lengths * (mixtures @ topics)).astype(float), topics, 6)


def few_samples(rng: np.random.Generator) -> Table:
    """Generate a few samples of three components with multiplicative noise."""
    parts = rng.gamma(0.5, size=(3, 20))
    exact = rng.gamma(1.0, size=(FEW, 3)) @ parts
    return Table(exact * np.exp(0.1 * rng.standard_normal(exact.shape)), parts, 3)


SYNTHETIC = "synthetic"
GENERATED: dict[str, Rule] = {
    SYNTHETIC: synthetic,
    "two_clusters": clusters((0.8, 0.2), 30),
    "small_cluster": clusters((0.85, 0.15), 30),
    "three_clusters": clusters((0.1, 0.3, 0.6), 30, apart=True),
    "five_clusters": clusters((1.0,) * 5, 30),
    "ten_clusters": clusters((1.0,) * 10, 60),
    "mixed_clusters": clusters((0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.05), 40, noise=0.2),
    "few_clusters": clusters((0.7, 0.3), 20, samples=VERY_FEW),
    "few_samples": few_samples,
    "rare_features": rare_features,
    "heavy_tailed": heavy_tailed,
    "counts": counts,
}
"""Generated tables by name; a new one is a function and a line here."""
