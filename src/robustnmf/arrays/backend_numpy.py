"""Operations of a pass on NumPy arrays, by loops that numba compiles.

In compiled code the rows of a tile are the lanes of vectors, and stay in cache from the first
sweep to the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robustnmf.arrays import divergences
from robustnmf.arrays.backend import Kernels, active_components
from robustnmf.arrays.kernels import (
    extrapolate_entries,
    hide_and_square,
    multiplicative_step_entries,
    quadratic_tiles,
    scale_rows,
    sweep_tiles,
)
from robustnmf.arrays.namespace import noise, smallest
from robustnmf.arrays.pivoting import pivot_rows

if TYPE_CHECKING:
    from robustnmf.arrays.blocks import Block


class NumpyKernels(Kernels):
    """Compiled loops over rows; products are those of BLAS and SciPy."""

    def sweep_coordinates(
        self,
        factor: np.ndarray,
        linear: np.ndarray,
        gram: np.ndarray,
        sweeps: int,
        fixed: int = 0,
        present: np.ndarray | None = None,
    ) -> np.ndarray:
        present = active_components(gram) if present is None else present
        # With the memory layout of the factor, also where that is a transposed view.
        updated = np.empty_like(factor)
        sweep_tiles(factor, linear, gram, present, sweeps, fixed, updated)
        return updated

    def quadratic_part(self, codes: np.ndarray, linear: np.ndarray, gram: np.ndarray) -> np.ndarray:
        out = np.empty(codes.shape[:2])
        quadratic_tiles(codes, linear, gram, out)
        return out

    def extrapolate(
        self, factor: np.ndarray, before: np.ndarray, momentum: np.ndarray
    ) -> np.ndarray:
        return extrapolate_entries(factor, before, momentum)

    def scaled_rows(self, table: np.ndarray, factors: np.ndarray) -> np.ndarray:
        if table.dtype != factors.dtype:
            return super().scaled_rows(table, factors)
        out = np.empty_like(table)
        scale_rows(table, factors, out)
        return out

    def multiplicative_step(
        self, factor: np.ndarray, negative: np.ndarray, positive: np.ndarray
    ) -> np.ndarray:
        if not factor.dtype == negative.dtype == positive.dtype:
            return super().multiplicative_step(factor, negative, positive)
        least = factor.dtype.type(smallest(factor))
        return multiplicative_step_entries(factor, negative, positive, least)

    def hide(self, fresh: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        squares = np.empty(fresh.shape[:-1], dtype=fresh.dtype)
        tables = fresh.reshape(-1, *known.shape)
        for table, rows in zip(tables, squares.reshape(-1, len(known)), strict=True):
            hide_and_square(known, table, rows)
        return fresh, squares

    def count_at_nodes(self, lists: np.ndarray, sample_weight: np.ndarray, size: int) -> np.ndarray:
        counts = np.empty((len(lists), size))
        for position, out in zip(lists, counts, strict=True):
            left = position.astype(np.intp)
            right_share = position - left
            out[:] = np.bincount(left, sample_weight * (1.0 - right_share), size)
            out += np.bincount(left + 1, sample_weight * right_share, size)
        return counts

    def divergence(
        self, name: str, block: Block, approximation: np.ndarray, per_row: bool
    ) -> np.ndarray | None:
        """Call a loop of :mod:`robustnmf.arrays.divergences` on complete rows, as they are.

        No copy of them in other units is made.
        """
        if not block.is_complete_table:
            return None
        out = np.empty(approximation.shape[:-1]) if per_row else np.empty_like(approximation)
        least, loop = noise(approximation), getattr(divergences, name)
        for member, values in zip(approximation, out, strict=True):
            loop(block.rows, 1.0 / block.scale, member, least, values)
        return out

    def pivot(
        self,
        linear: np.ndarray,
        gram: np.ndarray,
        positive: np.ndarray,
        ridge: float,
        tolerance: float,
        patience: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        linear = np.ascontiguousarray(linear)
        grams = np.ascontiguousarray(gram.reshape(-1, *gram.shape[-2:]))
        codes, given_up = np.empty_like(linear), np.zeros(len(linear), dtype=bool)
        pivot_rows(linear, grams, positive.copy(), ridge, tolerance, patience, codes, given_up)
        return codes, given_up
