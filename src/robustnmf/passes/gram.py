r"""A pass for the squared error with one weight a row.

Weights of rows cancel in the update of the codes, and the energies follow from the
Gram matrix of the basis, so robust and plain NMF cost the same two products,
:math:`X C^T` and :math:`A^T w X`, on a block that is read once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from robustnmf.arrays import (
    Array,
    arange_like,
    as_float64,
    at_least,
    floored,
    identity_like,
    masked_scatter,
    namespace,
    quadratic_part,
)
from robustnmf.passes._base import Pass
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


class Rest(NamedTuple):
    """The terms of the energies (members, rows) that codes have a part in."""

    rest: Array


class GramPass(Pass):
    """What it sees of a block is the projection of the rows on the basis.

    Or what becomes of that in the energies, where codes were moved along with the product.
    """

    quadratic = True

    def evaluate(self, block: Any, codes: Array) -> tuple[Array, Array]:
        return codes, block.project(self.basis)

    def update_codes(self, block: Any, codes: Array, weighting: Batch) -> tuple[Array, Any]:
        if self.multiplies and not self.penalty:
            found = block.multiplied(codes, self.basis, self.gram)
            if found is not None:
                return found[0], Rest(found[1])
        cache = block.project(self.basis)
        return self.update(codes, self._terms(cache)), cache

    def _terms(self, projected: Array) -> Quadratic:
        terms = Quadratic(projected, self.gram)
        if not self.penalty:
            return terms
        gram = self.gram + self.penalty.gram(self.gram)
        return Quadratic(projected, gram, self.penalty.lasso, present=self.present)

    def encode(self, block: Any, weighting: Batch) -> tuple[Array, Array]:
        xp = namespace(self.basis)
        codes = [
            _encode(block, as_float64(self.basis[j, ...]), self.penalty.of(j))
            for j in range(self.basis.shape[0])
        ]
        return self.evaluate(block, xp.astype(xp.stack(codes), self.basis.dtype, copy=False))

    def energies(self, block: Any, codes: Array, cache: Array | Rest) -> Array:
        rest = cache.rest if isinstance(cache, Rest) else quadratic_part(codes, cache, self.gram)
        return self.loss.expanded_energies(block, codes, self.basis, rest)

    def sums(self, block: Any, codes: Array, weights: Array, cache: Any) -> tuple[Array, Array]:
        return block.weighted_sums(codes, weights)


def _encode(block: Any, basis: Array, penalty: Penalty) -> Array:
    """Codes (rows, k) by least squares, refined where a row is fitted almost exactly."""
    xp = namespace(basis)
    gram = basis @ basis.T
    linear = block.wide_project(basis.T)  # rounding must not tell a row what company it is in
    if penalty:
        return _penalised_codes(linear - penalty.lasso, gram, penalty)
    codes = nonnegative_least_squares(linear, gram)
    left = block.sq_norms + xp.vecdot(codes, codes @ gram - 2 * linear)
    close = left < CLOSE * block.sq_norms
    (rows,) = xp.nonzero(close)
    if not rows.shape[0]:
        return codes
    step = max(1, CHUNK_NUMBERS // basis.shape[1])
    chunks = [rows[at : min(at + step, rows.shape[0])] for at in range(0, rows.shape[0], step)]
    finer = xp.concat([_refined(block, basis, gram, codes, chunk) for chunk in chunks])
    return masked_scatter(codes.T, close, finer.T).T


def _penalised_codes(linear: Array, gram: Array, penalty: Penalty) -> Array:
    """Codes that also pay. Where components pay for company, the problem is not convex.

    It is solved from two sides, from all components and from the best single one; every row
    takes the better end.
    """
    xp = namespace(linear)
    full = gram + as_float64(penalty.gram(gram))[0, ...]
    together = nonnegative_least_squares(
        linear,
        gram + penalty.ridge * identity_like(gram),
    )
    if penalty.overlap_penalty is None:
        return together
    diagonal = xp.linalg.diagonal(full)
    single = xp.where(diagonal > 0, at_least(linear, 0.0) / floored(diagonal), 0 * linear)
    gain = single * linear
    # Among parallel components the largest: one that has died down would need giant codes.
    is_best = gain >= (1 - 1e-9) * xp.max(gain, axis=1, keepdims=True)
    best = xp.argmax(xp.where(is_best, diagonal, -1 + 0 * linear), axis=1)
    single = xp.where(arange_like(gram.shape[0], gram) == best[:, None], single, 0 * single)
    ends = [by_coordinates(linear, full, codes) for codes in (together, single)]
    down, up = (xp.vecdot(codes, 0.5 * codes @ full - linear) for codes in ends)
    # Both are negative, and where they agree to rounding a single component is the answer.
    return xp.where((down < (1 + 1e-9) * up)[:, None], *ends)


def _refined(block: Any, basis: Array, gram: Array, codes: Array, rows: Array) -> Array:
    """Codes of these rows after a Newton step from their residual, where that helps."""
    xp = namespace(basis)
    data, codes = as_float64(block.take(rows)), xp.take(codes, rows, axis=0)
    residual = data - codes @ basis
    finer = refine(codes, residual @ basis.T, gram)
    before, after = (xp.sum(r**2, axis=1) for r in (residual, data - finer @ basis))
    return xp.where((after < before)[:, None], finer, codes)
