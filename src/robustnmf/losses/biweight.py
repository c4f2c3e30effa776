r"""The squared error of good entries: those that are far off have no influence at all."""

from __future__ import annotations

from robustnmf.arrays import Array, namespace
from robustnmf.losses._base import Loss
from robustnmf.losses._reweighted import ReweightedLoss
from robustnmf.losses.huber import HuberLoss

WIDEST, NARROWEST = 6.6, 2.5
"""Automatic cutoffs in robust standard deviations, where few and where many entries are bad."""

FEW_BAD, MANY_BAD = 0.01, 0.05
"""Shares of bad entries up to which the widest, and from which the narrowest cutoffs are taken.
Good tables have about 1% of their entries beyond six deviations, three where noise grows with the
entries."""


class Biweight(ReweightedLoss):
    r"""Squared error of good entries, and a constant for bad ones, with any weighting of samples.

    .. math::

        z_i = \sum_j \rho(r_{ij}), \qquad \rho(r) = \min(r^2, c_j^2), \qquad
        \omega = \begin{cases} 1 & |r| \le c_j \\ 0 & |r| > c_j \end{cases}

    Use it where single entries are bad: typing errors, spikes, dead or covered pixels. An entry
    whose residual exceeds the cutoff of its feature, and that is not usual for its feature, is
    ignored like a missing value, and the rest of the row counts.

    Parameters
    ----------
    cutoff : float > 0, array-like (n_features,) or "auto", default="auto"
        Residual, in the units of X, from which an entry has no weight; one for all features or one
        for each. "auto" is 2.5 to 6.6 robust standard deviations of the residuals of each feature,
        fewer the more entries are bad. They are read off a robust fit of a few thousand samples,
        which also gives the start of the fit. If hidden entries of these samples are not predicted
        better without the bad entries, no entry is ignored.
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
    array([1., 1., 0.])
    """

    residual_loop = "truncated_residuals"
    spares_usual = True

    @classmethod
    def deviations(cls, bad_share: float) -> float:
        narrowing = (bad_share - FEW_BAD) / (MANY_BAD - FEW_BAD)
        return WIDEST - min(max(narrowing, 0.0), 1.0) * (WIDEST - NARROWEST)

    def rho(self, squares: Array, cutoffs: Array | float) -> Array:
        xp = namespace(squares)
        limits = cutoffs * cutoffs + xp.zeros_like(squares)
        return xp.where(squares <= limits, squares, limits)

    def weight(self, squares: Array, cutoffs: Array | float) -> Array:
        xp = namespace(squares)
        limits = cutoffs * cutoffs + xp.zeros_like(squares)
        return xp.where(squares <= limits, xp.ones_like(squares), xp.zeros_like(squares))

    def encoding_path(self) -> tuple[Loss, ...]:
        """Codes are those of Huber's loss first, which has one minimum, without gross entries."""
        first = HuberLoss(self.cutoff, self.highest, self.usual)
        first.ignores_higher = True
        return (first, self)
