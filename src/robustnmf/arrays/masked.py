r"""Blocks of rows with missing values.

With :math:`o_i` of m entries known, the energy of a row is :math:`m / o_i` times the loss of
the known entries, an estimate for the whole row, and the row counts :math:`o_i / m` times. So
weights depend on how well a row fits on average, not on how much of it is known, and all
known entries of rows that fit equally well have the same weight. Under equal weights this is the
plain sum over the known entries.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robustnmf.arrays.blocks import Block
from robustnmf.arrays.namespace import Array, as_float64, namespace, to_numpy

if TYPE_CHECKING:
    from robustnmf.arrays.missing_entries import MissingEntries


class MaskedBlock(Block):
    """Consecutive rows of a dense X of which only some entries are known.

    Parameters
    ----------
    rows : array (rows, features)
        Missing entries hold any number for which the loss is finite.
    known : array of bool (rows, features)
    scale, row_weight
        As for a dense block.
    """

    def __init__(
        self, rows: Array, known: Array, scale: float = 1.0, row_weight: Array | None = None
    ):
        super().__init__(rows, scale, row_weight)
        self.known = known
        self.filled: Block | None = None

    @property
    def samples(self) -> Block:
        """The block with missing values filled in, once the engine has filled them."""
        assert self.filled is not None
        return self.filled

    @cached_property
    def missing(self) -> MissingEntries | None:
        """A list of the missing entries, where they are few and the rows those of NumPy."""
        from robustnmf.arrays.missing_entries import MissingEntries  # numba takes long to import

        return MissingEntries.of(self.known)

    @cached_property
    def whole(self) -> Array:
        """Factor (rows,) from known entries to whole rows; one where no entry is known."""
        xp = self.xp
        count = xp.sum(xp.astype(self.known, xp.float64), axis=1)
        return self.rows.shape[1] / xp.where(count > 0, count, 0 * count + self.rows.shape[1])

    @property
    def nominal_row_weight(self) -> Array:
        """How many times each row counts if rows of zeros count like others: its known share."""
        return super().nominal_row_weight / self.whole

    @property
    def full_row_weight(self) -> Array:
        return self.row_weight * self.whole

    def as_whole(self, total: Array) -> Array:
        return self.whole * total

    def of_known(self, total: Array) -> Array:
        return total / self.whole

    def sq_distances(self, points: Array) -> Array:
        values, known = self.wide_values(), self.observed(None, points)
        products = self.observed(values, values) @ points.T
        known_sizes = known @ (points**2).T
        return self.sq_norms[:, None] + self.whole[:, None] * (known_sizes - 2.0 * products)

    def sq_residuals(self, index: Array, codes: Array, basis: Array) -> Array:
        take = self.xp.take
        residual = self.take(index) - codes @ basis
        _, squares = self.kernels.hide(residual, take(self.known, index, axis=0))
        return take(self.whole, index) * as_float64(squares)

    def user_rows(self, index: np.ndarray) -> np.ndarray:
        known = to_numpy(self.known)[index]
        return np.where(known, super().user_rows(index), np.nan)

    def part(self, index: Array) -> MaskedBlock:
        """Return a block of the chosen rows in float64."""
        take = self.xp.take
        rows = as_float64(take(self.rows, index, axis=0))
        return MaskedBlock(rows, take(self.known, index, axis=0), self.scale)

    def observed(self, entries: Array | None, like: Array) -> Array:
        """Set missing entries (..., rows, features) to zero; None is ones in the dtype of like."""
        xp = namespace(like)
        if entries is None:
            return xp.astype(self.known, like.dtype)
        return xp.where(self.known, entries, xp.zeros_like(entries))

    def _power_sums(self, degree: float) -> Array:
        return self.row_sums(self._powers(self.wide_values(), degree))

    def row_sums(self, entries: Array) -> Array:
        return super().row_sums(self.observed(entries, entries))

    def project_part(self, part: Array | None, basis: Array) -> Array:
        return self.observed(part, basis) @ self.xp.matrix_transpose(basis)

    def cross_part(self, codes: Array, part: Array | None) -> Array:
        return self.xp.matrix_transpose(codes) @ self.observed(part, codes)

    def grams(self, curvature: Array, basis: Array) -> Array:
        return super().grams(self.observed(curvature, curvature), basis)
