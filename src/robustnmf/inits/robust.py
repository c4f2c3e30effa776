r"""Robust start: NNDSVD of an SVD in which outliers have little weight.

The components of an SVD describe the largest rows first, and then groups of outliers, because one
component fits such a group better than it fits the other rows. Here no row has more weight than a
row of median norm (a row of norm r has the weight :math:`\min(1, (r_{med} / r)^2)`). The subspace
grows from one dimension to k, and meanwhile only the majority of the rows, whose distances from it
are similar, has weight. The interval of distances with weight grows from round to round; a round
computes the same two products as a pass. Of a large X, a few thousand rows are enough.
"""

from __future__ import annotations

from robustnmf.arrays import Array, Block, at_least, eps
from robustnmf.engine import Engine
from robustnmf.inits.plain import (
    Counts,
    encode_best,
    fill_zeros,
    from_few_rows,
    iterate_subspace,
    nonnegative_parts,
    orthonormal,
    random_subspace,
    rayleigh_ritz,
)
from robustnmf.weightings import Trimmed, WarmupWeights

FIRST, GROWING, LAST = 2, 10, 2
"""Rounds without robust weights, with a growing subspace, and with all dimensions."""


def robust(engine: Engine, k: int, seed: int) -> tuple[list[Array], Array]:
    """Compute codes (rows, k) by block and basis (k, m) from a robust SVD, zeros filled."""
    return from_few_rows(_from_all_rows, engine, k, seed)


def _from_all_rows(engine: Engine, k: int, seed: int) -> tuple[list[Array], Array]:
    """Compute codes and basis from a robust SVD of all rows."""
    typical = engine.typical_size()

    def cap(block: Block, _: None) -> tuple[Array, None]:
        # No row has more weight than a typical one.
        return block.row_weight * typical / at_least(block.sq_norms, typical), None

    capped = engine.map_blocks(cap, data=False)[0]
    # After so few rounds the result depends on the first subspace, so it is the same for all seeds.
    right = random_subspace(engine, k, seed=0)
    for _ in range(FIRST):
        right = iterate_subspace(engine, right, capped)
    counts = capped
    for turn in range(GROWING + LAST):
        progress = min(turn / (GROWING - 1), 1.0)
        _, right, products = rayleigh_ritz(engine, right, counts)
        distances = _distances(engine, products, max(1, round(progress * k)))
        counts = _robust_weights(engine, distances, capped, progress, last=turn >= GROWING)
        right = orthonormal(_weighted_cross(engine, products, counts))
    singular, right, _ = rayleigh_ritz(engine, right, counts)
    factors = nonnegative_parts(engine, k, singular, right, counts)
    codes, basis = fill_zeros(engine, k, seed, (typical / engine.shape[1]) ** 0.5, *factors)
    return encode_best(engine, codes, basis), basis


def _distances(engine: Engine, products: list[Array], dimensions: int) -> list[Array]:
    """Compute squared distances (rows,) of rows from the leading dimensions, by block."""

    def distance(block: Block, product: Array) -> tuple[Array, None]:
        xp, norms = block.xp, block.sq_norms
        inside = xp.sum(xp.astype(product[:, :dimensions], norms.dtype) ** 2, axis=1)
        return xp.maximum(norms - inside, eps(product) * norms), None

    return engine.map_blocks(distance, products, data=False)[0]


def _robust_weights(
    engine: Engine, distances: list[Array], capped: Counts, progress: float, *, last: bool
) -> Counts:
    """Compute weights (rows,) of rows from their squared distances, by block."""
    (histogram,) = engine.histograms(distances, 2.0, lambda distance: distance[None, :])
    weighting: Trimmed | WarmupWeights = (
        Trimmed().resolve_auto(histogram) if last else WarmupWeights.at(histogram, progress)
    )

    def weigh(block: Block, pair: tuple[Array, Array]) -> tuple[Array, None]:
        distance, count = pair
        return count * weighting.for_row_sizes(block.sq_norms).weight(distance), None

    return engine.map_blocks(weigh, list(zip(distances, capped, strict=True)), data=False)[0]


def _weighted_cross(engine: Engine, products: list[Array], counts: Counts) -> Array:
    """Compute ``P^T w X`` (r, features) for coordinates P of all rows in the subspace."""

    def visit(block: Block, pair: tuple[Array, Array]) -> tuple[None, Array]:
        product, weight = pair
        weighted = product * block.xp.astype(weight, product.dtype)[:, None]
        return None, block.cross(weighted[None, ...])[0, ...]

    return engine.map_blocks(visit, list(zip(products, counts, strict=True)))[1]
