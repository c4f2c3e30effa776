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

from robustnmf.arrays import Array, at_least, eps, namespace
from robustnmf.inits._svd import (
    Counts,
    fill_zeros,
    iterate_subspace,
    nonnegative_parts,
    orthonormal,
    random_subspace,
    rayleigh_ritz,
)
from robustnmf.solvers import nonnegative_least_squares
from robustnmf.weightings import Trimmed, WarmupWeights

FIRST, GROWING, LAST = 2, 10, 2
"""Rounds before weights, while the subspace grows, and with all of its dimensions."""


def robust(engine: Any, k: int, seed: int) -> tuple[list[Array], Array]:
    """``nndsvda`` of an SVD in which the majority of the samples counts."""
    typical = engine.typical_size()

    def cap(block: Any, _: None) -> tuple[Array, None]:
        # No row counts for more than a typical one.
        return block.row_weight * typical / at_least(block.sq_norms, typical), None

    capped = engine.map_blocks(cap, data=False)[0]
    # The rounds are too few to forget where they began, so that is the same for every seed.
    right = random_subspace(engine, k, seed=0)
    for _ in range(FIRST):
        right = iterate_subspace(engine, right, capped)
    counts = capped
    for turn in range(GROWING + LAST):
        opened = min(turn / (GROWING - 1), 1.0)
        _, right, products = rayleigh_ritz(engine, right, counts)
        distances = _distances(engine, products, max(1, round(opened * k)))
        counts = _heard(engine, distances, capped, opened, last=turn >= GROWING)
        right = orthonormal(_crossed(engine, products, counts))
    singular, right, _ = rayleigh_ritz(engine, right, counts)
    factors = nonnegative_parts(engine, k, singular, right, counts)
    codes, basis = fill_zeros(engine, k, seed, (typical / engine.shape[1]) ** 0.5, *factors)
    return _encoded(engine, codes, basis), basis


def _encoded(engine: Any, codes: list[Array], basis: Array) -> list[Array]:
    """The best codes for the basis, so that energies tell from the first pass on; none is zero."""
    gram = basis @ basis.T

    def visit(block: Any, start: Array) -> tuple[Array, None]:
        best = nonnegative_least_squares(block.project(basis[None, ...])[0, ...], gram)
        return namespace(start).maximum(best, 1e-3 * start), None

    return engine.map_blocks(visit, codes)[0]


def _distances(engine: Any, products: list[Array], dimensions: int) -> list[Array]:
    """Squared distances of rows from the leading dimensions, for every block."""

    def distance(block: Any, product: Array) -> tuple[Array, None]:
        xp, norms = block.xp, block.sq_norms
        inside = xp.sum(xp.astype(product[:, :dimensions], norms.dtype) ** 2, axis=1)
        return xp.maximum(norms - inside, eps(product) * norms), None

    return engine.map_blocks(distance, products, data=False)[0]


def _heard(
    engine: Any, distances: list[Array], capped: Counts, opened: float, *, last: bool
) -> Counts:
    """How often rows count whose distances are these."""
    (histogram,) = engine.histograms(distances, 2.0, lambda distance: distance[None, :])
    weighting = Trimmed().resolve_auto(histogram) if last else WarmupWeights.at(histogram, opened)

    def heard(block: Any, pair: tuple[Array, Array]) -> tuple[Array, None]:
        distance, count = pair
        return count * weighting.for_row_sizes(block.sq_norms).weight(distance), None

    return engine.map_blocks(heard, list(zip(distances, capped, strict=True)), data=False)[0]


def _crossed(engine: Any, products: list[Array], counts: Counts) -> Array:
    """The sum over all rows of their product with themselves in terms of the subspace."""

    def visit(block: Any, pair: tuple[Array, Array]) -> tuple[None, Array]:
        product, counted = pair
        weighted = product * block.xp.astype(counted, product.dtype)[:, None]
        return None, block.cross(weighted[None, ...])[0, ...]

    return engine.map_blocks(visit, list(zip(products, counts, strict=True)))[1]
