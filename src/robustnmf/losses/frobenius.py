r"""Squared error, :math:`\sum_j (x_j - y_j)^2`: the loss of the paper."""

from __future__ import annotations

from typing import Any

from robustnmf.arrays import Array, energy_rounding, eps, measured_again, namespace
from robustnmf.losses._base import Loss


class Frobenius(Loss):
    r"""Squared Euclidean distance between a row and its approximation.

    .. math:: z_i = \sum_j \big(x_{ij} - (AC)_{ij}\big)^2

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import Frobenius
    >>> Frobenius().entries(np.array([1.0, 2.0]), np.array([1.0, 5.0]))
    array([0., 9.])
    """

    degree = 2.0
    unit = 2.0
    quadratic = True

    def entries(self, data: Array, approximation: Array) -> Array:
        return (data - approximation) ** 2

    def split(self, data: Array, approximation: Array) -> tuple[Array, Array]:
        return data, approximation

    def curvature(self, data: Array, approximation: Array) -> Array:
        return namespace(approximation).ones_like(approximation)

    def expanded_energies(self, block: Any, codes: Array, basis: Array, rest: Array) -> Array:
        """Energies without the residual, ``|x|^2 + |a C|^2 - 2 a.(x C^T)``, over known entries.

        ``rest`` (members, rows) are the terms with codes. The three cancel when a row is fitted
        well, and an absolute error of ``eps |x|^2`` is left. Rows below ``sqrt(eps) |x|^2``,
        where that would show in the weights, are measured again from their residual.
        """
        xp = namespace(codes)
        energies = block.sq_norms + block.as_whole(rest)
        doubtful = energies < eps(codes) ** 0.5 * block.sq_norms
        energies = measured_again(block, energies, doubtful, codes, basis)
        return xp.maximum(energies, energy_rounding(codes) * block.sq_norms)
