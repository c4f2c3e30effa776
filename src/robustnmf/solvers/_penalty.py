r"""Penalty of the codes: elastic net, and overlap of components.

.. math::

    r(a) = \lambda_1 \sum_j a_j + \frac{\lambda_2}{2} \sum_j a_j^2
    + \frac{s}{2} \sum_{j \ne l} \nu_j a_j \nu_l a_l

for the codes a of one row, in the units of the parts of the gradient of the loss; s is a
factor of the row (``row_factors``). All terms have nonnegative gradients. Multiplicative
updates add them to the positive part of the gradient of the loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from robustnmf.arrays import (
    Array,
    Block,
    as_float64,
    at_least,
    floored,
    identity_like,
    namespace,
    to_device_of,
)


@dataclass(frozen=True)
class Penalty:
    """Penalty of codes (members, rows, k).

    Parameters
    ----------
    unit : energy of one unit of the penalty
    degree : degree of homogeneity of the loss
    lasso, ridge : the two factors lambda
    overlap_penalty : array (members, k), optional; the factors nu of the overlap term
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
        """Whether there are quadratic terms."""
        return self.ridge > 0 or self.overlap_penalty is not None

    def to_device_of(self, like: Array) -> Penalty:
        """Return the penalty with its arrays on the device of another array."""
        if self.overlap_penalty is None:
            return self
        return replace(self, overlap_penalty=to_device_of(like, self.overlap_penalty))

    def of(self, member: int) -> Penalty:
        """Return the penalty of one member."""
        if self.overlap_penalty is None:
            return self
        return replace(self, overlap_penalty=self.overlap_penalty[member : member + 1, :])

    def energies(self, block: Block, codes: Array) -> Array:
        """Compute the penalty of every row (members, rows), float64, in units of energy."""
        xp, codes = namespace(codes), as_float64(codes)
        total = self.lasso * xp.sum(codes, axis=-1) + 0.5 * self.ridge * xp.sum(codes**2, axis=-1)
        if self.overlap_penalty is not None:
            parts = codes * as_float64(self.overlap_penalty)[:, None, :]
            overlap = xp.sum(parts * others(parts), axis=-1)
            total = total + 0.5 * self.row_factors(block) * overlap
        return self.unit * total

    def gradient(self, block: Block, codes: Array) -> Array:
        """Compute the gradient with respect to the codes (members, rows, k), nonnegative."""
        xp = namespace(codes)
        gradient = self.lasso + self.ridge * codes
        if self.overlap_penalty is None:
            return gradient
        factors = self.overlap_penalty[:, None, :]
        row_factors = xp.astype(self.row_factors(block), codes.dtype)[:, None]
        return gradient + row_factors * factors * others(factors * codes)

    def gram(self, like: Array, block: Block | None = None) -> Array:
        """Return Gram matrices (members, rows or 1, k, k) of quadratic terms.

        With a block, there is one per row of one member, or else one per member for row factors
        of 1.
        """
        identity = identity_like(like)
        own = self.ridge * identity[None, ...]
        if self.overlap_penalty is None:
            return own
        factors = self.overlap_penalty
        pairs = (1 - identity) * (factors[:, :, None] * factors[:, None, :])
        if block is not None:
            by_row = namespace(like).astype(self.row_factors(block), like.dtype)
            pairs = by_row[:, None, None] * pairs
        return own + pairs

    def row_factors(self, block: Block) -> Array:
        """Compute the factor s of every row (rows,): its size for the loss over its squared norm.

        With this factor, the overlap term scales with X in the same way as the loss.
        """
        if self.degree == 2:
            return namespace(block.sq_norms).ones_like(block.sq_norms)
        return block.row_sizes(self.degree) / floored(block.sq_norms)


def others(parts: Array) -> Array:
    """Compute, for every component, the sum of all others along the last axis; never negative."""
    xp = namespace(parts)
    return at_least(xp.sum(parts, axis=-1, keepdims=True) - parts, 0.0)
