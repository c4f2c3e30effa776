"""Energies measured again, from residuals, where they are too small to trust.

NumPy goes from member to member and looks at the rows in doubt alone. On a device every question
asked of it costs more than the answer, so all members look at every row that any of them doubts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustnmf.arrays.namespace import Array, namespace, put

AT_ONCE = 2**26
"""Numbers of a residual that are held at once on a device."""


def measured_again(
    block: Any, energies: Array, doubtful: Array, codes: Array, basis: Array
) -> Array:
    """Energies (members, rows) with those in doubt from the residual of codes and basis."""
    if isinstance(energies, np.ndarray):
        return _by_member(block, energies, doubtful, codes, basis)
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
    return xp.where(doubtful, put(energies, some, xp.concat(parts, axis=1)), energies)
