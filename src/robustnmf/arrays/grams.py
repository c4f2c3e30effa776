"""Gram matrices: which components are present, steps of coordinate sweeps, masked systems."""

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


def conjugate_gradients(rest: Array, mask: Array, gram: Array, steps: int) -> Array:
    """Solve ``x gram = rest`` (rows, k) on the coordinates in a mask; the others are zero.

    Every step is one product with the Gram matrix (k, k), of all rows together.
    """
    xp = namespace(rest)
    zero = 0 * rest
    rest = xp.where(mask, rest, zero)
    x, direction, square = zero, rest, xp.vecdot(rest, rest)[:, None]
    for _ in range(steps):
        image = xp.where(mask, direction @ gram, zero)
        curvature = xp.vecdot(direction, image)[:, None]
        # A row that is solved to the last digit has no direction left.
        length = xp.where(curvature > 0, square / xp.where(curvature > 0, curvature, 1.0), 0.0)
        x = x + length * direction
        rest = rest - length * image
        after = xp.vecdot(rest, rest)[:, None]
        growth = xp.where(square > 0, after / xp.where(square > 0, square, 1.0), 0.0)
        direction, square = rest + growth * direction, after
    return x
