"""State of a block between passes, and sums over blocks from which the basis is updated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from robustnmf.arrays import Array, log_gap, namespace
from robustnmf.solvers import Quadratic, Ratio, Terms
from robustnmf.weightings import ObjectiveSums


@dataclass(frozen=True)
class BlockState:
    """Arrays that belong to the rows of a block between passes; members are the first axis.

    ``energies`` (members, rows) are the losses plus the penalty of the codes; ``losses`` are kept
    too where there is a penalty. ``row_weights`` are the means of the weights of entries over each
    row, where entries have weights. ``before`` are the codes before their last step, where
    codes are extrapolated.
    """

    OF_CODES: ClassVar[tuple[str, ...]] = ("codes", "before", "mixing")
    """Fields with a row of k numbers for every sample and member: the large ones."""

    codes: Array
    before: Array | None = None
    mixing: Array | None = None
    energies: Array | None = None
    losses: Array | None = None
    row_weights: Array | None = None

    def keep(self, members: Array) -> BlockState:
        """Return the state of the members with these indices."""
        take = namespace(self.codes).take
        return self._each(lambda name, a: take(a, members, axis=0))

    def restored(self, members: Array, before: BlockState) -> BlockState:
        """Return the state with the members in a mask taken from an earlier state."""
        xp = namespace(self.codes)

        def chosen(name: str, a: Array) -> Array:
            mask = xp.reshape(members, (-1,) + (1,) * (a.ndim - 1))
            return xp.where(mask, getattr(before, name), a)

        return self._each(chosen)

    def rows(self, at: slice) -> BlockState:
        """Return the state of a slice of rows."""
        return self._each(lambda name, a: a[:, at, ...])

    @classmethod
    def joined(cls, parts: Sequence[BlockState]) -> BlockState:
        """Concatenate the states of consecutive rows."""
        concat = namespace(parts[0].codes).concat
        return parts[0]._each(lambda name, _: concat([getattr(p, name) for p in parts], axis=1))

    def _each(self, function: Callable[[str, Array], Array]) -> BlockState:
        arrays = {name: value for name, value in vars(self).items() if value is not None}
        return replace(self, **{name: function(name, a) for name, a in arrays.items()})


@dataclass(frozen=True)
class Statistics:
    """Weighted sums over rows, up to a factor ``exp(log_scale)`` for every member.

    ``sums`` are the negative part of the gradient (members, k, features); the weighted Gram
    matrix of the codes (members, k, k) where the loss is quadratic in the basis (``quadratic``),
    else the positive part, followed by the Gram matrix where a solver or penalty needs it. A pass
    that only measures has no sums.
    """

    objective_sums: ObjectiveSums
    log_scale: Array
    sums: tuple[Array, ...] = ()
    quadratic: bool = True

    def merge(self, other: Statistics) -> Statistics:
        """Return the statistics of the rows of both."""
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
