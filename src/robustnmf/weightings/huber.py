r"""Huber loss of every entry of the residual.

Du, Li and Shen, *Robust nonnegative matrix factorization via half-quadratic
minimization*, ICDM 2012.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from robustnmf.arrays import Array, at_least, at_most, namespace
from robustnmf.weightings._base import Separable
from robustnmf.weightings._histogram import EnergyHistogram

EFFICIENT = 1.345
"""Standard deviations beyond which residuals count linearly: 95% efficient on clean data."""


class Huber(Separable):
    r"""Squared residuals up to ``cutoff``, absolute residuals beyond; per entry.

    Use it for bad entries in good samples, such as bad pixels in good images.

    With :math:`z` the energy (squared residual) of one entry,

    .. math::

        \phi(z) = \sum \begin{cases} z & \sqrt z \le c \\
        2 c \sqrt z - c^2 & \sqrt z > c \end{cases},
        \qquad w = \min\left(1, \frac{c}{\sqrt z}\right)

    Parameters
    ----------
    cutoff : float > 0 or "auto", default="auto"
        Residual, in the units of X, from which an entry counts linearly. "auto" is 1.345 times
        the root mean square residual of the median sample in the first passes, and then frozen.

    Examples
    --------
    >>> from robustnmf import Huber
    >>> Huber(cutoff=1.0).weights([0.25, 100.0])
    array([1. , 0.1])
    """

    per_entry = True
    entry_loop = "huber"
    scales = {"cutoff": 0.5}
    knob = "cutoff"
    _parameter_constraints = {
        "cutoff": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})]
    }

    cutoff: Any  # a name, a number or a column

    def __init__(self, cutoff: float | str = "auto"):
        self.cutoff = cutoff

    @property
    def has_auto(self) -> bool:
        return isinstance(self.cutoff, str)

    def resolve_auto(self, histogram: EnergyHistogram) -> Huber:
        return Huber(cutoff=EFFICIENT * (histogram.typical / histogram.features) ** 0.5)

    def rho(self, energies: Array) -> Array:
        residual = namespace(energies).sqrt(energies)
        capped = at_most(residual, self.cutoff)
        return capped * (2 * residual - capped)

    def weight(self, energies: Array) -> Array:
        return self.cutoff / at_least(namespace(energies).sqrt(energies), self.cutoff)
