r"""Itakura-Saito divergence: the loss of power spectra, independent of scale."""

from __future__ import annotations

from robustnmf.arrays import Array, at_least, positive
from robustnmf.losses._base import LEAST_CURVATURE, Loss, log_excess


class ItakuraSaito(Loss):
    r"""Itakura-Saito divergence, for data with multiplicative noise; needs X > 0.

    .. math:: d(x, y) = \frac{x}{y} - \ln \frac{x}{y} - 1

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import ItakuraSaito
    >>> ItakuraSaito().entries(np.array([1.0, 10.0]), np.array([2.0, 20.0])).round(3)
    array([0.193, 0.193])
    """

    degree = 0.0
    exponent = 0.5
    curved_exponent = 1.0 / 3.0
    takes_zeros = False
    row_loop = "itakura_saito_rows"

    def entries(self, data: Array, approximation: Array) -> Array:
        return log_excess(data, positive(approximation))

    def split(self, data: Array, approximation: Array) -> tuple[Array, Array]:
        inverse = 1.0 / positive(approximation)
        return data * inverse * inverse, inverse

    def curvature(self, data: Array, approximation: Array) -> Array:
        y = positive(approximation)
        return at_least(2 * data / y - 1, LEAST_CURVATURE) / y**2
