r"""Update rules of a factor: coordinate descent (HALS) and multiplicative updates.

Coordinate descent by columns (HALS) makes several sweeps for each Gram matrix:

.. math:: f_j \leftarrow \max\Big(0,\; f_j + \frac{l_j - (f G)_j}{G_{jj}}\Big)

with :math:`l = X C^T` and :math:`G = C C^T` for the codes, :math:`l = X^T w A` and
:math:`G = A^T w A` for the basis. Several sweeps are made because they cost little compared with
the products with X (Gillis and Glineur, *Accelerated multiplicative updates and hierarchical ALS
algorithms for nonnegative matrix factorization*, Neural Computation 24(4), 2012).

If entries have weights or are missing, the Gram matrix differs from row to row.
The majorant :math:`\omega (x - y)^2 + (1 - \omega)(y_0 - y)^2`, which uses the current
approximation :math:`y_0` for the missing share of an entry, has one Gram matrix for all rows and
the same gradient.

Multiplicative updates are the paper's equations 18 and 19:

.. math:: f \leftarrow f \odot \left(\frac{N}{P}\right)^e

with N and P the negative and positive part of the gradient. Lee and Seung, *Algorithms
for non-negative matrix factorization*, NIPS 2000.

With extrapolation, entries of a factor that have grown are first extrapolated,

.. math:: f' = f + b \max(f - f_{before}, 0)

and the update starts from there: Hien, Leplat and Gillis, *Block majorization minimization
with extrapolation and application to beta-NMF*, 2024, for losses that are jointly convex. The
loop undoes steps that raise the objective, so that other losses can be extrapolated as well.
"""

from __future__ import annotations

from robustnmf.arrays import Array, at_least, floored, kernels_for, namespace, smallest
from robustnmf.solvers._base import Solver, Terms

SWEEPS = 8
FADE = 0.5


class Hals(Solver):
    """Minimise exactly over one coordinate after another, in several sweeps."""

    quadratic = True
    extrapolates = True

    def step(self, factor: Array, terms: Terms, exponent: float) -> Array:
        """Return the factor after several sweeps; the exponent is not used."""
        problem = terms.majorant(factor)
        linear = problem.linear
        if not isinstance(problem.lasso, float) or problem.lasso > 0:
            linear = linear - problem.lasso
        updated = kernels_for(factor).sweep_coordinates(
            factor, linear, problem.gram, SWEEPS, problem.fixed, problem.present
        )
        if problem.present is None:
            return updated
        # If the loss does not depend on a column, its minimum under the penalty is zero. The
        # column is halved instead: the other factor may be zero for only a pass or two.
        xp = namespace(updated)
        halved = xp.where(
            updated > smallest(updated) ** 0.5, FADE * updated, xp.zeros_like(updated)
        )
        return xp.where(problem.present[:, None, :], updated, halved)


class Multiplicative(Solver):
    """Update rule of Lee and Seung; zeros remain zero, and no entry becomes negative."""

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
    """Multiplicative update of an extrapolated factor; shrinking entries are not extrapolated."""

    extrapolates = True
    extrapolates_codes = True

    def extrapolate(self, factor: Array, before: Array, momentum: Array) -> Array:
        return factor + momentum * at_least(factor - before, 0.0)
