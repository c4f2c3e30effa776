"""Histograms of log energies, from which automatic parameters are estimated.

Energies of similar samples are distributed roughly symmetrically on a logarithmic scale, so
everything here works with their logarithms. Histograms are sums over samples, so blocks can be
added. Each sample is divided between the two nodes beside its log energy, according to its
distance from each, so that parameters change continuously and rounding errors remain small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from robustnmf.arrays.kernels import kernels_for
from robustnmf.arrays.namespace import Array, at_least, namespace, quotient

STEP = 1 / 32
FIRST = -160.0
NODES = np.arange(FIRST, 20.0 + STEP, STEP)
"""Nodes of the histograms, in log energy."""

TINY = float(np.exp(-60.0))
"""Least energy that differs from zero, in units of the size of a typical sample."""

TYPICAL_SHARE = 0.01

HALF = 0.5
"""Share of the samples that are assumed to be good."""

MOST_BAD = 0.45
NARROWEST, WIDEST = 0.2, 1.0
"""Bounds of the standard deviation of log energies. Narrower distributions are treated as equal
energies, wider ones as several groups."""

ROUNDS = 20


class Bulk(NamedTuple):
    """Centre and standard deviation of the majority of the log energies."""

    centre: float
    deviation: float


@dataclass(frozen=True)
class LogHistogram:
    """Histogram of logarithms: ``counts`` (nodes,) at ``NODES``."""

    counts: np.ndarray

    @cached_property
    def total(self) -> float:
        """Total weight of the values."""
        return float(self.counts.sum())

    @cached_property
    def _occupied(self) -> slice:
        """The nodes with counts, and one more node on each side."""
        nodes = np.flatnonzero(self.counts)
        return slice(max(int(nodes[0]) - 1, 0), min(int(nodes[-1]) + 2, len(NODES)))

    @cached_property
    def _share_below_nodes(self) -> np.ndarray:
        """Share of the values below each occupied node, plus half of the node's own count."""
        counts = self.counts[self._occupied]
        cumulative = np.cumsum(counts)
        return (cumulative - 0.5 * counts) / cumulative[-1]

    def share_below(self, log: float) -> float:
        """Return the share of the values below a given one."""
        return float(np.interp(log, NODES[self._occupied], self._share_below_nodes))

    def median(self) -> float:
        """Return the median of the values."""
        return float(np.interp(HALF, self._share_below_nodes, NODES[self._occupied]))

    def has_clipped_median(self) -> bool:
        """Return whether at least half of the values lie below the first node."""
        return self.median() < FIRST + STEP

    def last(self) -> float:
        """Return the node at or above the largest value."""
        return float(NODES[np.flatnonzero(self.counts)[-1]])

    @cached_property
    def shortest_half(self) -> tuple[float, float]:
        """Return the ends of the shortest interval that contains about half of the values."""
        nodes, below = NODES[self._occupied], self._share_below_nodes
        starts = nodes[: np.searchsorted(below, 1.0 - HALF, side="right")]
        # Between two nodes without values every point is a solution; take the left one.
        increasing = below + 1e-12 * np.arange(len(below))
        lengths = np.interp(below[: len(starts)] + HALF, increasing, nodes) - starts
        # Average all intervals that are about as short, so that rounding does not choose one.
        closeness = np.exp((lengths.min() - lengths) / STEP)
        closeness /= closeness.sum()
        low, length = float(closeness @ starts), float(closeness @ lengths)
        return low, low + length

    def core(self) -> Bulk:
        """Estimate the majority, assuming that a share ``MOST_BAD`` of the values is bad."""
        low, high = self.shortest_half
        return Bulk(0.5 * (low + high), _deviation(0.5 * (high - low), MOST_BAD))

    def bulk(self, reach: float) -> Bulk:
        """Estimate the majority together with the share of bad values (fixed-point iteration).

        Good values lie within ``reach`` standard deviations of their centre, apart from the share
        that a normal distribution has outside; all other values outside are bad. If more values
        are bad, the half in the middle is a larger share of the good values, and the estimated
        standard deviation is smaller.
        """
        low, high = self.shortest_half
        centre, bad, tails = 0.5 * (low + high), MOST_BAD, 2.0 * float(ndtr(-reach))
        for _ in range(ROUNDS):
            before, deviation = bad, _deviation(0.5 * (high - low), bad)
            upper, lower = centre + reach * deviation, centre - reach * deviation
            inside = self.share_below(upper) - self.share_below(lower)
            bad = min(max((1.0 - inside - tails) / (1.0 - tails), 0.0), MOST_BAD)
            if bad == before:
                break  # converged to a fixed point
        return Bulk(centre, deviation)


def node_counts(logs: Array, sample_weight: Array) -> np.ndarray:
    """Count values (..., rows) at the nodes (..., nodes), divided between the two neighbours."""
    xp, size = namespace(logs), len(NODES)
    position = xp.clip((logs - FIRST) / STEP, 0.0, size - 1.001)
    lists = xp.reshape(position, (-1, position.shape[-1]))
    counts = kernels_for(lists).count_at_nodes(lists, sample_weight, size)
    return counts.reshape(*position.shape[:-1], size)


def _deviation(half_width: float, bad: float) -> float:
    """Return the standard deviation of good values, from the half width of the shortest half.

    With a share ``bad`` of bad values, half of all values is ``0.5 / (1 - bad)`` of the good ones.
    """
    within = min(HALF / (1.0 - bad), 0.99)
    return min(max(half_width / float(ndtri(0.5 * (1.0 + within))), NARROWEST), WIDEST)


@dataclass(frozen=True)
class EnergyHistogram:
    """Histograms of the log energies of one member, absolute and relative to sample sizes.

    Parameters
    ----------
    energies : LogHistogram of energies, in units of the size of a typical sample
    relative_energies : LogHistogram of energies divided by the sizes of their samples
    larger : callable
        Takes a log energy and a log relative energy; returns the histogram of the larger of the
        two excesses over them. It reads the energies of all samples again.
    unit : float; size of a typical sample
    features : int; number of features of a sample
    samples : float; number of samples (see :func:`sample_count`)
    """

    energies: LogHistogram
    relative_energies: LogHistogram
    larger: Callable[[float, float], LogHistogram]
    unit: float
    features: int
    samples: float

    @cached_property
    def typical(self) -> float:
        """Energy that at least half of the samples do not exceed: the median plus two steps.

        It is at least ``TYPICAL_SHARE`` of the size of a typical sample: a residual of a tenth of
        the sample's norm is a good fit, and a smaller limit would exclude samples that only
        converge slowly.
        """
        return self.unit * max(float(np.exp(self.energies.median() + 2 * STEP)), TYPICAL_SHARE)

    @classmethod
    def of(
        cls, energies: Array, sizes: Array, sample_weight: Array, *, unit: float, features: int
    ) -> EnergyHistogram:
        """Build the histograms of energies (rows,) in one array."""
        counts = energy_counts(energies[None, :], sizes, sample_weight, unit)

        def larger(log: float, log_share: float) -> LogHistogram:
            return LogHistogram(excess_counts(energies, sizes, sample_weight, unit, log, log_share))

        absolute, relative = (LogHistogram(member_counts) for member_counts in counts[:, 0, :])
        samples = sample_count(absolute.total, float(namespace(sample_weight).max(sample_weight)))
        return cls(absolute, relative, larger, unit, features, samples)


def sample_count(total: float, largest: float) -> float:
    """Return the number of samples that rows represent, from their total and largest weight.

    A row of weight two is two samples; many rows whose weights sum to one are still many samples.
    """
    return total / min(1.0, largest) if largest > 0 else 0.0


def energy_counts(energies: Array, sizes: Array, sample_weight: Array, unit: float) -> np.ndarray:
    """Count log energies (members, rows) and log relative energies: (2, members, nodes).

    Counts of several blocks add up.
    """
    return node_counts(namespace(energies).stack(_logs(energies, sizes, unit)), sample_weight)


def excess_counts(
    energies: Array, sizes: Array, sample_weight: Array, unit: float, log: float, log_share: float
) -> np.ndarray:
    """Count the larger excess of each sample over ``log`` and ``log_share``: (..., nodes).

    Counts of several blocks add up.
    """
    logs, log_shares = _logs(energies, sizes, unit)
    return node_counts(namespace(logs).maximum(logs - log, log_shares - log_share), sample_weight)


def _logs(energies: Array, sizes: Array, unit: float) -> tuple[Array, Array]:
    """Return the logarithms of energies in a unit, and of energies over sample sizes."""
    log = namespace(energies).log
    # A sample of zeros has zero energy and zero relative energy.
    return log(at_least(energies / unit, TINY)), log(at_least(quotient(energies, sizes), TINY))
