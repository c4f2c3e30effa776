r"""Nonnegative double SVD start, from block sums alone.

For each leading singular triplet (u, s, v) the positive or the negative parts of u and
v, whichever pair is larger, start one component. Boutsidis and Gallopoulos, *SVD based
initialization*, Pattern Recognition 41(4), 2008. The subspace comes from a few rounds
of :math:`V \leftarrow \mathrm{orth}(X^T X V)`; these are the same two products that a
pass takes, so the start streams as the fit does. Permuting samples permutes it.

The SVD serves the largest rows first, so that a few huge ones take all its components. For the
``robust`` start no row counts for more than one of median norm would: a row of norm r counts
:math:`\min(1, (r_{med} / r)^2)` times in the SVD.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from robustnmf.arrays import Array, eps, floored, namespace, on_device_of

OVERSAMPLING = 10
ROUNDS = 7


Counts = Callable[[Any], Array]
"""How often every row of a block (rows,) counts in the SVD."""


def nndsvd(engine: Any, k: int, seed: int) -> tuple[Array, Array]:
    """Codes (n, k) and basis (k, m), with zeros where a part is cut off."""
    return _from_svd(engine, k, seed, lambda block: block.mass)


def _from_svd(engine: Any, k: int, seed: int, counts: Counts) -> tuple[Array, Array]:
    xp = namespace(engine.like)
    singular, right = _right_singular(engine, k, seed, counts)
    # A singular value that is rounding has no left vector; its component is left empty.
    real = singular > eps(singular) ** 0.5 * xp.max(singular)
    inverse = xp.where(real, 1.0 / floored(singular), xp.zeros_like(singular))

    def left_parts(block: Any, _: None) -> tuple[Array, Array]:
        left = block.project((right * inverse[:, None])[None, ...])[0, ...]
        root = xp.astype(counts(block) ** 0.5, left.dtype)[:, None]
        return left, _part_norms(left * root, axis=0)

    left, left_squares = engine.sweep(left_parts)
    left_norms = left_squares**0.5
    right_norms = _part_norms(right, axis=1) ** 0.5
    sizes = left_norms * right_norms
    negative = sizes[1, :] > sizes[0, :]
    sign = xp.where(negative, -xp.ones_like(singular), xp.ones_like(singular))
    size = xp.where(negative, sizes[1, :], sizes[0, :])
    root = (singular * size) ** 0.5

    def unit(norms: Array) -> Array:
        return sign / floored(xp.where(negative, norms[1, :], norms[0, :]))

    codes = xp.maximum(xp.concat(left) * unit(left_norms), 0.0) * root
    basis = xp.maximum(right * unit(right_norms)[:, None], 0.0) * root[:, None]
    return codes, basis


def nndsvda(engine: Any, k: int, seed: int) -> tuple[Array, Array]:
    """``nndsvd`` with zeros raised to the entry of a constant factorisation of mean X.

    The published variant fills with the mean of X itself, which does not scale as the
    factors do; its square root over k does. Components that the SVD leaves empty, because X
    has no such rank, get a random basis: filled alike, they would stay alike for ever.
    """
    return _filled(engine, k, seed, engine.mean(), *nndsvd(engine, k, seed))


def robust(engine: Any, k: int, seed: int) -> tuple[Array, Array]:
    """``nndsvda`` of an SVD in which no row counts for more than one of median norm."""
    limit = engine.typical_size

    def counts(block: Any) -> Array:
        return block.mass * limit / block.xp.maximum(block.sq_norms, limit)

    typical_entry = (limit / engine.shape[1]) ** 0.5
    return _filled(engine, k, seed, typical_entry, *_from_svd(engine, k, seed, counts))


def _filled(
    engine: Any, k: int, seed: int, entry: float, codes: Array, basis: Array
) -> tuple[Array, Array]:
    """The factors with zeros raised to those of a constant approximation of an entry."""
    xp = namespace(engine.like)
    fill = (entry / k) ** 0.5
    uniform = 2.0 - 2.0 * np.random.default_rng(seed).random(basis.shape)
    varied = on_device_of(engine.like, fill * uniform, basis.dtype)
    empty = xp.max(basis, axis=1, keepdims=True) <= 0
    basis = xp.where(empty, varied, basis)
    return tuple(xp.where(f > 0, f, xp.full_like(f, fill)) for f in (codes, basis))


def _right_singular(engine: Any, k: int, seed: int, counts: Counts) -> tuple[Array, Array]:
    """Leading k singular values, and right singular vectors as rows."""
    xp = namespace(engine.like)
    n, m = engine.shape
    size = min(k + OVERSAMPLING, n, m)
    guess = np.random.default_rng(seed).standard_normal((m, size))
    right = on_device_of(engine.like, guess, engine.like.dtype)

    def gram_times(block: Any, _: None) -> tuple[None, Array]:
        onto = block.project(right.T[None, ...])
        return None, block.cross(onto * xp.astype(counts(block), onto.dtype)[:, None])[0, ...]

    for _ in range(ROUNDS):
        right = xp.linalg.qr(right)[0]
        right = engine.sweep(gram_times)[1].T
    right = xp.linalg.qr(right)[0]
    projected = engine.sweep(gram_times)[1] @ right
    squares, rotation = xp.linalg.eigh(0.5 * (projected + projected.T))
    order = xp.argsort(squares, descending=True)[:k]
    singular = xp.maximum(xp.take(squares, order), 0.0) ** 0.5
    return singular, (right @ xp.take(rotation, order, axis=1)).T


def _part_norms(vectors: Array, axis: int) -> Array:
    """Squared norms of the positive and the negative parts (2, vectors)."""
    xp = namespace(vectors)
    parts = (xp.maximum(vectors, 0.0), xp.maximum(-vectors, 0.0))
    return xp.stack([xp.sum(part**2, axis=axis) for part in parts])
