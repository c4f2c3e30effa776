r"""A pass for losses that have a majorant of weighted squares, with one weight per row.

With weights of entries :math:`\Omega` at the current approximation and weights of rows w, the
majorant of the loss is the squared error of a repaired table,

.. math:: \tilde X = A C + \Omega \odot (X - A C)

with the same Gram matrices as plain least squares. Both factors are updated as for the
squared error, with four products with a block instead of two.
"""

from __future__ import annotations

from typing import NamedTuple

from robustnmf.arrays import Array, Block, at_least, namespace
from robustnmf.loop.passes._approximation import ApproximationPass
from robustnmf.losses import ReweightedLoss
from robustnmf.weightings import Batch


class ReweightedCache(NamedTuple):
    """Residuals times their weights (members, *values), and losses of rows (members, rows)."""

    residuals: Array
    losses: Array


class ReweightedPass(ApproximationPass):
    """Pass with weights of entries from the loss, and weights of rows from the weighting."""

    def evaluate(self, block: Block, codes: Array) -> tuple[Array, ReweightedCache]:
        assert isinstance(self.loss, ReweightedLoss)
        approximation = block.approximation(codes, self.basis)
        return codes, ReweightedCache(*self.loss.weighted_residuals(block, approximation))

    def update_codes(
        self, block: Block, codes: Array, weighting: Batch
    ) -> tuple[Array, ReweightedCache]:
        _, cache = self.evaluate(block, codes)
        descent = block.project_part(cache.residuals, self.basis)
        codes = self.step(block, codes, *_parts(descent, codes @ self.gram))
        return self.evaluate(block, codes)

    def losses(self, block: Block, codes: Array, cache: Array | ReweightedCache) -> Array:
        if isinstance(cache, ReweightedCache):
            return cache.losses
        return super().losses(block, codes, cache)  # an approximation, while codes are encoded

    def sums(
        self, block: Block, codes: Array, weights: Array, cache: ReweightedCache
    ) -> tuple[Array, Array]:
        weighted = codes * weights
        gram = namespace(codes).matrix_transpose(weighted) @ codes
        return _parts(block.cross_part(weighted, cache.residuals), gram @ self.basis)


def _parts(descent: Array, fitted: Array) -> tuple[Array, Array]:
    """Return two nonnegative arrays whose difference is the negative gradient.

    Both contain the approximation, because solvers treat rows with two zeros as unknown.
    """
    return at_least(descent, 0.0) + fitted, at_least(-descent, 0.0) + fitted
