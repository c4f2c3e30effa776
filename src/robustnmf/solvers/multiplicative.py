r"""Multiplicative updates: the paper's equations 18 and 19.

.. math:: f \leftarrow f \odot \left(\frac{N}{P}\right)^e

with N and P the negative and positive part of the gradient. Lee and Seung, *Algorithms
for non-negative matrix factorization*, NIPS 2000.

With extrapolation, the entries of a factor that have been growing are first extrapolated,

.. math:: f' = f + b \max(f - f_{before}, 0)

and the update is taken from there: Hien, Leplat and Gillis, *Block majorization minimization
with extrapolation and application to beta-NMF*, 2024, for losses that are jointly convex. The
loop undoes a step that raises the objective, so that other losses can be extrapolated as well.
"""

from __future__ import annotations

from robustnmf.arrays import Array, at_least, floored, kernels_for, namespace
from robustnmf.solvers._base import Solver
from robustnmf.solvers._terms import Terms


class Multiplicative(Solver):
    """Update rule of Lee and Seung; zeros stay zeros, and no entry becomes negative."""

    keeps_zeros = True
    multiplies = True

    def step(self, factor: Array, terms: Terms, exponent: float) -> Array:
        """Return the factor (members, rows, k) after one update."""
        negative, positive = terms.parts(factor)
        if exponent != 1.0:
            negative = (negative / floored(positive)) ** exponent
            positive = namespace(negative).ones_like(negative[:1, :1, :1])
        return kernels_for(factor).multiplicative_step(factor, negative, positive)


class ExtrapolatedMultiplicative(Multiplicative):
    """The same update from an extrapolated factor; entries that shrink are not extrapolated."""

    extrapolates = True
    extrapolates_codes = True

    def extrapolate(self, factor: Array, before: Array, momentum: Array) -> Array:
        return factor + momentum * at_least(factor - before, 0.0)
