r"""A pass for the squared error with one weight a row.

Weights of rows cancel in the update of the codes, and the energies follow from the
Gram matrix of the basis, so robust and plain NMF cost the same two products,
:math:`X C^T` and :math:`A^T w X`, on a block that is read once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from robustnmf.arrays import Array, namespace, wide
from robustnmf.losses import Frobenius
from robustnmf.passes._statistics import Local, Statistics
from robustnmf.solvers import Multiplicative, Quadratic, nonnegative_least_squares, refine
from robustnmf.weightings import Batch


@dataclass(frozen=True)
class GramPass:
    """The visits of a pass to a block, for one basis per member (members, k, features)."""

    loss: Frobenius
    solver: Multiplicative
    exponent: float
    basis: Array
    gram: Array

    @classmethod
    def prepare(
        cls, loss: Any, solver: Multiplicative, exponent: float, basis: Array, previous: Array
    ) -> GramPass:
        """What all blocks share: the Gram matrix of the basis."""
        gram = basis @ namespace(basis).matrix_transpose(basis)
        return cls(loss, solver, exponent, basis, gram)

    def stay(self, block: Any, codes: Array) -> tuple[Array, Array]:
        """The codes as they are, and the projection of the rows on the basis."""
        return codes, block.project(self.basis)

    def move(self, block: Any, codes: Array, weighting: Batch) -> tuple[Array, Array]:
        """Updated codes, and the projection of the rows on the basis."""
        seen = block.project(self.basis)
        return self.solver.step(codes, Quadratic(seen, self.gram), self.exponent), seen

    def encode(self, block: Any, weighting: Batch) -> tuple[Array, Array]:
        """Best codes for this basis, every row for itself, and the projection."""
        xp = namespace(self.basis)
        data = block.wide_values()  # rounding must not tell a row what company it is in
        codes = [_encode(data, wide(self.basis[j, ...])) for j in range(self.basis.shape[0])]
        return self.stay(block, xp.astype(xp.stack(codes), self.basis.dtype, copy=False))

    def measure(
        self, block: Any, local: Local, weighting: Batch, seen: Array
    ) -> tuple[Local, Statistics]:
        """Energies of a block and their tally, without the sums for the basis."""
        local, statistics, _ = self._weigh(block, local, weighting, seen)
        return local, statistics

    def gather(
        self, block: Any, local: Local, weighting: Batch, seen: Array
    ) -> tuple[Local, Statistics]:
        """Energies of a block, and the weighted sums that the basis update needs."""
        local, statistics, weights = self._weigh(block, local, weighting, seen)
        xp = namespace(local.codes)
        weighted = local.codes * xp.astype(weights, local.codes.dtype)[:, :, None]
        return local, replace(
            statistics,
            negative=block.cross(weighted),
            positive=xp.matrix_transpose(weighted) @ local.codes,
        )

    def energies(self, block: Any, codes: Array, seen: Array) -> Array:
        """Energy of every row (members, rows)."""
        return self.loss.gram_energies(block, codes, self.basis, seen, self.gram)

    def row_values(self, block: Any, codes: Array, seen: Array, weighting: Batch) -> Array:
        """What every row would minimise by itself (members, rows)."""
        return self.energies(block, codes, seen)

    def _weigh(
        self, block: Any, local: Local, weighting: Batch, seen: Array
    ) -> tuple[Local, Statistics, Array]:
        energies = self.energies(block, local.codes, seen)
        weighed = weighting.weigh(energies, block.mass)
        statistics = Statistics(weighed.tally, weighed.log_scale)
        return replace(local, energies=energies), statistics, weighed.weights


def _encode(data: Array, basis: Array) -> Array:
    """Codes (rows, k) by least squares, refined where that helps."""
    xp = namespace(data)
    gram = basis @ basis.T
    codes = nonnegative_least_squares(data @ basis.T, gram)
    residual = data - codes @ basis
    finer = refine(codes, residual @ basis.T, gram)
    before, after = (xp.sum(r**2, axis=1) for r in (residual, data - finer @ basis))
    return xp.where((after < before)[:, None], finer, codes)
