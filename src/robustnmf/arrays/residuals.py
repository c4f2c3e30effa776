"""Recompute energies from residuals if their expansion cancels.

NumPy arrays are recomputed member by member, only the rows that need it. On a device every
synchronisation takes longer than the arithmetic, so a row that needs it for any member is
recomputed for all members. During CUDA graph capture, up to ``FEW`` rows of each member are.
"""

from __future__ import annotations

import numpy as np

from robustnmf.arrays.blocks import Block
from robustnmf.arrays.cuda_graphs import flag_overflow, is_capturing
from robustnmf.arrays.namespace import Array, arange_like, as_float64, masked_scatter, namespace

AT_ONCE, AT_ONCE_ON_HOST = 2**26, 2**20
"""Maximum number of residual entries in memory at once, on a device and for NumPy arrays."""

FEW = 32
"""Rows of every member that can be recomputed while a CUDA graph is captured."""


def recompute_cancelled(
    block: Block, energies: Array, doubtful: Array, codes: Array, basis: Array
) -> Array:
    """Replace the energies (members, rows) in a mask by squared residuals of codes and basis."""
    if isinstance(energies, np.ndarray):
        return _by_member(block, energies, doubtful, codes, basis)
    if is_capturing():
        return _in_fixed_buffer(block, energies, doubtful, codes, basis)
    return _for_all_members(block, energies, doubtful, codes, basis)


def _by_member(
    block: Block, energies: np.ndarray, doubtful: np.ndarray, codes: np.ndarray, basis: np.ndarray
) -> np.ndarray:
    """Recompute the rows in the mask of each member, in place."""
    if not doubtful.any():
        return energies
    step = max(1, AT_ONCE_ON_HOST // basis.shape[2])
    for member in np.flatnonzero(doubtful.any(axis=1)):
        rows = np.flatnonzero(doubtful[member])
        for chosen in (rows[at : at + step] for at in range(0, len(rows), step)):
            squares = block.sq_residuals(chosen, codes[member, chosen], basis[member])
            energies[member, chosen] = squares
    return energies


def _for_all_members(
    block: Block, energies: Array, doubtful: Array, codes: Array, basis: Array
) -> Array:
    """Recompute the rows that are in the mask of any member, for all members."""
    xp = namespace(energies)
    doubtful_rows = xp.any(doubtful, axis=0)
    (rows,) = xp.nonzero(doubtful_rows)
    if not rows.shape[0]:
        return energies
    step = max(1, AT_ONCE // (basis.shape[0] * basis.shape[2]))
    parts = []
    for at in range(0, rows.shape[0], step):
        chosen = rows[at : min(at + step, rows.shape[0])]
        parts.append(block.sq_residuals(chosen, xp.take(codes, chosen, axis=1), basis))
    recomputed = masked_scatter(energies, doubtful_rows, xp.concat(parts, axis=1))
    return xp.where(doubtful, recomputed, energies)


def _in_fixed_buffer(
    block: Block, energies: Array, doubtful: Array, codes: Array, basis: Array
) -> Array:
    """Recompute at most ``FEW`` rows of each member without synchronising with the device."""
    xp = namespace(energies)
    members, rows = energies.shape
    size = min(FEW, rows)
    rank = xp.cumulative_sum(xp.astype(doubtful, xp.int64), axis=1)  # doubtful rows: 1, 2, ...
    counts = rank[:, -1:]
    flag_overflow(xp.any(counts > size))
    # Ranks are found by a search in one sorted array, with one member after another. If a member
    # has fewer doubtful rows than the buffer, any other row of it is used.
    before = xp.cumulative_sum(counts, axis=0) - counts
    line = xp.reshape(rank + before, (-1,))
    ranks = xp.reshape(before + arange_like(size + 1, energies, 1), (-1,))
    places = xp.reshape(xp.searchsorted(line, ranks), (members, size))
    chosen = xp.clip(places - rows * arange_like(members, energies)[:, None], min=0, max=rows - 1)
    data = xp.reshape(block.take(xp.reshape(chosen, (-1,))), (members, size, basis.shape[2]))
    residual = data - xp.take_along_axis(codes, chosen[:, :, None], axis=1) @ basis
    recomputed = xp.sum(as_float64(residual**2), axis=-1)
    in_buffer = xp.clip(rank - 1, min=0, max=size - 1)
    return xp.where(doubtful, xp.take_along_axis(recomputed, in_buffer, axis=1), energies)
