r"""Sweeps over the coordinates of quadratic problems, and what rows of codes leave over.

The loops that a pass of coordinate descent consists of beside its products.
Each exists twice, to the same numbers: as array calls for any library, and compiled for NumPy
(:mod:`robustnmf.arrays.kernels`), where the rows of a tile are the lanes of vectors and stay in
cache from the first sweep to the last.
"""

from __future__ import annotations

import numpy as np

from robustnmf.arrays import gpu
from robustnmf.arrays.namespace import Array, as_float64, at_least, floored, namespace, smallest


def sweep_coordinates(
    factor: Array,
    linear: Array,
    gram: Array,
    sweeps: int,
    fixed: int = 0,
    present: Array | None = None,
) -> Array:
    r"""Factor (members, rows, k) after some sweeps over its columns, every row for itself.

    .. math:: f_j \leftarrow \max\big(0,\; f_j + (l_j - (f G)_j) / G_{jj}\big)

    is the minimum of :math:`f G f^T / 2 - l f^T` over one coordinate, so no step goes up. A
    coordinate that nothing depends on stays, and may be of use later.

    Parameters
    ----------
    factor, linear : arrays (members, rows, k)
    gram : array (members, k, k), symmetric
    sweeps : int
    fixed : int, default=0; how many of the first columns stay as they are
    present : array of bool (members, k), optional; on which coordinates something depends,
        by default those with a diagonal above zero
    """
    present = active_components(gram) if present is None else present
    if isinstance(factor, np.ndarray):
        from robustnmf.arrays.kernels import sweep_tiles

        # The result lies in memory as the factor does, also where that is a transposed view.
        moved = np.empty_like(factor)
        sweep_tiles(factor, linear, gram, present, sweeps, fixed, moved)
        return moved
    xp = namespace(factor)
    diagonal = xp.linalg.diagonal(gram)
    one = xp.ones_like(diagonal)
    steps = xp.where(present, 1.0 / xp.where(present, diagonal, one), 0 * one)
    if gpu.has_loops(factor, factor.shape[-1]):
        return gpu.swept(factor, linear, gram, steps, sweeps, fixed)
    moved = xp.asarray(factor, copy=True)
    for _ in range(sweeps):
        for j in range(fixed, factor.shape[-1]):
            slope = linear[:, :, j] - (moved @ gram[:, :, j : j + 1])[:, :, 0]
            moved[:, :, j] = at_least(moved[:, :, j] + slope * steps[:, j : j + 1], 0.0)
    return moved


def active_components(gram: Array) -> Array:
    """Of which components (members, k) there is anything: their Gram matrix knows."""
    return namespace(gram).linalg.diagonal(gram) > smallest(gram) ** 0.5


def quadratic_part(codes: Array, linear: Array, gram: Array) -> Array:
    """``a G a^T - 2 l a^T`` of every row (members, rows), summed in float64."""
    if isinstance(codes, np.ndarray):
        from robustnmf.arrays.kernels import quadratic_tiles

        out = np.empty(codes.shape[:2])
        quadratic_tiles(codes, linear, gram, out)
        return out
    if gpu.has_loops(codes, codes.shape[-1]):
        return gpu.left_over(codes, codes @ gram, linear)
    return namespace(codes).vecdot(
        as_float64(codes), as_float64(codes @ gram) - 2 * as_float64(linear)
    )


def extrapolate(factor: Array, before: Array, momentum: Array) -> Array:
    """``max(0, f + b (f - f_before))``; ``ahead`` (members, 1, 1) is b."""
    if isinstance(factor, np.ndarray):
        from robustnmf.arrays.kernels import beyond_entries

        return beyond_entries(factor, before, momentum)
    return at_least(factor + momentum * (factor - before), 0.0)


def scaled_rows(table: Array, factors: Array) -> Array:
    """Rows (members, rows, k), each times a number of its own (members, rows, 1).

    The result lies in memory as the table does, so that a product with it takes no copy.
    """
    if isinstance(table, np.ndarray) and table.dtype == factors.dtype:
        from robustnmf.arrays.kernels import scale_rows

        out = np.empty_like(table)
        scale_rows(table, factors, out)
        return out
    return table * factors


def multiplied(factor: Array, negative: Array, positive: Array) -> Array:
    """``factor negative / positive``; what has died down below the normal numbers is zero.

    Processors are slow with those. Multiplied before it is divided: a tiny entry has an equally
    tiny divisor.
    """
    least = smallest(factor)
    if isinstance(factor, np.ndarray) and factor.dtype == negative.dtype == positive.dtype:
        from robustnmf.arrays.kernels import multiplied_entries

        return multiplied_entries(factor, negative, positive, factor.dtype.type(least))
    if gpu.has_kernels(factor) and gpu.is_dense(factor, negative, positive):
        return gpu.multiplied(factor, negative, positive, least)
    moved = factor * negative / floored(positive)
    return namespace(moved).where(moved < least, 0 * moved, moved)
