r"""A pass for the squared error with one weight a row, where entries of X are missing.

With M one where an entry is known and zero where it is not (X is zero there too),

.. math::

    C \leftarrow C \odot \frac{A^T w X}{A^T w (M \odot A C)}, \qquad
    A \leftarrow A \odot \frac{X C^T}{(M \odot A C)\, C^T}

Every row has a Gram matrix of its own now, so the approximation is formed instead: six
products with a block where complete rows take two.
"""

from __future__ import annotations

from typing import NamedTuple

from robustnmf.arrays import Array, Block, MaskedBlock, as_float64, namespace
from robustnmf.passes._approximation import ApproximationPass
from robustnmf.solvers import Ratio
from robustnmf.weightings import Batch


class MaskedCache(NamedTuple):
    """Approximation with zeros for missing entries, its squared row norms, and ``X basis^T``."""

    approximation: Array
    squares: Array
    projected: Array


class MaskedPass(ApproximationPass):
    """Pass for the squared error of rows with missing entries."""

    fill_value = 0.0

    def evaluate(self, block: Block, codes: Array) -> tuple[Array, MaskedCache]:
        return codes, MaskedCache(*self._approximation(block, codes), block.project(self.basis))

    def update_codes(
        self, block: Block, codes: Array, weighting: Batch
    ) -> tuple[Array, MaskedCache]:
        transposed = namespace(codes).matrix_transpose(self.basis)
        projected = block.project(self.basis)
        positive = self._approximation(block, codes)[0] @ transposed
        positive = self.add_penalty_gradient(block, codes, positive)
        terms = Ratio(projected, positive, self.bound, present=self.present)
        codes = self.update(codes, terms)
        return codes, MaskedCache(*self._approximation(block, codes), projected)

    def energies(self, block: Block, codes: Array, cache: MaskedCache) -> Array:
        inner = namespace(codes).vecdot(as_float64(codes), as_float64(cache.projected))
        rest = as_float64(cache.squares) - 2 * inner
        return self.loss.expanded_energies(block, codes, self.basis, rest)

    def row_values(self, block: Block, codes: Array, cache: MaskedCache, weighting: Batch) -> Array:
        return block.of_known(self.penalised(block, codes, self.energies(block, codes, cache)))

    def sums(
        self, block: Block, codes: Array, weights: Array, cache: MaskedCache
    ) -> tuple[Array, Array]:
        weighted = block.kernels.scaled_rows(codes, weights)
        transposed = namespace(codes).matrix_transpose(weighted)
        return block.cross(weighted), transposed @ cache.approximation

    def _approximation(self, block: Block, codes: Array) -> tuple[Array, Array]:
        """Compute the approximation with zeros for missing entries, and its squared row norms."""
        assert isinstance(block, MaskedBlock)
        return block.kernels.hide(block.approximation(codes, self.basis), block.known)
