r"""Cauchy (Lorentzian) loss of the energy of every row."""

from __future__ import annotations

from numbers import Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from robustnmf.arrays import Array, namespace
from robustnmf.weightings._base import Separable
from robustnmf.weightings._histogram import EnergyHistogram

SOFTNESS = 1.0
"""Automatic scale over the median energy."""


class Cauchy(Separable):
    r"""Weights that fall like one over the energy: mild for samples that are merely unusual.

    Use it for something between equal weights and weights that reject samples.

    .. math::

        \phi(z) = s \sum_i \ln\left(1 + \frac{z_i}{s}\right), \qquad
        w_i = \frac{1}{1 + z_i / s}

    Parameters
    ----------
    scale : float > 0 or "auto", default="auto"
        Energy at which a sample has half the weight, in the squared units of X. "auto" is the
        median energy (at least a hundredth of the median squared norm) in the first passes,
        and is then frozen: half of the samples have at least half the weight.

    Examples
    --------
    >>> from robustnmf import Cauchy
    >>> Cauchy(scale=1.0).weights([0.0, 1.0, 99.0])
    array([1.  , 0.5 , 0.01])
    """

    scales = {"scale": 1.0}
    knob = "scale"
    needs_warmup = True
    _parameter_constraints = {
        "scale": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})]
    }

    scale: Any  # a name, a number or a column

    def __init__(self, scale: float | str = "auto"):
        self.scale = scale

    @property
    def has_auto(self) -> bool:
        return isinstance(self.scale, str)

    def resolve_auto(self, histogram: EnergyHistogram) -> Cauchy:
        return Cauchy(scale=SOFTNESS * histogram.typical)

    def rho(self, energies: Array) -> Array:
        return self.scale * namespace(energies).log1p(energies / self.scale)

    def weight(self, energies: Array) -> Array:
        return self.scale / (self.scale + energies)
