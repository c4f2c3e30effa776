r"""Beta divergence: squared error, Kullback-Leibler and Itakura-Saito in one family.

The multiplicative update with the exponent :math:`1 / (2 - \beta)` below 1, 1 on [1, 2] and
:math:`1 / (\beta - 1)` above 2 never raises it. Fevotte and Idier, *Algorithms for nonnegative
matrix factorization with the beta-divergence*, Neural Computation 23(9), 2011.
"""

from __future__ import annotations

from numbers import Real

from sklearn.utils._param_validation import Interval

from robustnmf.arrays import Array, at_least, namespace, positive
from robustnmf.losses._base import LEAST_CURVATURE, Loss, kullback_leibler, log_excess, power_excess


class BetaDivergence(Loss):
    """Formulas of the family; a subclass defines ``beta`` as a constant or as a parameter."""

    beta: float

    @property
    def degree(self) -> float:  # type: ignore[override]
        """Degree of homogeneity."""
        return float(self.beta)

    @property
    def exponent(self) -> float:  # type: ignore[override]
        """Exponent of the multiplicative update with which the loss never increases."""
        if self.beta < 1:
            return 1.0 / (2.0 - self.beta)
        return 1.0 if self.beta <= 2 else 1.0 / (self.beta - 1.0)

    @property
    def curved_exponent(self) -> float:  # type: ignore[override]
        """The same exponent for the loss plus a quadratic penalty."""
        return 1.0 / (3.0 - self.beta) if self.beta <= 2 else self.exponent

    @property
    def quadratic(self) -> bool:  # type: ignore[override]
        """Whether the loss is half the squared error."""
        return self.beta == 2

    @property
    def takes_zeros(self) -> bool:  # type: ignore[override]
        """Whether entries of X can be zero."""
        return self.beta > 0

    @property
    def slope_at_zero(self) -> float | None:  # type: ignore[override]
        """Slope of the loss at x = 0; only Kullback-Leibler has one."""
        return 1.0 if self.beta == 1 else None

    @property
    def row_loop(self) -> str | None:  # type: ignore[override]
        """Name of the compiled loop that sums the loss over rows, if there is one."""
        return {0.0: "itakura_saito_rows", 1.0: "kullback_leibler_rows"}.get(float(self.beta))

    @property
    def divides(self) -> bool:  # type: ignore[override]
        """Whether ``split`` returns ``x / y`` and ones, as for Kullback-Leibler."""
        return self.beta == 1

    def entries(self, data: Array, approximation: Array) -> Array:
        xp, b, y = namespace(data), self.beta, positive(approximation)
        if b == 0:
            return log_excess(data, y)
        if b == 1:
            return kullback_leibler(data, approximation)
        if b == 2:
            return 0.5 * (data - approximation) ** 2
        # For b <= 0 estimators reject zeros; here they are replaced to avoid division by zero.
        nonzero = data if b > 0 else xp.where(data > 0, data, xp.ones_like(data))
        unit = y**b
        terms = nonzero**b + (b - 1) * unit - b * data * y ** (b - 1)
        return power_excess(data, y, b, unit, terms / (b * (b - 1)))

    def split(self, data: Array, approximation: Array) -> tuple[Array | None, Array | None]:
        if self.quadratic:
            return data, approximation
        y = positive(approximation)
        if self.beta == 1:
            return data / y, None
        if self.beta == 0:
            inverse = 1.0 / y
            return data * inverse * inverse, inverse
        return data * y ** (self.beta - 2.0), y ** (self.beta - 1.0)

    def curvature(self, data: Array, approximation: Array) -> Array:
        if self.quadratic:
            return namespace(approximation).ones_like(approximation)
        y = positive(approximation)
        relative = (self.beta - 1.0) - (self.beta - 2.0) * data / y
        least = 0.0 if 1 <= self.beta <= 2 else LEAST_CURVATURE
        return at_least(relative, least) / y ** (2.0 - self.beta)


class Beta(BetaDivergence):
    r"""Beta divergence: 2 is half the squared error, 1 Kullback-Leibler, 0 Itakura-Saito.

    .. math::

        d(x, y) = \frac{x^\beta + (\beta - 1) y^\beta - \beta x y^{\beta - 1}}
        {\beta (\beta - 1)}

    Parameters
    ----------
    beta : float, default=1.5
        Order of the divergence. X must be positive if beta is zero or negative.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import Beta
    >>> Beta(beta=2.0).entries(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    array([0., 2.])
    """

    _parameter_constraints = {"beta": [Interval(Real, None, None, closed="neither")]}

    def __init__(self, beta: float = 1.5):
        self.beta = beta


class Frobenius(BetaDivergence):
    r"""Squared Euclidean distance between a sample and its approximation; the default.

    .. math:: z_i = \sum_j \big(x_{ij} - (AC)_{ij}\big)^2

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import Frobenius
    >>> Frobenius().entries(np.array([1.0, 2.0]), np.array([1.0, 5.0]))
    array([0., 9.])
    """

    beta = 2.0
    unit = 2.0

    def entries(self, data: Array, approximation: Array) -> Array:
        return (data - approximation) ** 2


class KullbackLeibler(BetaDivergence):
    r"""Generalised Kullback-Leibler divergence, for counts and intensities.

    .. math:: d(x, y) = x \ln \frac{x}{y} - x + y, \qquad d(0, y) = y

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import KullbackLeibler
    >>> KullbackLeibler().entries(np.array([0.0, 2.0, 2.0]), np.array([3.0, 2.0, 1.0])).round(3)
    array([3.   , 0.   , 0.386])
    """

    beta = 1.0


class ItakuraSaito(BetaDivergence):
    r"""Itakura-Saito divergence, for data with multiplicative noise; needs X > 0.

    .. math:: d(x, y) = \frac{x}{y} - \ln \frac{x}{y} - 1

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import ItakuraSaito
    >>> ItakuraSaito().entries(np.array([1.0, 10.0]), np.array([2.0, 20.0])).round(3)
    array([0.193, 0.193])
    """

    beta = 0.0
