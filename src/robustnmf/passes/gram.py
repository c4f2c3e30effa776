r"""A pass for the squared error with one weight a row.

Weights of rows cancel in the update of the codes, and the energies follow from the
Gram matrix of the basis, so robust and plain NMF cost the same two products,
:math:`X C^T` and :math:`A^T w X`, on a block that is read once.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from robustnmf.arrays import Array, namespace, wide
from robustnmf.losses import Frobenius
from robustnmf.passes._base import Pass
from robustnmf.solvers import Quadratic, nonnegative_least_squares, refine
from robustnmf.weightings import Batch


class GramPass(Pass):
    """What it sees of a block is the projection of the rows on the basis."""

    loss: Frobenius
    quadratic = True

    @cached_property
    def gram(self) -> Array:
        """Gram matrix of the basis, the same for all blocks."""
        return self.basis @ namespace(self.basis).matrix_transpose(self.basis)

    def stay(self, block: Any, codes: Array) -> tuple[Array, Array]:
        return codes, block.project(self.basis)

    def move(self, block: Any, codes: Array, weighting: Batch) -> tuple[Array, Array]:
        seen = block.project(self.basis)
        return self.update(codes, Quadratic(seen, self.gram)), seen

    def encode(self, block: Any, weighting: Batch) -> tuple[Array, Array]:
        xp = namespace(self.basis)
        data = block.wide_values()  # rounding must not tell a row what company it is in
        codes = [_encode(data, wide(self.basis[j, ...])) for j in range(self.basis.shape[0])]
        return self.stay(block, xp.astype(xp.stack(codes), self.basis.dtype, copy=False))

    def energies(self, block: Any, codes: Array, seen: Array) -> Array:
        return self.loss.gram_energies(block, codes, self.basis, seen, self.gram)

    def sums(self, block: Any, codes: Array, weights: Array, seen: Array) -> tuple[Array, Array]:
        weighted = codes * weights
        return block.cross(weighted), namespace(codes).matrix_transpose(weighted) @ codes


def _encode(data: Array, basis: Array) -> Array:
    """Codes (rows, k) by least squares, refined where that helps."""
    xp = namespace(data)
    gram = basis @ basis.T
    codes = nonnegative_least_squares(data @ basis.T, gram)
    residual = data - codes @ basis
    finer = refine(codes, residual @ basis.T, gram)
    before, after = (xp.sum(r**2, axis=1) for r in (residual, data - finer @ basis))
    return xp.where((after < before)[:, None], finer, codes)
