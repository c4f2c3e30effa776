r"""L2,1 norm: the sum of the residual norms of the rows.

Kong, Ding and Huang, *Robust nonnegative matrix factorization using L21-norm*,
CIKM 2011.
"""

from __future__ import annotations

from robustnmf.arrays import Array, floored, namespace
from robustnmf.weightings._base import Separable


class L21(Separable):
    r"""Residual norms in place of squared norms.

    Use it for heavy tails rather than outliers; there is no parameter to choose.

    .. math:: \phi(z) = \sum_i \sqrt{z_i}, \qquad w_i = \frac{1}{2 \sqrt{z_i}}

    Examples
    --------
    >>> from robustnmf import L21
    >>> L21().weights([1.0, 100.0])
    array([0.5 , 0.05])
    """

    degree = 0.5

    def rho(self, energies: Array) -> Array:
        return namespace(energies).sqrt(energies)

    def weight(self, energies: Array) -> Array:
        return 0.5 / namespace(energies).sqrt(floored(energies))
