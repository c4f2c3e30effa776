r"""Multiplicative updates: the paper's equations 18 and 19.

.. math:: f \leftarrow f \odot \left(\frac{N}{P}\right)^e

with N and P the negative and positive part of the gradient. Lee and Seung, *Algorithms
for non-negative matrix factorization*, NIPS 2000.

Extrapolated, a factor first runs on where it has been growing,

.. math:: f' = f + b \max(f - f_{before}, 0)

and the update is taken from there: Hien, Leplat and Gillis, *Block majorization minimization
with extrapolation and application to beta-NMF*, 2024, for losses that are jointly convex. The
loop takes a step back that raises the objective, so that the others may try as well.
"""

from __future__ import annotations

from robustnmf.arrays import Array, at_least, floored, multiplied, namespace
from robustnmf.solvers._base import Solver
from robustnmf.solvers._terms import Terms


class Multiplicative(Solver):
    """Update rule of Lee and Seung; zeros stay zeros, nothing turns negative."""

    keeps_zeros = True
    multiplies = True

    def step(self, factor: Array, terms: Terms, exponent: float) -> Array:
        """One update of a factor whose rows are independent."""
        negative, positive = terms.parts(factor)
        if exponent == 1.0:
            return multiplied(factor, negative, positive)
        ratio = (negative / floored(positive)) ** exponent
        return multiplied(factor, ratio, namespace(ratio).ones_like(ratio[:1, :1, :1]))


class ExtrapolatedMultiplicative(Multiplicative):
    """The same update from where a factor runs on to; entries that shrink are left alone."""

    extrapolates = True
    extrapolates_codes = True

    def extrapolate(self, factor: Array, before: Array, momentum: Array) -> Array:
        return factor + momentum * at_least(factor - before, 0.0)
