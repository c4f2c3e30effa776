r"""A start that bad samples have no part in.

The SVD serves the largest rows first, so that a few huge ones take all its components, and then
groups of bad ones, which a component describes better than it does the good ones. Here no row
counts for more than one of median norm would (a row of norm r counts
:math:`\min(1, (r_{med} / r)^2)` times), and the subspace grows from one dimension to k while only
the majority counts, whose distances from it are alike. The gate opens as the rounds go by; each
of them takes the two products of a pass.
"""

from __future__ import annotations

from typing import Any

from robustnmf.arrays import Array, eps, namespace, to_numpy
from robustnmf.inits._svd import (
    Counts,
    aligned,
    filled,
    guessed,
    multiplied,
    orthonormal,
    signed_parts,
)
from robustnmf.solvers import nonnegative_least_squares
from robustnmf.weightings import Gate, Profile, Trimmed

FIRST, GROWING, LAST = 2, 10, 2
"""Rounds before weights, while the subspace grows, and with all of its dimensions."""


def robust(engine: Any, k: int, seed: int) -> tuple[Array, Array]:
    """``nndsvda`` of an SVD in which the majority of the samples counts."""
    capped = [_capped(block, engine.typical_size) for block in engine.blocks]
    # The rounds are too few to forget where they began, so that is the same for every seed.
    right = guessed(engine, k, seed=0)
    for _ in range(FIRST):
        right = multiplied(engine, right, capped)
    counts = capped
    for turn in range(GROWING + LAST):
        opened = min(turn / (GROWING - 1), 1.0)
        _, right, products = aligned(engine, right, counts)
        distances = _distances(engine, products, max(1, round(opened * k)))
        counts = _heard(engine, distances, capped, opened, last=turn >= GROWING)
        right = orthonormal(_crossed(engine, products, counts))
    singular, right, _ = aligned(engine, right, counts)
    typical_entry = (engine.typical_size / engine.shape[1]) ** 0.5
    factors = signed_parts(engine, singular[:k], right[:k, :], counts)
    codes, basis = filled(engine, k, seed, typical_entry, *factors)
    return _encoded(engine, codes, basis), basis


def _encoded(engine: Any, codes: Array, basis: Array) -> Array:
    """The best codes for the basis, so that energies tell from the first pass on; none is zero."""
    gram = basis @ basis.T

    def visit(block: Any, _: None) -> tuple[Array, None]:
        return nonnegative_least_squares(block.project(basis[None, ...])[0, ...], gram), None

    best = namespace(codes).concat(engine.sweep(visit)[0])
    return namespace(codes).maximum(best, 1e-3 * codes)


def _capped(block: Any, limit: float) -> Array:
    """How often rows count where none counts for more than one of this squared norm."""
    return block.mass * limit / block.xp.maximum(block.sq_norms, limit)


def _distances(engine: Any, products: list[Array], dimensions: int) -> list[Array]:
    """Squared distances of rows from the leading dimensions, for every block."""
    found = []
    for block, product in zip(engine.blocks, products, strict=True):
        xp, norms = block.xp, block.sq_norms
        inside = xp.sum(xp.astype(product[:, :dimensions], norms.dtype) ** 2, axis=1)
        found.append(xp.maximum(norms - inside, eps(product) * norms))
    return found


def _heard(
    engine: Any, distances: list[Array], capped: Counts, opened: float, *, last: bool
) -> Counts:
    """How often rows count whose distances are these."""
    xp = namespace(engine.like)
    sizes = [block.sq_norms for block in engine.blocks]
    unit = engine.typical_size
    whole = (xp.concat(distances), xp.concat(sizes), engine.mass)
    arrays = (to_numpy(array).astype(float, copy=False) for array in whole)
    profile = Profile(*arrays, typical=unit, unit=unit, features=engine.shape[1])
    weighting = Trimmed().settle(profile) if last else Gate.at(profile, opened)
    each = zip(distances, sizes, capped, strict=True)
    return [count * weighting.among(size).slope(distance) for distance, size, count in each]


def _crossed(engine: Any, products: list[Array], counts: Counts) -> Array:
    """The sum over all rows of their product with themselves in terms of the subspace."""

    def visit(block: Any, pair: tuple[Array, Array]) -> tuple[None, Array]:
        product, counted = pair
        weighted = product * block.xp.astype(counted, product.dtype)[:, None]
        return None, block.cross(weighted[None, ...])[0, ...]

    return engine.sweep(visit, list(zip(products, counts, strict=True)))[1]
