r"""Random and SVD starts.

Random start: with both factors uniform on :math:`(0, 2\sqrt{\bar x / k}]`, an entry of the product
has expectation :math:`\bar x`, the mean of X. The paper starts from random positive factors.
The codes of a row are a hash of its content: random projections of the row are multiplied by a
large number, and their fractional parts are taken. So equal rows start from the same codes in any
order and in any block, and a sample weight of two is equivalent to repeating the row.

Nonnegative double SVD, from block sums alone: for each leading singular triplet (u, s, v), either
the positive or the negative parts of u and v, whichever pair is larger, start one component.
Boutsidis and Gallopoulos, *SVD based initialization*, Pattern Recognition 41(4), 2008. The subspace
is computed in a few rounds of :math:`V \leftarrow \mathrm{orth}(X^T X V)`, with the same two
products as a pass, block by block. Permuting the samples permutes the codes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from robustnmf.arrays import Array, Block, at_least, by_rows, eps, floored, namespace, on_device_of
from robustnmf.engine import Engine, draw_rows
from robustnmf.solvers import nonnegative_least_squares

STRETCH = 1e4
OVERSAMPLING = 10
ROUNDS = 7

SMALL = 0.01
"""Size of the numbers that replace zeros in "nndsvdar", relative to a random start."""

ROWS, ROWS_PER_COMPONENT = 3000, 10
"""Number of rows that are drawn from X if it has more than twice as many, and the least number for
each component."""

Counts = list[Array]
"""For every block, the weights of its rows (rows,) in the SVD."""


def random(engine: Engine, k: int, seed: int) -> tuple[list[Array], Array]:
    """Draw codes (rows, k) of every block and basis (k, m), in the units of the engine."""
    codes, basis = random_members(engine, k, [seed])
    first = engine.map_blocks(lambda _, members: (members[0, ...], None), codes, data=False)[0]
    return first, basis[0, ...]


def random_members(engine: Engine, k: int, seeds: Sequence[int]) -> tuple[list[Array], Array]:
    """Draw codes (members, rows, k) and bases (members, k, m) for all seeds in one visit of X."""
    xp = namespace(engine.like)
    mean, features, dtype = engine.mean(), engine.shape[1], engine.like.dtype
    size = 2.0 * (mean / k) ** 0.5
    stretch = STRETCH / ((mean if mean > 0 else 1.0) * features**0.5)
    uniform, normal = np.empty((2, len(seeds), k, features))

    def fill(seed: int, basis: Array, directions: Array) -> None:
        rng = np.random.default_rng(seed)
        np.subtract(1.0, rng.random((k, features)), out=basis)
        np.multiply(stretch, rng.standard_normal((features, k)).T, out=directions)

    list(engine.threads.each(lambda each: fill(*each), zip(seeds, uniform, normal, strict=True)))
    directions = on_device_of(engine.like, normal.reshape(-1, features), xp.float64).T

    def draw(block: Block, _: None) -> tuple[Array, None]:
        place = block.wide_project(directions)
        codes = xp.astype(size * (1.0 - (place - xp.floor(place))), dtype, copy=False)
        members = xp.reshape(codes, (codes.shape[0], len(seeds), k))
        return by_rows(members), None

    return engine.map_blocks(draw)[0], on_device_of(engine.like, size * uniform, dtype)


def nndsvd(engine: Engine, k: int, seed: int) -> tuple[list[Array], Array]:
    """Compute codes (rows, k) by block and basis (k, m), with zeros for the parts of wrong sign."""
    counts = engine.map_blocks(lambda block, _: (block.row_weight, None), data=False)[0]
    right = random_subspace(engine, k, seed)
    for _ in range(ROUNDS):
        right = iterate_subspace(engine, right, counts)
    singular, right, _ = rayleigh_ritz(engine, right, counts)
    return nonnegative_parts(engine, k, singular, right, counts)


def nndsvda(engine: Engine, k: int, seed: int) -> tuple[list[Array], Array]:
    """Compute ``nndsvd`` of a few thousand rows, with zeros replaced by ``sqrt(mean(X) / k)``.

    The published variant fills with the mean of X, which does not scale like the factors. If X
    has a smaller rank, components of zeros get a random basis: if all were filled with the same
    number, they would remain equal.
    """

    def compute(engine: Engine, k: int, seed: int) -> tuple[list[Array], Array]:
        return fill_zeros(engine, k, seed, engine.mean(), *nndsvd(engine, k, seed))

    return from_few_rows(compute, engine, k, seed)


def from_few_rows(
    compute: Callable[[Engine, int, int], tuple[list[Array], Array]],
    engine: Engine,
    k: int,
    seed: int,
) -> tuple[list[Array], Array]:
    """Compute a start from all rows, or of a large X from some of them, with codes for all."""
    count = max(ROWS, ROWS_PER_COMPONENT * k)
    if engine.shape[0] <= 2 * count or engine.mean() == 0:
        return compute(engine, k, seed)
    drawn = draw_rows(engine, count).engine(engine.scale, like=engine.like)
    basis = on_device_of(engine.like, compute(drawn, k, seed)[1], engine.like.dtype)
    xp = namespace(basis)
    sizes = k * floored(xp.sqrt(xp.sum(basis**2, axis=1)))

    def divide(block: Block, _: None) -> tuple[Array, None]:
        return xp.astype(block.sq_norms**0.5, basis.dtype)[:, None] / sizes, None

    return encode_best(engine, engine.map_blocks(divide, data=False)[0], basis), basis


def encode_best(engine: Engine, codes: list[Array], basis: Array) -> list[Array]:
    """Compute the best codes (rows, k) for the basis, but at least 0.001 times the given codes.

    Good codes make the energies of the first pass meaningful.
    """
    gram = basis @ basis.T

    def visit(block: Block, start: Array) -> tuple[Array, None]:
        best = nonnegative_least_squares(block.project(basis[None, ...])[0, ...], gram)
        return namespace(start).maximum(best, 1e-3 * start), None

    return engine.map_blocks(visit, codes)[0]


def nndsvdar(engine: Engine, k: int, seed: int) -> tuple[list[Array], Array]:
    """Compute ``nndsvd`` with zeros replaced by a hundredth of a random start.

    If X has a smaller rank, components of zeros get the random start itself.
    """
    xp = namespace(engine.like)
    codes, basis = nndsvd(engine, k, seed)
    drawn_codes, drawn_basis = random(engine, k, seed)
    empty = xp.max(basis, axis=1) <= 0
    size = xp.where(empty, xp.ones_like(basis[:, 0]), xp.full_like(basis[:, 0], SMALL))

    def fill(block: Block, pair: tuple[Array, Array]) -> tuple[Array, None]:
        part, drawn = pair
        return xp.where(part > 0, part, drawn * size), None

    pairs = list(zip(codes, drawn_codes, strict=True))
    codes = engine.map_blocks(fill, pairs, data=False)[0]
    return codes, xp.where(basis > 0, basis, drawn_basis * size[:, None])


def random_subspace(engine: Engine, k: int, seed: int) -> Array:
    """Return random orthonormal rows (k + OVERSAMPLING, features), or fewer if X is smaller."""
    n, m = engine.shape
    guess = np.random.default_rng(seed).standard_normal((m, min(k + OVERSAMPLING, n, m)))
    return orthonormal(on_device_of(engine.like, guess, engine.like.dtype).T)


def orthonormal(rows: Array) -> Array:
    """Return orthonormal rows with the same span."""
    return namespace(rows).linalg.qr(rows.T)[0].T


def iterate_subspace(engine: Engine, right: Array, counts: Counts) -> Array:
    """Take one step of subspace iteration; return orthonormal rows (r, features)."""

    def gram_times(block: Block, weight: Array) -> tuple[Array, Array]:
        onto = block.project(right[None, ...])
        return weight, block.cross(onto * block.xp.astype(weight, onto.dtype)[:, None])[0, ...]

    return orthonormal(engine.map_blocks(gram_times, counts)[1])


def rayleigh_ritz(engine: Engine, right: Array, counts: Counts) -> tuple[Array, Array, list[Array]]:
    """Compute singular values (r,) and vectors (r, features) within a subspace (Rayleigh-Ritz).

    Also returns, for every block, the coordinates of its rows (rows, r) in the singular vectors.
    """
    xp = namespace(right)

    def onto(block: Block, weight: Array) -> tuple[Array, Array]:
        product = block.project(right[None, ...])[0, ...]
        weighted = product * xp.astype(weight, product.dtype)[:, None]
        return product, weighted.T @ product

    products, gram = engine.map_blocks(onto, counts)
    squares, rotation = xp.linalg.eigh(0.5 * (gram + gram.T))
    rotation = xp.take(rotation, xp.argsort(-squares), axis=1)
    singular = at_least(-xp.sort(-squares), 0.0) ** 0.5
    rotated = engine.map_blocks(
        lambda block, product: (product @ rotation, None), products, data=False
    )
    return singular, rotation.T @ right, rotated[0]


def nonnegative_parts(
    engine: Engine, k: int, singular: Array, right: Array, counts: Counts
) -> tuple[list[Array], Array]:
    """Compute codes (rows, k) by block and basis (k, features) from k singular triplets.

    The larger one of the positive and negative parts of each triplet is kept; other entries are
    zero. If X has fewer than k triplets, the remaining components are zero. So is a feature whose
    entries are only rounding errors, as of pixels that are always black.
    """
    xp = namespace(engine.like)
    missing = max(0, k - singular.shape[0])
    empty = on_device_of(engine.like, np.zeros((missing, right.shape[1])), right.dtype)
    singular = xp.concat([singular[:k], empty[:, 0]])
    right = xp.concat([right[:k, :], empty])
    # A singular value that is only a rounding error has no left vector; its component is zero.
    real = singular > eps(singular) ** 0.5 * xp.max(singular)
    inverse = xp.where(real, 1.0 / floored(singular), xp.zeros_like(singular))

    def left_parts(block: Block, weight: Array) -> tuple[Array, Array]:
        left = block.project((right * inverse[:, None])[None, ...])[0, ...]
        root = xp.astype(weight**0.5, left.dtype)[:, None]
        return left, _part_norms(left * root, axis=0)

    left, left_squares = engine.map_blocks(left_parts, counts)
    left_norms = left_squares**0.5
    right_norms = _part_norms(right, axis=1) ** 0.5
    sizes = left_norms * right_norms
    negative = sizes[1, :] > sizes[0, :]
    sign = xp.where(negative, -xp.ones_like(singular), xp.ones_like(singular))
    size = xp.where(negative, sizes[1, :], sizes[0, :])
    root = (singular * size) ** 0.5

    def unit(norms: Array) -> Array:
        return sign / floored(xp.where(negative, norms[1, :], norms[0, :]))

    left_units = unit(left_norms)

    def scale(block: Block, parts: Array) -> tuple[Array, None]:
        return at_least(parts * left_units, 0.0) * root, None

    codes = engine.map_blocks(scale, left, data=False)[0]
    basis = at_least(right * unit(right_norms)[:, None], 0.0) * root[:, None]

    def totals(block: Block, parts: Array) -> tuple[None, Array]:
        return None, block.cross(xp.ones_like(parts[:, :1])[None, ...])[0, ...]

    is_used = engine.map_blocks(totals, left)[1] > 0
    return codes, xp.where(is_used, basis, xp.zeros_like(basis))


def fill_zeros(
    engine: Engine, k: int, seed: int, entry: float, codes: list[Array], basis: Array
) -> tuple[list[Array], Array]:
    """Replace zeros of both factors by ``sqrt(entry / k)``, the factors of a constant table.

    Components of zeros get a random basis.
    """
    xp = namespace(engine.like)
    fill = (entry / k) ** 0.5
    uniform = 2.0 - 2.0 * np.random.default_rng(seed).random(basis.shape)
    varied = on_device_of(engine.like, fill * uniform, basis.dtype)
    empty = xp.max(basis, axis=1, keepdims=True) <= 0
    basis = xp.where(empty, varied, basis)

    def replace_zeros(factor: Array) -> Array:
        return xp.where(factor > 0, factor, xp.full_like(factor, fill))

    codes = engine.map_blocks(lambda block, part: (replace_zeros(part), None), codes, data=False)[0]
    return codes, replace_zeros(basis)


def _part_norms(vectors: Array, axis: int) -> Array:
    """Compute squared norms of the positive and the negative parts of vectors (2, vectors)."""
    xp = namespace(vectors)
    parts = (at_least(vectors, 0.0), at_least(-vectors, 0.0))
    return xp.stack([xp.sum(part**2, axis=axis) for part in parts])
