"""Energies measured again, from residuals, where they are too small to trust.

NumPy goes from member to member and looks at the rows in doubt alone. On a device every question
asked of it costs more than the answer, so all members look at every row that any of them doubts.
While nothing may be asked, every member looks at the few rows it fits best.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustnmf.arrays.cuda_graphs import flag_overflow, is_capturing
from robustnmf.arrays.namespace import Array, arange_like, as_float64, masked_scatter, namespace

AT_ONCE = 2**26
"""Numbers of a residual that are held at once on a device."""

FEW = 32
"""Rows of every member that are measured again without asking how many it doubts."""


def recompute_cancelled(
    block: Any, energies: Array, doubtful: Array, codes: Array, basis: Array
) -> Array:
    """Energies (members, rows) with those in doubt from the residual of codes and basis."""
    if isinstance(energies, np.ndarray):
        return _by_member(block, energies, doubtful, codes, basis)
    if is_capturing():
        return _few(block, energies, doubtful, codes, basis)
    return _all_together(block, energies, doubtful, codes, basis)


def _by_member(
    block: Any, energies: np.ndarray, doubtful: np.ndarray, codes: np.ndarray, basis: np.ndarray
) -> np.ndarray:
    for member in np.flatnonzero(doubtful.any(axis=1)):
        rows = np.flatnonzero(doubtful[member])
        energies[member, rows] = block.sq_residuals(rows, codes[member, rows], basis[member])
    return energies


def _all_together(
    block: Any, energies: Array, doubtful: Array, codes: Array, basis: Array
) -> Array:
    xp = namespace(energies)
    some = xp.any(doubtful, axis=0)
    (rows,) = xp.nonzero(some)
    if not rows.shape[0]:
        return energies
    step = max(1, AT_ONCE // (basis.shape[0] * basis.shape[2]))
    parts = []
    for at in range(0, rows.shape[0], step):
        chosen = rows[at : min(at + step, rows.shape[0])]
        parts.append(block.sq_residuals(chosen, xp.take(codes, chosen, axis=1), basis))
    return xp.where(doubtful, masked_scatter(energies, some, xp.concat(parts, axis=1)), energies)


def _few(block: Any, energies: Array, doubtful: Array, codes: Array, basis: Array) -> Array:
    xp = namespace(energies)
    members, rows = energies.shape
    count = min(FEW, rows)
    number = xp.cumulative_sum(xp.astype(doubtful, xp.int64), axis=1)  # of doubts so far
    flag_overflow(xp.any(number[:, -1] > count))
    # Doubts of all members in one line, each found by its number; where a member has fewer,
    # some row of it comes along in vain.
    before = xp.cumulative_sum(number[:, -1])[:, None] - number[:, -1:]
    line = xp.reshape(number + before, (-1,))
    wanted = before + arange_like(count + 1, energies, 1)[None, :]
    found = xp.reshape(xp.searchsorted(line, xp.reshape(wanted, (-1,))), (members, count))
    chosen = xp.clip(found - rows * arange_like(members, energies)[:, None], min=0, max=rows - 1)
    data = xp.reshape(block.take(xp.reshape(chosen, (-1,))), (members, count, basis.shape[2]))
    left = data - xp.take_along_axis(codes, chosen[:, :, None], axis=1) @ basis
    measured = xp.sum(as_float64(left**2), axis=-1)
    place = xp.clip(number - 1, min=0, max=count - 1)
    return xp.where(doubtful, xp.take_along_axis(measured, place, axis=1), energies)
