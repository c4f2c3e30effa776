r"""Entropy weights: equations 20 and 26 of the paper.

Minimising :math:`\sum_i Q_i z_i + \gamma \sum_i Q_i \ln Q_i` over
:math:`\sum_i Q_i = 1` gives :math:`Q_i \propto e^{-z_i / \gamma}`; put back, it is
a function of z alone.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from robustnmf.arrays import Array
from robustnmf.weightings._histogram import EnergyHistogram
from robustnmf.weightings._softmin import SoftMin

SOFTNESS = 2.0
"""Automatic gamma over the median energy."""


class Entropy(SoftMin):
    r"""Importances that fall exponentially with the energy.

    Use it for the paper's EWRNMF; weights are smooth, and never zero all at once.

    .. math::

        \phi(z) = -\gamma \ln \sum_i e^{-z_i / \gamma}, \qquad
        w_i = Q_i = \frac{e^{-z_i / \gamma}}{\sum_l e^{-z_l / \gamma}}

    Parameters
    ----------
    gamma : float > 0 or "auto", default="auto"
        Energy over which an importance falls by a factor e, in the squared units of
        X. Large values approach equal importances, small ones collapse the fit
        onto a few samples. "auto" is twice the median energy (at least a hundredth of the
        median squared norm) in the first passes, and is then frozen: half of
        the samples have an importance within a factor 1.65 of the largest.

    Examples
    --------
    >>> from robustnmf import Entropy
    >>> Entropy(gamma=1.0).importances([0.0, 1.0]).round(3)
    array([0.731, 0.269])
    """

    scales = {"gamma": 1.0}
    knob = "gamma"
    needs_warmup = True
    _parameter_constraints = {
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})]
    }

    gamma: Any  # a name, a number or a column

    def __init__(self, gamma: float | str = "auto"):
        self.gamma = gamma

    def score(self, energies: Array) -> Array:
        return -energies / self.gamma

    def outer(self, log_sum: Array) -> Array:
        return -self.gamma * log_sum

    @property
    def has_auto(self) -> bool:
        return isinstance(self.gamma, str)

    def resolve_auto(self, histogram: EnergyHistogram) -> Entropy:
        return Entropy(gamma=SOFTNESS * histogram.typical)
