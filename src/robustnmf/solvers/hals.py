r"""Coordinate descent by columns (HALS), several sweeps for each Gram matrix.

.. math:: f_j \leftarrow \max\Big(0,\; f_j + \frac{l_j - (f G)_j}{G_{jj}}\Big)

with :math:`l = X C^T` and :math:`G = C C^T` for the codes, :math:`l = X^T w A` and
:math:`G = A^T w A` for the basis. Sweeps cost little beside the products with X, so there are
several (Gillis and Glineur, *Accelerated multiplicative updates and hierarchical ALS
algorithms for nonnegative matrix factorization*, Neural Computation 24(4), 2012).

Where entries have weights or are missing, the Gram matrix differs from row to row.
The majorant that takes the current approximation for the missing part of an entry,
:math:`\omega (x - y)^2 + (1 - \omega)(y_0 - y)^2`, has one Gram matrix for all of them and the
same gradient.
"""

from __future__ import annotations

from robustnmf.arrays import Array, kernels_for, namespace, smallest
from robustnmf.solvers._base import Solver
from robustnmf.solvers._terms import Terms

SWEEPS = 8
FADE = 0.5


class Hals(Solver):
    """Minimise exactly over one coordinate after the other, in several sweeps."""

    sweeps = SWEEPS
    quadratic = True
    extrapolates = True

    def step(self, factor: Array, terms: Terms, exponent: float) -> Array:
        """Return the factor after several sweeps; the exponent is not used."""
        problem = terms.majorant(factor)
        has_lasso = not isinstance(problem.lasso, float) or problem.lasso > 0
        linear = problem.linear - problem.lasso if has_lasso else problem.linear
        updated = kernels_for(factor).sweep_coordinates(
            factor, linear, problem.gram, SWEEPS, problem.fixed, problem.present
        )
        if problem.present is None:
            return updated
        # The minimum of a column that the loss does not depend on is zero, by the penalty. It is
        # halved instead: where the other factor is zero for a pass or two, it may still be of use.
        xp = namespace(updated)
        halved = xp.where(
            updated > smallest(updated) ** 0.5, FADE * updated, xp.zeros_like(updated)
        )
        return xp.where(problem.present[:, None, :], updated, halved)
