r"""Fuzzy weights: equations 10 and 16 of the paper.

Minimising :math:`\sum_i Q_i^p z_i` over :math:`\sum_i Q_i = 1` gives
:math:`Q_i \propto z_i^{-1/(p-1)}`; put back, it is a function of z alone.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from robustnmf.arrays import Array, namespace, safe_log
from robustnmf.weightings._histogram import EnergyHistogram
from robustnmf.weightings._softmin import SoftMin
from robustnmf.weightings._sums import ObjectiveSums

FALL, SOFTNESS = 0.8, 3.0
"""Automatic parameters: importances are the power ``-FALL / deviation`` of the energy plus
``SOFTNESS`` times the median energy, with the standard deviation of the log energies."""


class Fuzzy(SoftMin):
    r"""Fuzzy importances, sharper the closer ``p`` is to one.

    Use it for the paper's FWRNMF, which does not depend on units.

    .. math::

        \phi(z) = \Big(\sum_i z_i^{-1/(p-1)}\Big)^{-(p-1)}, \qquad
        Q_i = \frac{z_i^{-1/(p-1)}}{\sum_l z_l^{-1/(p-1)}}, \qquad w_i = Q_i^p

    A sample that is fitted exactly takes all the weight, so small ``p`` can
    collapse a fit onto a few samples; a warning then says so.

    Parameters
    ----------
    p : float > 1 or "auto", default="auto"
        Fuzziness. Large values approach equal importances. "auto" reads p and the offset off
        the energies in the first passes: p is larger the wider they are distributed, and the
        offset is three times the median energy, so that no sample can have all the weight.
    offset : float >= 0, default=0.0
        Added to every energy, in the squared units of X.

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

    @property
    def has_auto(self) -> bool:
        return isinstance(self.p, str)

    def resolve_auto(self, histogram: EnergyHistogram) -> Fuzzy:
        deviation = histogram.energies.core().deviation
        return Fuzzy(p=1.0 + deviation / FALL, offset=SOFTNESS * histogram.typical)

    def outer(self, log_sum: Array) -> Array:
        return namespace(log_sum).exp(-(self.p - 1) * log_sum)

    @property
    def power(self) -> Array | float:
        return self.p
