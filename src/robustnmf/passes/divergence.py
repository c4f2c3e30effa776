r"""A pass for any loss with one weight a row.

With N and P the parts of the gradient of the loss with respect to the approximation,

.. math::

    C \leftarrow C \odot \left(\frac{A^T w N}{A^T w P}\right)^e, \qquad
    A \leftarrow A \odot \left(\frac{N C^T}{P C^T}\right)^e

The weights of rows cancel in the update of the codes, as they do for the squared error.
"""

from __future__ import annotations

from robustnmf.arrays import Array, Block
from robustnmf.passes._approximation import ApproximationPass
from robustnmf.solvers import Ratio
from robustnmf.weightings import Batch


class DivergencePass(ApproximationPass):
    """Pass with one weight for each row; its cache is the approximation."""

    def update_codes(self, block: Block, codes: Array, weighting: Batch) -> tuple[Array, Array]:
        parts = self.loss.split_block(block, block.approximation(codes, self.basis))
        negative, positive = (block.project_part(part, self.basis) for part in parts)
        terms = Ratio(negative, self.add_penalty_gradient(block, codes, positive))
        return self.evaluate(block, self.update(codes, terms))

    def sums(self, block: Block, codes: Array, weights: Array, cache: Array) -> tuple[Array, Array]:
        negative, positive = self.loss.split_block(block, cache)
        weighted = block.kernels.scaled_rows(codes, weights)
        return block.cross_part(weighted, negative), block.cross_part(weighted, positive)
