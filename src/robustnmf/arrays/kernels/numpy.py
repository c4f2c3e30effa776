"""Operations of a pass on NumPy arrays, by loops that numba compiles.

In compiled code the rows of a tile are the lanes of vectors, and stay in cache from the first
sweep to the last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustnmf.arrays.kernels import divergences, loops
from robustnmf.arrays.kernels._base import Kernels
from robustnmf.arrays.namespace import noise, smallest

WORTH_COMPILING = 2**17
"""Entries of a transposed factor from which on sweeps are compiled for its memory layout. Copies of
smaller ones cost less than the seconds of compiling."""


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
        if present is None:
            present = gram.diagonal(0, 1, 2) > smallest(gram) ** 0.5
        # With the memory layout of the factor, also where that is a transposed view.
        updated = np.empty_like(factor)
        if updated.flags.c_contiguous or factor.size > WORTH_COMPILING:
            loops.sweep_tiles(factor, linear, gram, present, sweeps, fixed, updated)
            return updated
        factor, linear = np.ascontiguousarray(factor), np.ascontiguousarray(linear)
        swept = np.empty_like(factor)
        loops.sweep_tiles(factor, linear, gram, present, sweeps, fixed, swept)
        updated[...] = swept
        return updated

    def quadratic_part(self, codes: np.ndarray, linear: np.ndarray, gram: np.ndarray) -> np.ndarray:
        out = np.empty(codes.shape[:2])
        loops.quadratic_tiles(codes, linear, gram, out)
        return out

    def extrapolate(
        self, factor: np.ndarray, before: np.ndarray, momentum: np.ndarray
    ) -> np.ndarray:
        return loops.extrapolate_entries(factor, before, momentum)

    def scaled_rows(self, table: np.ndarray, factors: np.ndarray) -> np.ndarray:
        if table.dtype != factors.dtype:
            return super().scaled_rows(table, factors)
        out = np.empty_like(table)
        loops.scale_rows(table, factors, out)
        return out

    def multiplicative_step(
        self, factor: np.ndarray, negative: np.ndarray, positive: np.ndarray
    ) -> np.ndarray:
        if not factor.dtype == negative.dtype == positive.dtype:
            return super().multiplicative_step(factor, negative, positive)
        least = factor.dtype.type(smallest(factor))
        return loops.multiplicative_step_entries(factor, negative, positive, least)

    def weigh_rows(
        self,
        rho: np.ndarray,
        weight: np.ndarray,
        sample_weight: np.ndarray,
        scale_step: float,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        if weight.ndim != 2:
            return super().weigh_rows(rho, weight, sample_weight, scale_step)
        weights, sums = np.empty_like(weight), np.empty((3, len(weight), 1))
        loops.scale_weights(rho, weight, sample_weight, scale_step, weights, sums)
        log_scale, total, count = sums
        return weights, log_scale, total, count

    def hide(self, fresh: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        squares = np.empty(fresh.shape[:-1], dtype=fresh.dtype)
        tables = fresh.reshape(-1, *known.shape)
        for table, rows in zip(tables, squares.reshape(-1, len(known)), strict=True):
            loops.hide_and_square(known, table, rows)
        return fresh, squares

    def count_at_nodes(self, lists: np.ndarray, sample_weight: np.ndarray, size: int) -> np.ndarray:
        counts = np.zeros((len(lists), size))
        loops.count_shared(lists, sample_weight, counts)
        return counts

    def divergence(
        self, name: str, rows: Any, unit: float, approximation: np.ndarray, per_row: bool
    ) -> np.ndarray | None:
        """Call a loop of :mod:`robustnmf.arrays.kernels.divergences`."""
        if not isinstance(rows, np.ndarray):
            return _stored_divergence(name, rows, unit, approximation)
        out = np.empty(approximation.shape[:-1]) if per_row else np.empty_like(approximation)
        least, loop = noise(approximation), getattr(divergences, name)
        for member, values in zip(approximation, out, strict=True):
            loop(rows, unit, member, least, values)
        return out

    def add_sq_norms(
        self,
        rows: np.ndarray,
        unit: float,
        sq_norms: np.ndarray,
        rest: np.ndarray,
        codes: np.ndarray,
        basis: np.ndarray,
        doubtful: float,
        least: float,
    ) -> np.ndarray | None:
        residual = np.empty(basis.shape[2], dtype=basis.dtype)
        loops.complete_energies(rest, sq_norms, rows, unit, codes, basis, doubtful, least, residual)
        return rest

    def trimmed_rows(
        self,
        energies: np.ndarray,
        sizes: np.ndarray,
        cutoff: Any,
        share: Any,
        power: Any,
        floor: Any = 0.0,
        least: Any = 0.0,
        least_weight: float = 0.0,
    ) -> tuple[np.ndarray, np.ndarray] | None:
        parameters = cutoff, share, power, floor, least
        if any(isinstance(parameter, np.ndarray) for parameter in parameters):
            return None  # they differ among members
        rho, weight = np.empty_like(energies), np.empty_like(energies)
        loops.trim_rows(energies, sizes, *map(float, parameters), least_weight, rho, weight)
        return rho, weight

    def weighted_residuals(
        self,
        name: str,
        rows: np.ndarray,
        unit: float,
        approximation: np.ndarray,
        bounds: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray] | None:
        out, sums = np.empty_like(approximation), np.empty(approximation.shape[:-1])
        loop = getattr(loops, name)
        for member, values, totals in zip(approximation, out, sums, strict=True):
            loop(rows, unit, member, bounds, values, totals)
        return out, sums

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
        loops.pivot_rows(
            linear, grams, positive.copy(), ridge, tolerance, patience, codes, given_up
        )
        return codes, given_up


def _stored_divergence(
    name: str, rows: Any, unit: float, approximation: np.ndarray
) -> np.ndarray | None:
    """Call the loop over the stored entries of sparse rows; None if the loss has no such loop."""
    least = noise(approximation)
    if name == "ratio_entries":
        out = np.empty_like(approximation)
        for member, values in zip(approximation, out, strict=True):
            divergences.ratio_entries(
                rows.data[None, :], unit, member[None, :], least, values[None, :]
            )
        return out
    if name != "kullback_leibler_rows":
        return None
    out = np.empty((len(approximation), rows.shape[0]))
    for member, values in zip(approximation, out, strict=True):
        divergences.kullback_leibler_stored(rows.data, rows.indptr, unit, member, least, values)
    return out
