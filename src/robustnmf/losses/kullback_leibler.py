r"""Kullback-Leibler divergence: the loss of counts."""

from __future__ import annotations

from robustnmf.arrays import Array, positive
from robustnmf.losses._base import Loss, kullback_leibler


class KullbackLeibler(Loss):
    r"""Generalised Kullback-Leibler divergence, for counts and intensities.

    .. math:: d(x, y) = x \ln \frac{x}{y} - x + y, \qquad d(0, y) = y

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import KullbackLeibler
    >>> KullbackLeibler().entries(np.array([0.0, 2.0, 2.0]), np.array([3.0, 2.0, 1.0])).round(3)
    array([3.   , 0.   , 0.386])
    """

    degree = 1.0
    curved_exponent = 0.5
    slope_at_zero = 1.0
    row_loop = "kullback_leibler_rows"
    divides = True

    def entries(self, data: Array, approximation: Array) -> Array:
        return kullback_leibler(data, approximation)

    def split(self, data: Array, approximation: Array) -> tuple[Array, None]:
        return data / positive(approximation), None

    def curvature(self, data: Array, approximation: Array) -> Array:
        y = positive(approximation)
        return data / y / y
