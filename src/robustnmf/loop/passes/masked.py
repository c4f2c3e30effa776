r"""A pass for the squared error with one weight per row, for X with missing entries.

Let M be one for known entries and zero for missing entries, for which X is zero too. Then

.. math::

    C \leftarrow C \odot \frac{A^T w X}{A^T w (M \odot A C)}, \qquad
    A \leftarrow A \odot \frac{X C^T}{(M \odot A C)\, C^T}

Every row has its own Gram matrix, so the approximation is formed instead: six
products with a block, compared with two for complete rows.

Coordinate sweeps replace missing entries by the approximation, and then need one Gram matrix.
If few entries are missing, they need the approximation at these entries only, and two products
with a block are enough:

.. math:: M \odot A C = A C - (1 - M) \odot A C
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robustnmf.arrays import Array, Block, MaskedBlock, SparseBlock, as_float64, namespace
from robustnmf.loop.passes._approximation import ApproximationPass
from robustnmf.solvers import Quadratic
from robustnmf.weightings import Batch

LARGE = 16.0
"""If the squared norm of the approximation at missing entries exceeds that of the row by this
factor, the energy is computed from the known entries: a difference would amplify rounding errors.
"""


class MaskedCache(NamedTuple):
    """Approximation, its squares summed over rows, and ``X basis^T``.

    The approximation has zeros for missing entries, or is a list (members, missing) of only these.
    """

    approximation: Array
    squares: Array
    projected: Array


class MaskedPass(ApproximationPass):
    """Pass for the squared error of rows with missing entries."""

    fill_value = 0.0

    def evaluate(self, block: Block, codes: Array) -> tuple[Array, MaskedCache]:
        return codes, self._cache(block, codes, block.project(self.basis))

    def update_codes(
        self, block: Block, codes: Array, weighting: Batch
    ) -> tuple[Array, MaskedCache]:
        projected = block.project(self.basis)
        missing = self._missing(block)
        if missing is not None:
            codes = self._sweep(missing, codes, projected)
        else:
            transposed = namespace(codes).matrix_transpose(self.basis)
            positive = self._approximation(block, codes)[0] @ transposed
            codes = self.step(block, codes, projected, positive)
        return codes, self._cache(block, codes, projected)

    def energies(self, block: Block, codes: Array, cache: MaskedCache) -> Array:
        if self._missing(block) is not None:
            rest = self._rest(block, codes, cache)
        else:
            inner = namespace(codes).vecdot(as_float64(codes), as_float64(cache.projected))
            rest = as_float64(cache.squares) - 2 * inner
        return self.loss.expanded_energies(block, codes, self.basis, rest)

    def row_values(self, block: Block, codes: Array, cache: MaskedCache, weighting: Batch) -> Array:
        return block.of_known(self.penalised(block, codes, self.energies(block, codes, cache)))

    def sums(
        self, block: Block, codes: Array, weights: Array, cache: MaskedCache
    ) -> tuple[Array, Array]:
        weighted = codes * weights
        transposed = namespace(codes).matrix_transpose(weighted)
        missing = self._missing(block)
        if missing is None:
            return block.cross(weighted), transposed @ cache.approximation
        assert isinstance(block, MaskedBlock)
        at_missing = missing.cross_part(weighted, cache.approximation)
        known = (transposed @ codes) @ self.basis - at_missing
        known[:, :, block.unknown] = 0.0  # exactly, without rounding errors
        return block.cross(weighted), known

    def _missing(self, block: Block) -> SparseBlock | None:
        """Return the missing entries if steps need the approximation only there, or None."""
        assert isinstance(block, MaskedBlock)
        return block.missing if self.bounded and not self.penalty else None

    def _cache(self, block: Block, codes: Array, projected: Array) -> MaskedCache:
        """Compute the terms of the approximation that energies and sums need."""
        missing = self._missing(block)
        if missing is None:
            return MaskedCache(*self._approximation(block, codes), projected)
        values = missing.approximation(codes, self.basis)
        return MaskedCache(values, missing.row_sums(as_float64(values) ** 2), projected)

    def _sweep(self, missing: SparseBlock, codes: Array, projected: Array) -> Array:
        """Update codes (members, rows, k), with missing entries replaced by the approximation."""
        filled = missing.project_part(missing.approximation(codes, self.basis), self.basis)
        linear = filled + projected
        # Zeros are the best codes, and the only ones that do not depend on the missing entries.
        linear[~projected.any(axis=-1)] = 0.0
        return self.update(codes, Quadratic(linear, self.gram, present=self.present))

    def _rest(self, block: Block, codes: Array, cache: MaskedCache) -> Array:
        """Compute the terms of energies (members, rows) that depend on codes."""
        rest = block.kernels.quadratic_part(codes, cache.projected, self.gram) - cache.squares
        large = cache.squares > LARGE * block.of_known(block.sq_norms)
        for member in np.flatnonzero(large.any(axis=1)):
            rows = np.flatnonzero(large[member])
            part = codes[member, rows]
            assert isinstance(block, MaskedBlock)
            approximation = part @ self.basis[member]
            squares = block.kernels.hide(approximation, block.known[rows])[1]
            inner = np.vecdot(as_float64(part), as_float64(cache.projected[member, rows]))
            rest[member, rows] = as_float64(squares) - 2 * inner
        return rest

    def _approximation(self, block: Block, codes: Array) -> tuple[Array, Array]:
        """Compute the approximation with zeros for missing entries, and its squared row norms."""
        assert isinstance(block, MaskedBlock)
        return block.kernels.hide(block.approximation(codes, self.basis), block.known)
