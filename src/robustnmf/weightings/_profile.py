"""What automatic parameters are read off: how the energies of all samples are spread.

Energies of samples that belong together are spread about evenly on a logarithmic scale, so
everything here is about their logarithms. All of it follows from counts that add up over
blocks. A sample counts in the two nodes beside its energy, by how near it is to each: what is
read off then changes continuously with the energies, and rounding stays rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from robustnmf.arrays import Array, arange_like, at_least, namespace, to_numpy

STEP = 1 / 32
NODES = np.arange(-160.0, 20.0 + STEP, STEP)
"""Logarithms that are told apart."""

TINY = float(np.exp(-60.0))
"""Energies below this are as good as nothing, in units of a typical sample."""

TYPICAL_SHARE = 0.01

HALF = 0.5
"""Share of the samples that are taken to be good."""

MOST_BAD = 0.45
NARROWEST, WIDEST = 0.2, 1.0
"""Bounds of a spread: closer energies are taken for equal, wider ones for several groups."""

ROUNDS = 20


class Bulk(NamedTuple):
    """Where the majority of log energies lies: its centre and its standard deviation."""

    centre: float
    deviation: float


@dataclass(frozen=True)
class LogHistogram:
    """Counts of logarithms at ``NODES``."""

    counts: np.ndarray

    @classmethod
    def of(cls, logs: Array, sample_weight: Array) -> LogHistogram:
        """The histogram of values, each as often as it counts."""
        return cls(counted(logs, sample_weight))

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
        return Bulk(0.5 * (low + high), _deviation(0.5 * (high - low), MOST_BAD))

    def bulk(self, reach: float) -> Bulk:
        """The majority, with the share of the bad ones that follows from it.

        Good ones lie within ``reach`` standard deviations of their centre, but for as many as a
        normal distribution has beyond; what else lies there is bad. The more of it, the larger
        a part of the good ones is the half in the middle, and the smaller their spread.
        """
        low, high = self.shortest_half()
        centre, bad, beyond = 0.5 * (low + high), MOST_BAD, 2.0 * float(ndtr(-reach))
        for _ in range(ROUNDS):
            deviation = _deviation(0.5 * (high - low), bad)
            inside = self.below(centre + reach * deviation) - self.below(centre - reach * deviation)
            bad = min(max((1.0 - inside - beyond) / (1.0 - beyond), 0.0), MOST_BAD)
        return Bulk(centre, deviation)


def counted(logs: Array, sample_weight: Array) -> np.ndarray:
    """Counts (..., nodes) of values (..., rows), each shared between the nodes on both sides of it.

    Where values live on a device they are counted there: in order of size, the counts of a
    node are differences of running sums.
    """
    xp, size = namespace(logs), len(NODES)
    at = xp.clip((logs - float(NODES[0])) / STEP, 0.0, size - 1.001)
    lists = xp.reshape(at, (-1, at.shape[-1]))
    found = _counted_rows if isinstance(at, np.ndarray) else _counted_on_device
    return found(lists, sample_weight, size).reshape(*at.shape[:-1], size)


def _counted_rows(lists: np.ndarray, sample_weight: np.ndarray, size: int) -> np.ndarray:
    counts = np.empty((len(lists), size))
    for at, out in zip(lists, counts, strict=True):
        left = at.astype(np.intp)
        right_share = at - left
        out[:] = np.bincount(left, sample_weight * (1.0 - right_share), size)
        out += np.bincount(left + 1, sample_weight * right_share, size)
    return counts


def _counted_on_device(lists: Array, sample_weight: Array, size: int) -> np.ndarray:
    """All lists in one line, one after the other, so that the device is asked once."""
    xp = namespace(lists)
    count, rows = lists.shape
    line = lists + size * xp.astype(arange_like(count, lists), lists.dtype)[:, None]
    shared = xp.broadcast_to(sample_weight, (count, rows)) * (lists - xp.floor(lists))
    order = xp.argsort(xp.reshape(line, (-1,)))
    places = xp.searchsorted(
        xp.take(xp.reshape(line, (-1,)), order),
        xp.astype(arange_like(count * size + 1, lists), lists.dtype),
    )
    masses = xp.reshape(xp.broadcast_to(sample_weight, (count, rows)), (-1,))
    zero = xp.zeros_like(masses[:1])
    found = []
    for part in (masses, xp.reshape(shared, (-1,))):
        sums = xp.concat([zero, xp.cumulative_sum(xp.take(part, order))])
        sums = xp.take(sums, places)
        found.append(sums[1:] - sums[:-1])
    whole, right = (xp.reshape(part, (count, size)) for part in found)
    from_left = xp.concat([xp.zeros_like(right[:, :1]), right[:, :-1]], axis=1)
    return to_numpy(whole - right + from_left)


def _deviation(half_width: float, bad: float) -> float:
    """Standard deviation of good ones of which some are within a half width of their centre."""
    within = min(HALF / (1.0 - bad), 0.99)
    return min(max(half_width / float(ndtri(0.5 * (1.0 + within))), NARROWEST), WIDEST)


@dataclass(frozen=True)
class EnergyHistogram:
    """The energies of a member: of samples, and of samples as shares of their sizes.

    Parameters
    ----------
    energies : LogHistogram
        Of energies, in units of the size of a typical sample.
    shares : LogHistogram
        Of energies over the sizes of their samples.
    larger : callable
        For a logarithm of energies and one of shares, the histogram of the larger of the
        excesses over them. It takes another look at all samples.
    unit : float
        Size of a typical sample.
    features : int
        Of a sample.
    """

    energies: LogHistogram
    relative_energies: LogHistogram
    larger: Callable[[float, float], LogHistogram]
    unit: float
    features: int

    @cached_property
    def typical(self) -> float:
        """An energy that at least half of the samples have at most; the median, two steps on.

        Never below ``TYPICAL_SHARE`` of the size of a typical sample: what is fitted to a tenth
        of its norm is fitted, and telling such samples apart would lock out those that are merely
        slow to converge.
        """
        return self.unit * max(float(np.exp(self.energies.median() + 2 * STEP)), TYPICAL_SHARE)

    @classmethod
    def of(
        cls, energies: Array, sizes: Array, sample_weight: Array, *, unit: float, features: int
    ) -> EnergyHistogram:
        """The profile of samples that are all here."""
        counts = counts_of(energies[None, :], sizes, sample_weight, unit)

        def larger(log: float, log_share: float) -> LogHistogram:
            return LogHistogram(counts_beyond(energies, sizes, sample_weight, unit, log, log_share))

        of_energies, of_shares = (LogHistogram(found) for found in counts[:, 0, :])
        return cls(of_energies, of_shares, larger, unit, features)


def counts_of(energies: Array, sizes: Array, sample_weight: Array, unit: float) -> np.ndarray:
    """Counts of energies (members, rows) and of their shares (2, members, nodes), to add up."""
    return counted(namespace(energies).stack(_logs(energies, sizes, unit)), sample_weight)


def counts_beyond(
    energies: Array, sizes: Array, sample_weight: Array, unit: float, log: float, log_share: float
) -> np.ndarray:
    """Counts of the larger of both excesses over these logarithms, to add up."""
    logs, log_shares = _logs(energies, sizes, unit)
    return counted(namespace(logs).maximum(logs - log, log_shares - log_share), sample_weight)


def _logs(energies: Array, sizes: Array, unit: float) -> tuple[Array, Array]:
    """Logarithms of energies in a unit, and of energies over the sizes of their samples."""
    xp = namespace(energies)
    # A sample of zeros has no energy, and no share either.
    some = sizes > 0
    relative_energies = xp.where(
        some, energies / xp.where(some, sizes, 1 + 0 * sizes), 0 * energies
    )
    return tuple(xp.log(at_least(ratio, TINY)) for ratio in (energies / unit, relative_energies))
