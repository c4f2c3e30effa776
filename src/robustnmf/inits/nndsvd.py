r"""Nonnegative double SVD start, from block sums alone.

For each leading singular triplet (u, s, v) the positive or the negative parts of u and
v, whichever pair is larger, start one component. Boutsidis and Gallopoulos, *SVD based
initialization*, Pattern Recognition 41(4), 2008. The subspace comes from a few rounds
of :math:`V \leftarrow \mathrm{orth}(X^T X V)`; these are the two products that a
pass computes, block by block. Permuting the samples permutes the codes.
"""

from __future__ import annotations

from robustnmf.arrays import Array, Block, namespace
from robustnmf.engine import Engine
from robustnmf.inits._svd import (
    fill_zeros,
    iterate_subspace,
    nonnegative_parts,
    random_subspace,
    rayleigh_ritz,
)
from robustnmf.inits._uniform import draw_factors

ROUNDS = 7

SMALL = 0.01
"""Size of what "nndsvdar" fills zeros with, over a random start."""


def nndsvd(engine: Engine, k: int, seed: int) -> tuple[list[Array], Array]:
    """Compute codes (rows, k) by block and basis (k, m), with zeros where a part is cut off."""
    counts = engine.map_blocks(lambda block, _: (block.row_weight, None), data=False)[0]
    right = random_subspace(engine, k, seed)
    for _ in range(ROUNDS):
        right = iterate_subspace(engine, right, counts)
    singular, right, _ = rayleigh_ritz(engine, right, counts)
    return nonnegative_parts(engine, k, singular, right, counts)


def nndsvda(engine: Engine, k: int, seed: int) -> tuple[list[Array], Array]:
    """Compute ``nndsvd`` with zeros replaced by ``sqrt(mean(X) / k)``.

    The published variant fills with the mean of X itself, which does not scale as the
    factors do. Components of zeros, where X has a smaller rank, get a random basis: filled with
    equal numbers they would stay equal forever.
    """
    return fill_zeros(engine, k, seed, engine.mean(), *nndsvd(engine, k, seed))


def nndsvdar(engine: Engine, k: int, seed: int) -> tuple[list[Array], Array]:
    """Compute ``nndsvd`` with zeros replaced by a hundredth of a random start.

    Components of zeros, where X has a smaller rank, get the random start itself.
    """
    xp = namespace(engine.like)
    codes, basis = nndsvd(engine, k, seed)
    drawn_codes, drawn_basis = draw_factors(engine, k, seed)
    empty = xp.max(basis, axis=1) <= 0
    size = xp.where(empty, xp.ones_like(basis[:, 0]), xp.full_like(basis[:, 0], SMALL))

    def fill(block: Block, pair: tuple[Array, Array]) -> tuple[Array, None]:
        part, drawn = pair
        return xp.where(part > 0, part, drawn * size), None

    pairs = list(zip(codes, drawn_codes, strict=True))
    codes = engine.map_blocks(fill, pairs, data=False)[0]
    return codes, xp.where(basis > 0, basis, drawn_basis * size[:, None])
