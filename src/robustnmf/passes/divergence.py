r"""A pass for any loss with one weight a row.

With N and P the parts of the gradient of the loss with respect to the approximation,

.. math::

    C \leftarrow C \odot \left(\frac{A^T w N}{A^T w P}\right)^e, \qquad
    A \leftarrow A \odot \left(\frac{N C^T}{P C^T}\right)^e

The weights of rows cancel in the update of the codes, as they do for the squared error.
"""

from __future__ import annotations

from typing import Any

from robustnmf.arrays import Array, namespace
from robustnmf.passes._approximation import ApproximationPass
from robustnmf.solvers import Ratio
from robustnmf.weightings import Batch


class DivergencePass(ApproximationPass):
    """What it sees of a block is its approximation; weights belong to rows."""

    def move(self, block: Any, codes: Array, weighting: Batch) -> tuple[Array, Array]:
        xp = namespace(codes)
        parts = self.loss.split(block.values(), codes @ self.basis)
        ones = xp.sum(self.basis, axis=-1)[:, None, :]
        back = xp.matrix_transpose(self.basis)
        terms = Ratio(*(ones if part is None else part @ back for part in parts))
        return self.stay(block, self.update(codes, terms))

    def sums(self, block: Any, codes: Array, weights: Array, seen: Array) -> tuple[Array, Array]:
        xp = namespace(codes)
        back = xp.matrix_transpose(codes * weights)
        ones = xp.sum(back, axis=-1, keepdims=True)
        negative, positive = self.loss.split(block.values(), seen)
        return (
            ones if negative is None else back @ negative,
            ones if positive is None else back @ positive,
        )

    def contributions(self, weighting: Batch, entries: Array) -> tuple[Array, Array]:
        return entries, namespace(entries).ones_like(entries)
