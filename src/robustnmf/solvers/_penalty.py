r"""What codes cost beside their loss: absolute values, squares, and keeping company.

.. math::

    r(a) = \lambda_1 \sum_j a_j + \frac{\lambda_2}{2} \sum_j a_j^2
    + \frac{s}{2} \sum_{j \ne l} \nu_j a_j \nu_l a_l

for the codes a of one row, in the units in which the gradient of the loss is split; s is a
number of the row. All terms have gradients that are nonnegative, so that they join the
positive part of the gradient of the loss in multiplicative updates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from robustnmf.arrays import Array, at_least, floored, identity_like, namespace, to_device_of


@dataclass(frozen=True)
class Penalty:
    """Penalty of codes (members, rows, k).

    Parameters
    ----------
    unit : energy of one unit of the penalty
    degree : of homogeneity, of the loss
    lasso, ridge : the two factors lambda
    company : array (members, k), optional; the factors nu, for which codes pay together
    """

    unit: float
    degree: float
    lasso: float = 0.0
    ridge: float = 0.0
    overlap_penalty: Array | None = None

    def __bool__(self) -> bool:
        return self.lasso > 0 or self.curved

    @property
    def curved(self) -> bool:
        """Whether there is more than a linear term."""
        return self.ridge > 0 or self.overlap_penalty is not None

    def to_device_of(self, like: Array) -> Penalty:
        """The same penalty where another array is."""
        return (
            self
            if self.overlap_penalty is None
            else replace(self, overlap_penalty=to_device_of(like, self.overlap_penalty))
        )

    def of(self, member: int) -> Penalty:
        """The penalty of one member alone."""
        if self.overlap_penalty is None:
            return self
        overlap_penalty = self.overlap_penalty[member : member + 1, :]
        return Penalty(self.unit, self.degree, self.lasso, self.ridge, overlap_penalty)

    def energies(self, block: Any, codes: Array) -> Array:
        """What every row pays (members, rows), float64, in units of energy."""
        xp = namespace(codes)
        codes = xp.astype(codes, xp.float64, copy=False)
        total = self.lasso * xp.sum(codes, axis=-1) + 0.5 * self.ridge * xp.sum(codes**2, axis=-1)
        if self.overlap_penalty is not None:
            parts = codes * xp.astype(self.overlap_penalty, xp.float64)[:, None, :]
            together = xp.sum(parts * others(parts), axis=-1)
            total = total + 0.5 * self.shares(block) * together
        return self.unit * total

    def gradient(self, block: Any, codes: Array) -> Array:
        """Gradient with respect to the codes, nonnegative."""
        xp = namespace(codes)
        gradient = self.lasso + self.ridge * codes
        if self.overlap_penalty is None:
            return gradient
        factors = self.overlap_penalty[:, None, :]
        shares = xp.astype(self.shares(block), codes.dtype)[:, None]
        return gradient + shares * factors * others(factors * codes)

    def gram(self, like: Array) -> Array:
        """Gram matrix (members or 1, k, k) of the squares, where rows have no shares."""
        own, pairs = self._squares(like)
        return own if pairs is None else own + pairs

    def grams(self, block: Any, like: Array) -> Array:
        """Gram matrices (rows or 1, k, k) of the squares, for one member."""
        own, pairs = self._squares(like)
        if pairs is None:
            return own
        return own + namespace(like).astype(self.shares(block), like.dtype)[:, None, None] * pairs

    def _squares(self, like: Array) -> tuple[Array, Array | None]:
        """What components pay for themselves and in pairs, as Gram matrices."""
        identity = identity_like(like)
        own = self.ridge * identity[None, ...]
        if self.overlap_penalty is None:
            return own, None
        return own, (1 - identity) * (
            self.overlap_penalty[:, :, None] * self.overlap_penalty[:, None, :]
        )

    def shares(self, block: Any) -> Array:
        """The number s of every row: its size for the loss over its squared norm."""
        if self.degree == 2:
            return namespace(block.sq_norms).ones_like(block.sq_norms)
        return block.row_sizes(self.degree) / floored(block.sq_norms)


def others(parts: Array) -> Array:
    """For every component the sum of the other ones, along the last axis; never negative."""
    xp = namespace(parts)
    return at_least(xp.sum(parts, axis=-1, keepdims=True) - parts, 0.0)
