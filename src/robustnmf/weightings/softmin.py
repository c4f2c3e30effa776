r"""Weightings of the paper, whose importances are a softmax of scores of the energies.

* Entropy, equations 20 and 26: minimising :math:`\sum_i Q_i z_i + \gamma \sum_i Q_i \ln Q_i` over
  :math:`\sum_i Q_i = 1` gives :math:`Q_i \propto e^{-z_i / \gamma}`.
* Fuzzy, equations 10 and 16: minimising :math:`\sum_i Q_i^p z_i` over :math:`\sum_i Q_i = 1` gives
  :math:`Q_i \propto z_i^{-1/(p-1)}`.

Inserting the minimiser gives a function of z alone in both cases.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from robustnmf.arrays import Array, EnergyHistogram, namespace, safe_log
from robustnmf.weightings._base import ObjectiveSums, SoftMin

ENTROPY_SOFTNESS = 2.0
"""Ratio of the automatic gamma to the median energy."""

FALL, FUZZY_SOFTNESS = 0.8, 3.0
"""Automatic parameters of Fuzzy. Importances are the energy plus ``FUZZY_SOFTNESS`` times the
median energy, to the power ``-FALL`` over the standard deviation of the log energies."""


class Entropy(SoftMin):
    r"""Importances that fall exponentially with the energy (reconstruction error) of a sample.

    Use it for the paper's EWRNMF. The weights are smooth, and never all zero.

    .. math::

        \phi(z) = -\gamma \ln \sum_i e^{-z_i / \gamma}, \qquad
        w_i = Q_i = \frac{e^{-z_i / \gamma}}{\sum_l e^{-z_l / \gamma}}

    Parameters
    ----------
    gamma : float > 0 or "auto", default="auto"
        Energy over which an importance falls by a factor e, in the squared units of
        X. Large values approach equal importances; small values reduce the fit
        to a few samples. "auto" is twice the median energy (at least a hundredth of the
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

    def resolve_auto(self, histogram: EnergyHistogram) -> Entropy:
        return Entropy(gamma=ENTROPY_SOFTNESS * histogram.typical)


class Fuzzy(SoftMin):
    r"""Fuzzy importances, which are sharper if ``p`` is closer to one.

    Use it for the paper's FWRNMF, which does not depend on the units of X.

    .. math::

        \phi(z) = \Big(\sum_i z_i^{-1/(p-1)}\Big)^{-(p-1)}, \qquad
        Q_i = \frac{z_i^{-1/(p-1)}}{\sum_l z_l^{-1/(p-1)}}, \qquad w_i = Q_i^p

    A sample that is fitted exactly has all the weight, so small ``p`` can
    reduce a fit to a few samples; a warning is then raised.

    Parameters
    ----------
    p : float > 1 or "auto", default="auto"
        Fuzziness. Large values approach equal importances. "auto" estimates p and the offset from
        the energies in the first passes: p is larger for a wider distribution of energies, and the
        offset is three times the median energy, so that no sample can have all the weight.
    offset : float >= 0, default=0.0
        Constant that is added to every energy, in the squared units of X.

    Examples
    --------
    >>> from robustnmf import Fuzzy
    >>> Fuzzy(p=2).importances([1.0, 4.0])
    array([0.8, 0.2])
    """

    knob = "p"
    needs_warmup = True
    scales = {"offset": 1.0}
    _parameter_constraints = {
        "p": [Interval(Real, 1, None, closed="neither"), StrOptions({"auto"})],
        "offset": [Interval(Real, 0, None, closed="left")],
    }

    p: Any  # a name, a number or a column
    offset: Any

    def __init__(self, p: float | str = "auto", offset: float = 0.0):
        self.p = p
        self.offset = offset

    def score(self, energies: Array) -> Array:
        return -safe_log(energies + self.offset) / (self.p - 1)

    def shifted_value_of(self, objective_sums: ObjectiveSums) -> Array:
        shifted = super().shifted_value_of(objective_sums) - self.offset
        return namespace(shifted).maximum(shifted, 0.0 * shifted)

    def resolve_auto(self, histogram: EnergyHistogram) -> Fuzzy:
        deviation = histogram.energies.core().deviation
        return Fuzzy(p=1.0 + deviation / FALL, offset=FUZZY_SOFTNESS * histogram.typical)

    def outer(self, log_sum: Array) -> Array:
        return namespace(log_sum).exp(-(self.p - 1) * log_sum)

    @property
    def power(self) -> Array | float:
        return self.p
