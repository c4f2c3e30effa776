r"""A pass for the squared error with one weight a row, where entries of X are not known.

With M one where an entry is known and zero where it is not (X is zero there too),

.. math::

    C \leftarrow C \odot \frac{A^T w X}{A^T w (M \odot A C)}, \qquad
    A \leftarrow A \odot \frac{X C^T}{(M \odot A C)\, C^T}

Every row has a Gram matrix of its own now, so the approximation is formed instead: six
products with a block where complete rows take two.
"""

from __future__ import annotations

from typing import Any

from robustnmf.arrays import Array, hide, namespace, wide
from robustnmf.losses import Frobenius
from robustnmf.passes._approximation import ApproximationPass
from robustnmf.solvers import Ratio
from robustnmf.weightings import Batch


class MaskedPass(ApproximationPass):
    """What it sees is the approximation, zero in the holes, and the projection of the rows."""

    loss: Frobenius
    hole = 0.0

    def stay(self, block: Any, codes: Array) -> tuple[Array, tuple[Array, Array]]:
        return codes, (self._approximation(block, codes), block.project(self.basis))

    def move(self, block: Any, codes: Array, weighting: Batch) -> tuple[Array, tuple[Array, Array]]:
        back = namespace(codes).matrix_transpose(self.basis)
        projected = block.project(self.basis)
        positive = self.paid(block, codes, self._approximation(block, codes) @ back)
        codes = self.update(codes, Ratio(projected, positive))
        return codes, (self._approximation(block, codes), projected)

    def energies(self, block: Any, codes: Array, seen: tuple[Array, Array]) -> Array:
        approximation, projected = (wide(a) for a in seen)
        squares = namespace(codes).vecdot(approximation, approximation)
        return self.loss.expanded_energies(block, codes, self.basis, projected, squares)

    def row_values(
        self, block: Any, codes: Array, seen: tuple[Array, Array], weighting: Batch
    ) -> Array:
        return self.penalised(block, codes, self.energies(block, codes, seen)) / block.whole

    def sums(
        self, block: Any, codes: Array, weights: Array, seen: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        weighted = codes * weights
        return block.cross(weighted), namespace(codes).matrix_transpose(weighted) @ seen[0]

    def _approximation(self, block: Any, codes: Array) -> Array:
        return hide(block.approximation(codes, self.basis), block.known)
