"""What a weighting computes from a block of energies: weights, and sums that give the objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from robustnmf.arrays import Array, is_capturing, log_gap, namespace

SCALE_STEP = 16.0
"""Distance between two values of ``log_scale``: no weight underflows in float32."""


@dataclass(frozen=True)
class ObjectiveSums:
    """Sums over rows that determine the objective; each field is (members, 1).

    A soft minimum has ``excess = sum m_i (exp(s_i - shift) - 1)`` for rows of weight ``m_i``: with
    the ones taken out, the mean of nearly equal terms loses no digits. A separable
    sum has ``shift = 0`` and ``excess`` the sum itself.
    """

    shift: Array
    excess: Array
    count: Array

    def merge(self, other: ObjectiveSums) -> ObjectiveSums:
        """Return the sums over the rows of both."""
        xp = namespace(self.shift)
        if not is_capturing() and xp.all(self.shift == other.shift):
            return ObjectiveSums(self.shift, self.excess + other.excess, self.count + other.count)
        shift = xp.maximum(self.shift, other.shift)
        parts = [t._shifted(shift) for t in (self, other)]
        return ObjectiveSums(shift, parts[0] + parts[1], self.count + other.count)

    def _shifted(self, shift: Array) -> Array:
        """Return ``excess`` (members, 1) for another shift."""
        xp = namespace(shift)
        gap = log_gap(self.shift, shift)
        return xp.exp(gap) * self.excess + self.count * xp.expm1(gap)

    def discount(self, factor: float) -> ObjectiveSums:
        """Return the sums with the weights of all rows multiplied by a factor."""
        return ObjectiveSums(self.shift, factor * self.excess, factor * self.count)

    def part(self, members: slice) -> ObjectiveSums:
        """Return the sums of consecutive members."""
        if members.start == 0 and members.stop == self.shift.shape[0]:
            return self
        return ObjectiveSums(
            self.shift[members, :], self.excess[members, :], self.count[members, :]
        )

    def keep(self, members: Array) -> ObjectiveSums:
        """Return the sums of the members with these indices."""
        take = namespace(self.shift).take
        return ObjectiveSums(
            *(take(a, members, axis=0) for a in (self.shift, self.excess, self.count))
        )

    @property
    def log_mean_exp(self) -> Array:
        """Logarithm of the mean of ``exp(s_i)``, accurate where all ``s_i`` are nearly equal."""
        return self.shift + namespace(self.shift).log1p(self.excess / self.count)

    @property
    def log_sum_exp(self) -> Array:
        """Logarithm of the sum of ``exp(s_i)``, accurate where one term dominates."""
        return self.shift + namespace(self.shift).log(self.excess + self.count)


class BlockWeights(NamedTuple):
    """Weights (members, rows) of a block in units of ``exp(log_scale)``, and its objective sums."""

    weights: Array
    log_scale: Array
    objective_sums: ObjectiveSums


def round_scale(log_top: Array) -> Array:
    """Round the logarithm of the largest weight up to a multiple of ``SCALE_STEP``.

    Blocks with weights of similar size then have the same scale, and their sums just add up.
    """
    return SCALE_STEP * namespace(log_top).ceil(log_top / SCALE_STEP)
