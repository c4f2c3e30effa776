r"""Tukey's biweight of every entry: entries that are far off have no influence at all."""

from __future__ import annotations

from robustnmf.arrays import Array
from robustnmf.losses._base import Loss
from robustnmf.losses._reweighted import ReweightedLoss, ratios_of
from robustnmf.losses.huber import HuberLoss

WIDEST, NARROWEST = 8.0, 3.0
"""Automatic cutoffs in robust standard deviations, where few and where many entries are bad."""

FEW_BAD, MANY_BAD = 0.01, 0.05
"""Shares of bad entries up to which the widest, and from which the narrowest cutoffs are taken.
Good tables have about 1% of their entries beyond six deviations, three where noise grows with the
entries."""


class Biweight(ReweightedLoss):
    r"""Tukey's biweight loss of every entry, with any weighting of the samples.

    .. math::

        z_i = \sum_j \rho(r_{ij}), \qquad
        \rho(r) = \frac{c_j^2}{3} \Big(1 - \big(1 - \min(1, r^2 / c_j^2)\big)^3\Big), \qquad
        \omega = \big(1 - \min(1, r^2 / c_j^2)\big)^2

    An entry whose residual exceeds the cutoff of its feature has no weight, unless it is usual for
    its feature: typing errors, spikes, dead or covered pixels are ignored like missing values, and
    the rest of the row counts.

    Parameters
    ----------
    cutoff : float > 0, array-like (n_features,) or "auto", default="auto"
        Residual, in the units of X, from which an entry has no weight; one for all features or one
        for each. "auto" is three to eight robust standard deviations of the residuals of each
        feature, fewer the more entries are bad. They are read off a robust fit of a few thousand
        samples, which also gives the start of the fit.
    highest : array-like (n_features,) or None, default=None
        Largest good value of every feature. Entries above it are ignored in the first guess of the
        codes of a row. Read off the same fit where ``cutoff="auto"``.
    usual : array-like (2, n_features) or None, default=None
        Smallest and largest usual value of every feature. Entries between them have full weight and
        the loss :math:`r^2`, whatever their residual. With ``cutoff="auto"``, half a quartile range
        beyond the quartiles of each feature: an entry is bad only if it does not fit *and* is
        unusual for its feature.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import Biweight
    >>> Biweight(2.0).entry_weights(np.array([1.0, 2.0, 9.0]), np.ones(3))
    array([1.    , 0.5625, 0.    ])
    """

    residual_loop = "biweight_residuals"
    spares_usual = True

    @classmethod
    def deviations(cls, bad_share: float) -> float:
        narrowing = (bad_share - FEW_BAD) / (MANY_BAD - FEW_BAD)
        return WIDEST - min(max(narrowing, 0.0), 1.0) * (WIDEST - NARROWEST)

    def rho(self, squares: Array, cutoffs: Array | float) -> Array:
        ratios = ratios_of(squares, cutoffs)
        return cutoffs * cutoffs * ratios * (1 - ratios + ratios * ratios / 3)

    def weight(self, squares: Array, cutoffs: Array | float) -> Array:
        return (1 - ratios_of(squares, cutoffs)) ** 2

    def encoding_path(self) -> tuple[Loss, ...]:
        """Codes are those of Huber's loss first, which has one minimum, without gross entries."""
        first = HuberLoss(self.cutoff, self.highest, self.usual)
        first.ignores_higher = True
        return (first, self)
