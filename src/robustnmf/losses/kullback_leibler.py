r"""Kullback-Leibler divergence: the loss of counts."""

from __future__ import annotations

from robustnmf.arrays import Array, Block, positive
from robustnmf.losses._base import Loss, compiled, kullback_leibler


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

    def entries(self, data: Array, approximation: Array) -> Array:
        return kullback_leibler(data, approximation)

    def row_losses(self, block: Block, approximation: Array) -> Array:
        sums = compiled("kullback_leibler_rows", block, approximation, per_row=True)
        return super().row_losses(block, approximation) if sums is None else sums

    def split(self, data: Array, approximation: Array) -> tuple[Array, None]:
        return data / positive(approximation), None

    def split_block(self, block: Block, approximation: Array) -> tuple[Array | None, Array | None]:
        ratios = compiled("ratio_entries", block, approximation, per_row=False)
        return super().split_block(block, approximation) if ratios is None else (ratios, None)

    def curvature(self, data: Array, approximation: Array) -> Array:
        y = positive(approximation)
        return data / y / y
