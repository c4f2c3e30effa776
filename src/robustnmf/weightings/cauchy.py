r"""Cauchy (Lorentzian) loss of the energy of every row."""

from __future__ import annotations

from numbers import Real

from sklearn.utils._param_validation import Interval

from robustnmf.arrays import Array, namespace
from robustnmf.weightings._base import Separable


class Cauchy(Separable):
    r"""Weights that fall like one over the energy: gentle on what is merely unusual.

    .. math::

        \phi(z) = s \sum_i \ln\left(1 + \frac{z_i}{s}\right), \qquad
        w_i = \frac{1}{1 + z_i / s}

    Parameters
    ----------
    scale : float > 0, default=1.0
        Energy at which a sample counts half, in the squared units of X.

    Examples
    --------
    >>> from robustnmf import Cauchy
    >>> Cauchy(scale=1.0).weights([0.0, 1.0, 99.0])
    array([1.  , 0.5 , 0.01])
    """

    scales = {"scale": 1.0}
    knob = "scale"
    _parameter_constraints = {"scale": [Interval(Real, 0, None, closed="neither")]}

    def __init__(self, scale: float = 1.0):
        self.scale = scale

    def rho(self, energies: Array) -> Array:
        return self.scale * namespace(energies).log1p(energies / self.scale)

    def slope(self, energies: Array) -> Array:
        return self.scale / (self.scale + energies)
