"""Operations of a pass on NumPy arrays, by loops that numba compiles.

The rows of a tile are the lanes of vector registers, and remain in the cache for all sweeps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustnmf.arrays.kernels import divergences, loops, stored
from robustnmf.arrays.kernels._base import Kernels
from robustnmf.arrays.namespace import Array, by_rows, noise, smallest


class NumpyKernels(Kernels):
    """Compiled loops over rows and stored entries; products of dense rows use BLAS."""

    def _product(self, rows: Any, directions: Array) -> Array:
        if isinstance(rows, np.ndarray):
            return super()._product(rows, directions)
        return stored.project(rows, rows.data[None], directions[None])[0]

    def _transposed_product(self, codes: Array, rows: Any) -> Array:
        if isinstance(rows, np.ndarray):
            return super()._transposed_product(codes, rows)
        return stored.cross(rows, rows.data[None], codes.T[None])[0]

    def times_gram(self, codes: Array, gram: Array) -> Array:
        return np.matmul(codes, gram, out=np.empty_like(codes))  # in the memory layout of the codes

    def sweep_coordinates(
        self,
        factor: Array,
        linear: Array,
        gram: Array,
        sweeps: int,
        fixed: int = 0,
        present: Array | None = None,
    ) -> Array:
        if present is None:
            present = gram.diagonal(0, 1, 2) > smallest(gram) ** 0.5
        updated = np.array(factor, order="K")  # a copy in the same memory layout
        loops.sweep_tiles(
            *_flat(updated), *_flat(linear), gram, present, sweeps, fixed,
            *loops.tile_space(factor.shape[-1], factor.dtype),
        )  # fmt: skip
        return updated

    def weighted_sums(self, rows: Array, codes: Array, weights: Array) -> tuple[Array, Array]:
        if len(codes) == 1:
            return super().weighted_sums(rows, codes, weights)
        # In the memory layout of the codes; einsum takes half the time of broadcasting.
        weighted = by_rows(np.einsum("rbk,rbl->rbk", by_rows(codes), by_rows(weights)))
        return self.cross(rows, weighted), weighted.transpose(0, 2, 1) @ codes

    def quadratic_part(self, codes: Array, linear: Array, gram: Array) -> Array:
        sums = np.empty(codes.shape[:-1])
        parts = (codes, self.times_gram(codes, gram), linear)
        loops.quadratic_rows(*(np.ascontiguousarray(by_rows(part)) for part in parts), sums)
        return sums

    def weigh_rows(
        self, rho: Array, weight: Array, sample_weight: Array, scale_step: float
    ) -> tuple[Array, Array, Array, Array]:
        if weight.ndim != 2:
            return super().weigh_rows(rho, weight, sample_weight, scale_step)
        weights, sums = np.empty_like(weight), np.empty((3, len(weight), 1))
        loops.scale_weights(rho, weight, sample_weight, scale_step, weights, sums)
        log_scale, total, count = sums
        return weights, log_scale, total, count

    def count_at_nodes(self, lists: Array, sample_weight: Array, size: int) -> Array:
        counts = np.zeros((len(lists), size))
        loops.count_shared(lists, sample_weight, counts)
        return counts

    def divergence(
        self, name: str, rows: Any, unit: float, approximation: Array, per_row: bool
    ) -> Array | None:
        """Call a loop of :mod:`robustnmf.arrays.kernels.divergences`."""
        is_dense = isinstance(rows, np.ndarray)
        if not is_dense and name not in ("kullback_leibler_rows", "ratio_entries"):
            return None
        shape, least = (len(approximation), rows.shape[0]), noise(approximation)
        out = np.empty(shape) if per_row else np.empty_like(approximation)
        for member, values in zip(approximation, out, strict=True):
            if is_dense:
                getattr(divergences, name)(rows, unit, member, least, values)
            elif per_row:
                divergences.kullback_leibler_stored(
                    rows.data, rows.indptr, unit, member, least, values
                )
            else:
                divergences.ratio_entries(rows.data[None], unit, member[None], least, values[None])
        return out

    def weighted_residuals(
        self, name: str, rows: Array, unit: float, approximation: Array, bounds: Array
    ) -> tuple[Array, Array] | None:
        out, sums = np.empty_like(approximation), np.empty(approximation.shape[:-1])
        loop = getattr(loops, name)
        for member, values, totals in zip(approximation, out, sums, strict=True):
            loop(rows, unit, member, bounds, values, totals)
        return out, sums

    def nonnegative_rows(
        self, linear: Array, gram: Array, positive: Array, limits: tuple[float, float, int]
    ) -> Array:
        linear = np.ascontiguousarray(linear)
        grams = np.ascontiguousarray(gram.reshape(-1, *gram.shape[-2:]))
        codes, given_up = np.empty_like(linear), np.zeros(len(linear), dtype=bool)
        k = linear.shape[-1]
        space = np.empty((k, k)), np.empty(k), np.empty(k, np.int64)
        loops.pivot_rows(
            linear, grams, positive.copy(), *limits, codes, given_up, *space, np.empty(k, bool)
        )
        if given_up.any():
            loops.climb_rows(
                linear, grams, given_up, *limits[:2], codes, *space, np.empty(k, np.int64)
            )
        return codes


def _flat(array: Array) -> tuple[Array, tuple[int, ...]]:
    """Return an array in the order of its memory (a view, if it has no gaps), and its strides."""
    strides = np.empty_like(array).strides  # without gaps
    return array.ravel("K"), tuple(stride // array.itemsize for stride in strides)
