r"""Fuzzy weights: equations 10 and 16 of the paper.

Minimising :math:`\sum_i Q_i^p z_i` over :math:`\sum_i Q_i = 1` gives
:math:`Q_i \propto z_i^{-1/(p-1)}`; put back, it is a function of z alone.
"""

from __future__ import annotations

from numbers import Real

from sklearn.utils._param_validation import Interval

from robustnmf.arrays import Array, namespace, safe_log
from robustnmf.weightings._base import SoftMin


class Fuzzy(SoftMin):
    r"""Fuzzy importances, sharper the closer ``p`` is to one.

    .. math::

        \phi(z) = \Big(\sum_i z_i^{-1/(p-1)}\Big)^{-(p-1)}, \qquad
        Q_i = \frac{z_i^{-1/(p-1)}}{\sum_l z_l^{-1/(p-1)}}, \qquad w_i = Q_i^p

    A sample that is fitted exactly takes all the weight, so small ``p`` can
    collapse a fit onto a few samples; a warning then says so.

    Parameters
    ----------
    p : float > 1, default=11.0
        Fuzziness. Large values approach equal importances.

    Examples
    --------
    >>> from robustnmf import Fuzzy
    >>> Fuzzy(p=2).importances([1.0, 4.0])
    array([0.8, 0.2])
    """

    knob = "p"
    _parameter_constraints = {"p": [Interval(Real, 1, None, closed="neither")]}

    def __init__(self, p: float = 11.0):
        self.p = p

    def score(self, energies: Array) -> Array:
        return -safe_log(energies) / (self.p - 1)

    def outer(self, log_sum: Array) -> Array:
        return namespace(log_sum).exp(-(self.p - 1) * log_sum)

    @property
    def power(self) -> Array | float:
        return self.p
