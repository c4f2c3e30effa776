"""What automatic parameters are read off: how the energies of all samples are spread.

Energies of samples that belong together are spread about evenly on a logarithmic scale, so
everything here is about their logarithms. All of it follows from counts that add up over
blocks. A sample counts in the two nodes beside its energy, by how near it is to each: what is
read off then changes continuously with the energies, and rounding stays rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

STEP = 1 / 32
NODES = np.arange(-60.0, 20.0 + STEP, STEP)
"""Logarithms of energies that are told apart, in units of a typical sample."""

TINY = np.exp(NODES[0])

HALF = 0.5
"""Share of the samples that are taken to be good."""

MOST_BAD = 0.45
NARROWEST, WIDEST = 0.2, 1.0
"""Bounds of a spread: closer energies are taken for equal, wider ones for several groups."""

ROUNDS = 20


class Bulk(NamedTuple):
    """Where the majority of log energies lies: its centre and its standard deviation."""

    centre: float
    spread: float


@dataclass(frozen=True)
class LogHistogram:
    """Counts of logarithms at ``NODES``."""

    counts: np.ndarray

    @classmethod
    def of(cls, logs: np.ndarray, mass: np.ndarray) -> LogHistogram:
        """Each value shared between the nodes on both sides of it."""
        at = np.clip((logs - NODES[0]) / STEP, 0.0, len(NODES) - 1.001)
        left = at.astype(np.intp)
        right_share = at - left
        size = len(NODES)
        counts = np.bincount(left, mass * (1.0 - right_share), size)
        return cls(counts + np.bincount(left + 1, mass * right_share, size))

    def __add__(self, other: LogHistogram) -> LogHistogram:
        return LogHistogram(self.counts + other.counts)

    @cached_property
    def total(self) -> float:
        """How many values there are."""
        return float(self.counts.sum())

    @cached_property
    def _below_nodes(self) -> np.ndarray:
        """Share of the values below each node, half of its own among them."""
        passed = np.cumsum(self.counts)
        return (passed - 0.5 * self.counts) / passed[-1]

    def below(self, log: float) -> float:
        """Share of the values below this one."""
        return float(np.interp(log, NODES, self._below_nodes))

    def median(self) -> float:
        """The value that half of all lie below."""
        return float(np.interp(HALF, self._below_nodes, NODES))

    def shortest_half(self) -> tuple[float, float]:
        """Ends of the shortest interval that holds half of the values, or so."""
        some = np.flatnonzero(self.counts)
        part = slice(max(some[0] - 1, 0), min(some[-1] + 2, len(NODES)))
        nodes, below = NODES[part], self._below_nodes[part]
        starts = nodes[below <= 1.0 - HALF]
        # Where nothing lies between two nodes any point of them would do: the left one.
        rising = below + 1e-12 * np.arange(len(below))
        lengths = np.interp(below[: len(starts)] + HALF, rising, nodes) - starts
        # Of several that are about as short the mean, so that rounding does not choose.
        near = np.exp((lengths.min() - lengths) / STEP)
        low, length = (float(near @ values / near.sum()) for values in (starts, lengths))
        return low, low + length

    def core(self) -> Bulk:
        """The majority, if as many of the others as possible are bad."""
        low, high = self.shortest_half()
        return Bulk(0.5 * (low + high), _spread(0.5 * (high - low), MOST_BAD))

    def bulk(self, reach: float) -> Bulk:
        """The majority, with the share of the bad ones that follows from it.

        Good ones lie within ``reach`` standard deviations of their centre, but for as many as a
        normal distribution has beyond; what else lies there is bad. The more of it, the larger
        a part of the good ones is the half in the middle, and the smaller their spread.
        """
        low, high = self.shortest_half()
        centre, bad, beyond = 0.5 * (low + high), MOST_BAD, 2.0 * float(ndtr(-reach))
        for _ in range(ROUNDS):
            spread = _spread(0.5 * (high - low), bad)
            inside = self.below(centre + reach * spread) - self.below(centre - reach * spread)
            bad = min(max((1.0 - inside - beyond) / (1.0 - beyond), 0.0), MOST_BAD)
        return Bulk(centre, spread)


def _spread(half_width: float, bad: float) -> float:
    """Standard deviation of good ones of which some are within a half width of their centre."""
    within = min(HALF / (1.0 - bad), 0.99)
    return min(max(half_width / float(ndtri(0.5 * (1.0 + within))), NARROWEST), WIDEST)


class Profile:
    """The energies of a member: of samples, and of samples as shares of their sizes.

    Parameters
    ----------
    energies, sizes, mass : ndarray (n_samples,)
        Energies, what they compare with, and how often each sample counts.
    typical : float
        Median energy, but no less than a small share of the size of a typical sample.
    unit : float
        Size of a typical sample, in which logarithms of energies are taken.
    features : int
        Of a sample.
    """

    def __init__(
        self,
        energies: np.ndarray,
        sizes: np.ndarray,
        mass: np.ndarray,
        *,
        typical: float,
        unit: float,
        features: int,
    ):
        self.typical = typical
        self.unit = unit
        self.features = features
        self._energies, self._sizes, self._mass = energies, sizes, mass

    @cached_property
    def energies(self) -> LogHistogram:
        """Logarithms of energies."""
        return LogHistogram.of(self._logs, self._mass)

    @cached_property
    def shares(self) -> LogHistogram:
        """Logarithms of energies over the sizes of their samples."""
        return LogHistogram.of(self._log_shares, self._mass)

    def beyond(self, log: float, log_share: float) -> LogHistogram:
        """The larger of both, less the logarithms that are given."""
        larger = np.maximum(self._logs - log, self._log_shares - log_share)
        return LogHistogram.of(larger, self._mass)

    @cached_property
    def _logs(self) -> np.ndarray:
        return np.log(np.maximum(self._energies / self.unit, TINY))

    @cached_property
    def _log_shares(self) -> np.ndarray:
        # A sample of zeros has no energy, and no share either.
        sizes = np.where(self._sizes > 0, self._sizes, np.inf)
        return np.log(np.maximum(self._energies / sizes, TINY))
