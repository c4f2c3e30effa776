r"""A pass for the squared error with one weight per row.

Weights of rows cancel in the update of the codes, and the energies are computed from the
Gram matrix of the basis. So robust and plain NMF both take two products,
:math:`X C^T` and :math:`A^T w X`, with a block that is read once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from robustnmf.arrays import (
    Array,
    Block,
    arange_like,
    as_float64,
    at_least,
    eps,
    floored,
    identity_like,
    masked_scatter,
    namespace,
)
from robustnmf.loop.passes._base import Pass
from robustnmf.solvers import (
    CHUNK_NUMBERS,
    Penalty,
    Quadratic,
    by_coordinates,
    nonnegative_least_squares,
    refine,
)
from robustnmf.weightings import Batch

CLOSE = 1e-6

PRECISION = 0.1
"""Error of codes, in units of the rounding error of X."""


class Rest(NamedTuple):
    """The terms of the energies (members, rows) that depend on the codes."""

    rest: Array


class GramPass(Pass):
    """Pass for the squared error of complete rows; its cache is ``X basis^T`` (members, rows, k).

    A plain multiplicative step updates codes and that product together; its cache is ``Rest``.
    """

    quadratic = True

    def evaluate(self, block: Block, codes: Array) -> tuple[Array, Array]:
        return codes, block.project(self.basis)

    def update_codes(self, block: Block, codes: Array, weighting: Batch) -> tuple[Array, Any]:
        if self.multiplies and not self.penalty:
            codes, rest = block.multiplicative_update(codes, self.basis, self.gram)
            return codes, Rest(rest)
        cache = block.project(self.basis)
        terms = Quadratic(cache, self.gram)
        if self.penalty:
            gram = self.gram + self.penalty.gram(self.gram)
            terms = Quadratic(cache, gram, self.penalty.lasso, present=self.present)
        return self.update(codes, terms), cache

    def encode(self, block: Block, weighting: Batch) -> tuple[Array, Array]:
        xp = namespace(self.basis)
        precision = PRECISION * eps(self.basis)
        codes = [
            _encode(block, as_float64(self.basis[j, ...]), self.penalty.of(j), precision)
            for j in range(self.basis.shape[0])
        ]
        return self.evaluate(block, xp.astype(xp.stack(codes), self.basis.dtype, copy=False))

    def energies(self, block: Block, codes: Array, cache: Array | Rest) -> Array:
        known = isinstance(cache, Rest)
        rest = cache.rest if known else block.kernels.quadratic_part(codes, cache, self.gram)
        return self.loss.expanded_energies(block, codes, self.basis, rest)

    def sums(self, block: Block, codes: Array, weights: Array, cache: Any) -> tuple[Array, Array]:
        return block.weighted_sums(codes, weights)


def _encode(block: Block, basis: Array, penalty: Penalty, precision: float) -> Array:
    """Compute codes (rows, k) by least squares; refine rows that are fitted almost exactly."""
    xp = namespace(basis)
    gram = basis @ basis.T
    linear = block.wide_project(basis.T)  # float64, so that rounding does not depend on other rows
    if penalty:
        return _penalised_codes(linear - penalty.lasso, gram, penalty)
    codes = nonnegative_least_squares(linear, gram, precision=precision)
    sq_residuals = block.sq_norms + xp.vecdot(codes, codes @ gram - 2 * linear)
    close = sq_residuals < CLOSE * block.sq_norms
    (rows,) = xp.nonzero(close)
    if not rows.shape[0]:
        return codes
    step = max(1, CHUNK_NUMBERS // basis.shape[1])
    chunks = [rows[at : min(at + step, rows.shape[0])] for at in range(0, rows.shape[0], step)]
    refined = xp.concat([_refine(block, basis, gram, codes, chunk) for chunk in chunks])
    return masked_scatter(codes.T, close, refined.T).T


def _penalised_codes(linear: Array, gram: Array, penalty: Penalty) -> Array:
    """Compute codes (rows, k) under a penalty, which is not convex with an overlap penalty.

    In this case it is solved from two starts, all components and the best single one; every row
    takes the better minimum.
    """
    xp = namespace(linear)
    full = gram + as_float64(penalty.gram(gram))[0, ...]
    from_all = nonnegative_least_squares(linear, gram + penalty.ridge * identity_like(gram))
    if penalty.overlap_penalty is None:
        return from_all
    diagonal = xp.linalg.diagonal(full)
    single = xp.where(diagonal > 0, at_least(linear, 0.0) / floored(diagonal), 0 * linear)
    gain = single * linear
    # The largest one of parallel components, because a tiny component would need huge codes.
    is_best = gain >= (1 - 1e-9) * xp.max(gain, axis=1, keepdims=True)
    best = xp.argmax(xp.where(is_best, diagonal, -1 + 0 * linear), axis=1)
    single = xp.where(arange_like(gram.shape[0], gram) == best[:, None], single, 0 * single)
    minima = [by_coordinates(linear, full, codes) for codes in (from_all, single)]
    value_of_all, value_of_single = (
        xp.vecdot(codes, 0.5 * codes @ full - linear) for codes in minima
    )
    # Both values are negative; if they agree to rounding, the single component is taken.
    return xp.where((value_of_all < (1 + 1e-9) * value_of_single)[:, None], *minima)


def _refine(block: Block, basis: Array, gram: Array, codes: Array, rows: Array) -> Array:
    """Improve codes (chosen, k) by a Newton step from the residual, if that lowers it."""
    xp = namespace(basis)
    data, codes = as_float64(block.take(rows)), xp.take(codes, rows, axis=0)
    residual = data - codes @ basis
    refined = refine(codes, residual @ basis.T, gram)
    before, after = (xp.sum(r**2, axis=1) for r in (residual, data - refined @ basis))
    return xp.where((after < before)[:, None], refined, codes)
