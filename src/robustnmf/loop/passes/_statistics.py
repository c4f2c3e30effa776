"""Sums over blocks from which the basis is updated."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from robustnmf.arrays import Array, log_gap, namespace
from robustnmf.solvers import Quadratic, Ratio, Terms
from robustnmf.weightings import ObjectiveSums


@dataclass(frozen=True)
class Statistics:
    """Weighted sums over rows, up to a factor ``exp(log_scale)`` for every member.

    The first of ``sums`` is the negative part of the gradient (members, k, features). If the loss
    is quadratic in the basis (``quadratic``), the second is the weighted Gram matrix of the codes
    (members, k, k). Otherwise it is the positive part, and the Gram matrix is third if a solver or
    penalty needs it. A pass that only measures has no sums.
    """

    objective_sums: ObjectiveSums
    log_scale: Array
    sums: tuple[Array, ...] = ()
    quadratic: bool = True

    def merge(self, other: Statistics) -> Statistics:
        """Return the statistics of the rows of both objects."""
        objective_sums = self.objective_sums.merge(other.objective_sums)
        if not self.sums:
            return replace(self, objective_sums=objective_sums)
        log_scale = namespace(self.log_scale).maximum(self.log_scale, other.log_scale)
        pairs = zip(self._at(log_scale), other._at(log_scale), strict=True)
        sums = tuple(mine + theirs for mine, theirs in pairs)
        return replace(self, objective_sums=objective_sums, log_scale=log_scale, sums=sums)

    def discount(self, factor: float) -> Statistics:
        """Return the statistics with the weights of all rows multiplied by a factor."""
        return replace(
            self,
            objective_sums=self.objective_sums.discount(factor),
            log_scale=self.log_scale + math.log(factor),
        )

    def _at(self, log_scale: Array) -> list[Array]:
        """Return the sums in units of a larger ``exp(log_scale)``."""
        xp = namespace(log_scale)
        factor = xp.exp(log_gap(self.log_scale, log_scale))[:, :, None]
        return [xp.astype(factor, a.dtype) * a for a in self.sums]

    def keep(self, members: Array) -> Statistics:
        """Return the statistics of the members with these indices."""
        take = namespace(self.log_scale).take
        return replace(
            self,
            objective_sums=self.objective_sums.keep(members),
            log_scale=take(self.log_scale, members, axis=0),
            sums=tuple(take(a, members, axis=0) for a in self.sums),
        )

    def terms(self) -> Terms:
        """Return the terms of the update of the transposed basis (members, features, k)."""
        transpose = namespace(self.log_scale).matrix_transpose
        if self.quadratic:
            return Quadratic(transpose(self.sums[0]), self.sums[1])
        gram = self.sums[2] if len(self.sums) > 2 else None
        return Ratio(transpose(self.sums[0]), transpose(self.sums[1]), gram)

    @property
    def codes_gram(self) -> Array:
        """Weighted Gram matrix of the codes (members, k, k)."""
        return self.sums[1] if self.quadratic else self.sums[2]
