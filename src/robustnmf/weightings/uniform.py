r"""Plain NMF: :math:`\phi(z) = \sum_i z_i`, every weight one."""

from __future__ import annotations

from robustnmf.arrays import Array, namespace
from robustnmf.weightings._base import Separable


class Uniform(Separable):
    r"""Every sample counts the same: plain, non-robust NMF.

    Use it for data without outliers.

    .. math:: \phi(z) = \sum_i z_i, \qquad w_i = 1

    Examples
    --------
    >>> from robustnmf import Uniform
    >>> Uniform().weights([1.0, 100.0])
    array([1., 1.])
    """

    def rho(self, energies: Array) -> Array:
        return energies

    def weight(self, energies: Array) -> Array:
        return namespace(energies).ones_like(energies)
