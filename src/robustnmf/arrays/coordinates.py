r"""Coordinate descent on quadratic problems, and other loops over the rows of a factor.

Each loop exists as array calls for any library and compiled for NumPy
(:mod:`robustnmf.arrays.kernels`), with the same results. In compiled code the rows of a tile are
the lanes of vectors, and stay in cache from the first sweep to the last.
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
    r"""Minimise over one coordinate of each row of a factor (members, rows, k) after the other.

    .. math:: f_j \leftarrow \max\big(0,\; f_j + (l_j - (f G)_j) / G_{jj}\big)

    is the minimum of :math:`f G f^T / 2 - l f^T` over one coordinate, so no step raises it. A
    coordinate that the problem does not depend on stays unchanged, and may be of use later.

    Parameters
    ----------
    factor, linear : arrays (members, rows, k)
    gram : array (members, k, k), symmetric
    sweeps : int
    fixed : int, default=0; number of leading columns that stay unchanged
    present : array of bool (members, k), optional; coordinates that the problem depends on,
        by default those with a diagonal above zero
    """
    present = active_components(gram) if present is None else present
    if isinstance(factor, np.ndarray):
        from robustnmf.arrays.kernels import sweep_tiles

        # With the memory layout of the factor, also where that is a transposed view.
        updated = np.empty_like(factor)
        sweep_tiles(factor, linear, gram, present, sweeps, fixed, updated)
        return updated
    xp = namespace(factor)
    diagonal = xp.linalg.diagonal(gram)
    one = xp.ones_like(diagonal)
    steps = xp.where(present, 1.0 / xp.where(present, diagonal, one), 0 * one)
    if gpu.has_loops(factor, factor.shape[-1]):
        return gpu.sweep_coordinates(factor, linear, gram, steps, sweeps, fixed)
    updated = xp.asarray(factor, copy=True)
    for _ in range(sweeps):
        for j in range(fixed, factor.shape[-1]):
            slope = linear[:, :, j] - (updated @ gram[:, :, j : j + 1])[:, :, 0]
            updated[:, :, j] = at_least(updated[:, :, j] + slope * steps[:, j : j + 1], 0.0)
    return updated


def active_components(gram: Array) -> Array:
    """Return which components (members, k) are not zero, from their Gram matrix."""
    return namespace(gram).linalg.diagonal(gram) > smallest(gram) ** 0.5


def quadratic_part(codes: Array, linear: Array, gram: Array) -> Array:
    """Compute ``a G a^T - 2 l a^T`` of every row (members, rows), summed in float64."""
    if isinstance(codes, np.ndarray):
        from robustnmf.arrays.kernels import quadratic_tiles

        out = np.empty(codes.shape[:2])
        quadratic_tiles(codes, linear, gram, out)
        return out
    if gpu.has_loops(codes, codes.shape[-1]):
        return gpu.quadratic_part(codes, codes @ gram, linear)
    return namespace(codes).vecdot(
        as_float64(codes), as_float64(codes @ gram) - 2 * as_float64(linear)
    )


def extrapolate(factor: Array, before: Array, momentum: Array) -> Array:
    """Compute ``max(0, f + b (f - f_before))``; ``momentum`` (members, 1, 1) is b."""
    if isinstance(factor, np.ndarray):
        from robustnmf.arrays.kernels import extrapolate_entries

        return extrapolate_entries(factor, before, momentum)
    return at_least(factor + momentum * (factor - before), 0.0)


def scaled_rows(table: Array, factors: Array) -> Array:
    """Multiply every row of a table (members, rows, k) by its factor (members, rows, 1).

    The result has the memory layout of the table, so that a product with it needs no copy.
    """
    if isinstance(table, np.ndarray) and table.dtype == factors.dtype:
        from robustnmf.arrays.kernels import scale_rows

        out = np.empty_like(table)
        scale_rows(table, factors, out)
        return out
    return table * factors


def multiplicative_step(factor: Array, negative: Array, positive: Array) -> Array:
    """Compute ``factor * negative / positive``, with zeros in the place of subnormal numbers.

    Processors are slow with those. The product comes before the division, since tiny entries have
    equally tiny divisors.
    """
    least = smallest(factor)
    if isinstance(factor, np.ndarray) and factor.dtype == negative.dtype == positive.dtype:
        from robustnmf.arrays.kernels import multiplicative_step_entries

        return multiplicative_step_entries(factor, negative, positive, factor.dtype.type(least))
    if gpu.has_kernels(factor) and gpu.is_dense(factor, negative, positive):
        return gpu.multiplicative_step(factor, negative, positive, least)
    updated = factor * negative / floored(positive)
    return namespace(updated).where(updated < least, 0 * updated, updated)
