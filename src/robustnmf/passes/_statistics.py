"""What a pass brings home from every block; sums of it are all the basis needs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from robustnmf.arrays import Array, log_gap, namespace
from robustnmf.solvers import Quadratic, Ratio, Terms
from robustnmf.weightings import Tally


@dataclass(frozen=True)
class Local:
    """What stays with a block between passes; members first.

    ``row_weights`` is kept only where weights belong to entries, and is then their
    mean over the row.
    """

    codes: Array
    mixing: Array | None = None
    energies: Array | None = None
    row_weights: Array | None = None

    def keep(self, members: Array) -> Local:
        """The state of these members alone."""
        arrays = {name: value for name, value in vars(self).items() if value is not None}
        take = namespace(self.codes).take
        return replace(self, **{name: take(a, members, axis=0) for name, a in arrays.items()})


@dataclass(frozen=True)
class Statistics:
    """Weighted sums over rows, up to a factor ``exp(log_scale)`` for every member.

    ``positive`` is the weighted Gram matrix of the codes (members, k, k) where that
    says all (``quadratic``), else the positive part itself (members, k, features).
    A pass that only measures leaves both parts out.
    """

    tally: Tally
    log_scale: Array
    negative: Array = None
    positive: Array = None
    quadratic: bool = True

    def merge(self, other: Statistics) -> Statistics:
        """Statistics of the two sets of rows together."""
        tally = self.tally.merge(other.tally)
        if self.negative is None:
            return replace(self, tally=tally)
        log_scale = namespace(self.log_scale).maximum(self.log_scale, other.log_scale)
        mine, theirs = self._at(log_scale), other._at(log_scale)
        return replace(
            self,
            tally=tally,
            log_scale=log_scale,
            negative=mine[0] + theirs[0],
            positive=mine[1] + theirs[1],
        )

    def _at(self, log_scale: Array) -> list[Array]:
        """Both parts in units of a larger ``exp(log_scale)``."""
        xp = namespace(log_scale)
        factor = xp.exp(log_gap(self.log_scale, log_scale))[:, :, None]
        return [xp.astype(factor, a.dtype) * a for a in (self.negative, self.positive)]

    def keep(self, members: Array) -> Statistics:
        """The statistics of these members alone."""
        take = namespace(self.log_scale).take
        if self.negative is None:
            return replace(self, tally=self.tally.keep(members))
        return replace(
            self,
            tally=self.tally.keep(members),
            log_scale=take(self.log_scale, members, axis=0),
            negative=take(self.negative, members, axis=0),
            positive=take(self.positive, members, axis=0),
        )

    def terms(self) -> Terms:
        """What the update of the transposed basis needs."""
        transpose = namespace(self.log_scale).matrix_transpose
        if self.quadratic:
            return Quadratic(transpose(self.negative), self.positive)
        return Ratio(transpose(self.negative), transpose(self.positive))
