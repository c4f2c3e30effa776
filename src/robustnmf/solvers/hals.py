r"""Coordinate descent by columns (HALS), several sweeps for each Gram matrix.

.. math:: f_j \leftarrow \max\Big(0,\; f_j + \frac{l_j - (f G)_j}{G_{jj}}\Big)

with :math:`l = X C^T` and :math:`G = C C^T` for the codes, :math:`l = X^T w A` and
:math:`G = A^T w A` for the basis. Sweeps cost little beside the products with X, so there are
several (Gillis and Glineur, *Accelerated multiplicative updates and hierarchical ALS
algorithms for nonnegative matrix factorization*, Neural Computation 24(4), 2012).

Where entries have weights of their own or are missing, the Gram matrix differs from row to row.
The majorant that takes the present approximation for the missing part of an entry,
:math:`\omega (x - y)^2 + (1 - \omega)(y_0 - y)^2`, has one Gram matrix for all of them and the
same gradient.
"""

from __future__ import annotations

from robustnmf.arrays import Array, namespace, smallest, sweep_coordinates
from robustnmf.solvers._base import Solver
from robustnmf.solvers._terms import Terms

SWEEPS = 8
FADE = 0.5


class Hals(Solver):
    """Exact minimum over one coordinate after the other, a few times."""

    quadratic = True
    extrapolates = True

    def step(self, factor: Array, terms: Terms, exponent: float) -> Array:
        """New factor; the exponent of multiplicative updates has no meaning here."""
        problem = terms.majorant(factor)
        paid = not isinstance(problem.lasso, float) or problem.lasso > 0
        linear = problem.linear - problem.lasso if paid else problem.linear
        moved = sweep_coordinates(
            factor, linear, problem.gram, SWEEPS, problem.fixed, problem.present
        )
        if problem.present is None:
            return moved
        # A column on which the loss does not depend pays for nothing. It fades rather than goes at
        # once: where the other factor is zero for a pass or two, it may still be of use.
        xp = namespace(moved)
        faded = xp.where(moved > smallest(moved) ** 0.5, FADE * moved, xp.zeros_like(moved))
        return xp.where(problem.present[:, None, :], moved, faded)
