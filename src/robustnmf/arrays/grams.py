"""Diagonals of Gram matrices: which components are present, and the steps of coordinate sweeps."""

from __future__ import annotations

from robustnmf.arrays.namespace import Array, namespace, smallest


def active_components(gram: Array) -> Array:
    """Return which components (members, k) are not zero, from their Gram matrix."""
    return namespace(gram).linalg.diagonal(gram) > smallest(gram) ** 0.5


def coordinate_steps(gram: Array, present: Array | None) -> Array:
    """Compute ``1 / diagonal`` (members, k) of Gram matrices; zero for components not present."""
    xp = namespace(gram)
    present = active_components(gram) if present is None else present
    diagonal = xp.linalg.diagonal(gram)
    one = xp.ones_like(diagonal)
    return xp.where(present, 1.0 / xp.where(present, diagonal, one), 0 * one)
