r"""Squared error, :math:`\sum_j (x_j - y_j)^2`: the loss of the paper."""

from __future__ import annotations

from robustnmf.arrays import Array, namespace
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
