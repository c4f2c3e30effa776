r"""Multiplicative updates: the paper's equations 18 and 19.

.. math:: f \leftarrow f \odot \left(\frac{N}{P}\right)^e

with N and P the negative and positive part of the gradient. Lee and Seung, *Algorithms
for non-negative matrix factorization*, NIPS 2000.
"""

from __future__ import annotations

from robustnmf.arrays import Array, floored, namespace, smallest
from robustnmf.solvers._terms import Terms


class Multiplicative:
    """Update rule of Lee and Seung; zeros stay zeros, nothing turns negative."""

    keeps_zeros = True

    def step(self, factor: Array, terms: Terms, exponent: float) -> Array:
        """One update of a factor whose rows are independent."""
        negative, positive = terms.parts(factor)
        # Multiplied before it is divided: a tiny entry has an equally tiny denominator.
        if exponent == 1.0:
            moved = factor * negative / floored(positive)
        else:
            moved = factor * (negative / floored(positive)) ** exponent
        # What has died down below the normal numbers is zero: processors are slow with those.
        return namespace(moved).where(moved < smallest(moved), 0 * moved, moved)
