r"""Alpha divergence; includes Hellinger (1/2), Kullback-Leibler (1) and Pearson (2).

.. math:: a \leftarrow a \odot \left(\frac{(X / Y)^\alpha C^T}{1 C^T}\right)^{1/\alpha}

with the full denominator. Published code leaves out the sums of the components, which is
correct only while they are normalised. Cichocki, Lee, Kim and Choi, *Non-negative matrix
factorization with alpha-divergence*, Pattern Recognition Letters 29(9), 2008.
"""

from __future__ import annotations

from numbers import Real

from sklearn.utils._param_validation import Interval

from robustnmf.arrays import Array, positive
from robustnmf.losses._base import Loss, kullback_leibler, power_excess


class Alpha(Loss):
    r"""Alpha divergence: 1 is Kullback-Leibler, 1/2 is four times the squared Hellinger distance.

    .. math::

        d(x, y) = \frac{x^\alpha y^{1 - \alpha} - \alpha x + (\alpha - 1) y}
        {\alpha (\alpha - 1)}

    Parameters
    ----------
    alpha : float other than 0, default=0.5
        Order of the divergence. X must be positive if alpha is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import Alpha
    >>> Alpha(alpha=0.5).entries(np.array([0.0, 4.0]), np.array([1.0, 1.0]))
    array([2., 2.])
    """

    degree = 1.0
    _parameter_constraints = {
        "alpha": [
            Interval(Real, None, 0, closed="neither"),
            Interval(Real, 0, None, closed="neither"),
        ]
    }

    def __init__(self, alpha: float = 0.5):
        self.alpha = alpha

    @property
    def exponent(self) -> float:  # type: ignore[override]
        """Exponent of the multiplicative update with which the loss never increases."""
        return 1.0 / abs(self.alpha)

    @property
    def curved_exponent(self) -> float:  # type: ignore[override]
        """The same exponent for the loss plus a quadratic penalty."""
        return 1.0 / (1.0 + self.alpha) if self.alpha > 0 else min(self.exponent, 1.0)

    @property
    def unit(self) -> float:  # type: ignore[override]
        """Ratio of the derivative of the loss to the difference of the parts of its gradient."""
        return 1.0 / abs(self.alpha)

    @property
    def takes_zeros(self) -> bool:  # type: ignore[override]
        """Whether entries of X can be zero."""
        return self.alpha > 0

    @property
    def slope_at_zero(self) -> float | None:  # type: ignore[override]
        """Slope of the loss at x = 0."""
        return 1.0 / self.alpha if self.alpha > 0 else None

    def entries(self, data: Array, approximation: Array) -> Array:
        a, y = self.alpha, positive(approximation)
        if a == 1:
            return kullback_leibler(data, approximation)
        terms = y * (data / y) ** a - a * data + (a - 1) * y
        return power_excess(data, y, a, y, terms / (a * (a - 1)))

    def split(self, data: Array, approximation: Array) -> tuple[Array | None, Array | None]:
        ratio = (data / positive(approximation)) ** self.alpha
        return (ratio, None) if self.alpha > 0 else (None, ratio)

    def curvature(self, data: Array, approximation: Array) -> Array:
        y = positive(approximation)
        return abs(self.alpha) * (data / y) ** self.alpha / y
