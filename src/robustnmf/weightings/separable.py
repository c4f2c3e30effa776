r"""Weightings whose objective is a sum over samples, or over entries.

* L2,1 norm: Kong, Ding and Huang, *Robust nonnegative matrix factorization using L21-norm*, CIKM
  2011.
* Huber: Du, Li and Shen, *Robust nonnegative matrix factorization via half-quadratic
  minimization*, ICDM 2012.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from robustnmf.arrays import Array, EnergyHistogram, at_least, at_most, floored, namespace
from robustnmf.weightings._base import Separable

EFFICIENT = 1.345
"""Cutoff in standard deviations beyond which the loss is linear: 95% efficient on clean data."""

SOFTNESS = 1.0
"""Ratio of the automatic scale of Cauchy weights to the median energy."""


class Uniform(Separable):
    r"""Equal weights of all samples: plain, non-robust NMF.

    Use it for data without outliers.

    .. math:: \phi(z) = \sum_i z_i, \qquad w_i = 1

    Examples
    --------
    >>> from robustnmf import Uniform
    >>> Uniform().weights([1.0, 100.0])
    array([1., 1.])
    """

    def rho(self, energies: Array) -> Array:
        return energies

    def weight(self, energies: Array) -> Array:
        return namespace(energies).ones_like(energies)


class L21(Separable):
    r"""Norms of residuals instead of squared norms.

    Use it for heavy tails rather than outliers; it has no parameter.

    .. math:: \phi(z) = \sum_i \sqrt{z_i}, \qquad w_i = \frac{1}{2 \sqrt{z_i}}

    Examples
    --------
    >>> from robustnmf import L21
    >>> L21().weights([1.0, 100.0])
    array([0.5 , 0.05])
    """

    degree = 0.5

    def rho(self, energies: Array) -> Array:
        return namespace(energies).sqrt(energies)

    def weight(self, energies: Array) -> Array:
        return 0.5 / namespace(energies).sqrt(floored(energies))


class Huber(Separable):
    r"""Squared residuals up to ``cutoff`` and absolute residuals above it, for every entry.

    Use it for wrong entries in otherwise good samples, such as dead pixels.

    With :math:`z` the energy (squared residual) of one entry,

    .. math::

        \phi(z) = \sum \begin{cases} z & \sqrt z \le c \\
        2 c \sqrt z - c^2 & \sqrt z > c \end{cases},
        \qquad w = \min\left(1, \frac{c}{\sqrt z}\right)

    Parameters
    ----------
    cutoff : float > 0 or "auto", default="auto"
        Residual, in the units of X, above which the loss of an entry is linear. "auto" is 1.345
        times the root mean square residual of the median sample in the first passes, then frozen.

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

    def resolve_auto(self, histogram: EnergyHistogram) -> Huber:
        return Huber(cutoff=EFFICIENT * (histogram.typical / histogram.features) ** 0.5)

    def rho(self, energies: Array) -> Array:
        residual = namespace(energies).sqrt(energies)
        capped = at_most(residual, self.cutoff)
        return capped * (2 * residual - capped)

    def weight(self, energies: Array) -> Array:
        return self.cutoff / at_least(namespace(energies).sqrt(energies), self.cutoff)


class Cauchy(Separable):
    r"""Weights that decrease as one over the energy (reconstruction error) of a sample.

    Use it for samples that are unusual, but not wrong: they have a small weight, but not zero.

    .. math::

        \phi(z) = s \sum_i \ln\left(1 + \frac{z_i}{s}\right), \qquad
        w_i = \frac{1}{1 + z_i / s}

    Parameters
    ----------
    scale : float > 0 or "auto", default="auto"
        Energy (reconstruction error) of a sample with half the weight, in the squared units of X.
        "auto" is the median energy (at least a hundredth of the median squared norm) in the first
        passes, and is then frozen: half of the samples have at least half the weight.

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

    def resolve_auto(self, histogram: EnergyHistogram) -> Cauchy:
        return Cauchy(scale=SOFTNESS * histogram.typical)

    def rho(self, energies: Array) -> Array:
        return self.scale * namespace(energies).log1p(energies / self.scale)

    def weight(self, energies: Array) -> Array:
        return self.scale / (self.scale + energies)
