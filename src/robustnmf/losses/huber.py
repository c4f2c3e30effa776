r"""Huber's loss of every entry: squares of small residuals, absolute values of large ones."""

from __future__ import annotations

from robustnmf.arrays import Array, at_least, namespace
from robustnmf.losses._reweighted import ReweightedLoss

EFFICIENT = 1.345
"""Cutoff in standard deviations: 95% efficient for normal residuals."""


class HuberLoss(ReweightedLoss):
    r"""Huber's loss of every entry, with any weighting of the samples.

    .. math::

        z_i = \sum_j \rho(r_{ij}), \qquad
        \rho(r) = \begin{cases} r^2 & |r| \le c_j \\ 2 c_j |r| - c_j^2 & |r| > c_j \end{cases},
        \qquad \omega = \min\left(1, \frac{c_j}{|r|}\right)

    The loss is convex in each factor. Large residuals have a bounded influence, but keep it:
    :class:`Biweight` ignores entries that are far off.

    Parameters
    ----------
    cutoff : float > 0, array-like (n_features,) or "auto", default="auto"
        Residual, in the units of X, from which an entry counts linearly; one for all features or
        one for each. "auto" is 1.345 robust standard deviations of the residuals of each feature,
        read off a robust fit of a few thousand samples.
    highest : array-like (n_features,) or None, default=None
        Largest good value of every feature; see :class:`Biweight`.
    usual : array-like (2, n_features) or None, default=None
        Smallest and largest usual value of every feature, between which entries count as squares;
        see :class:`Biweight`.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf import HuberLoss
    >>> HuberLoss(1.0).entries(np.array([1.5, 4.0]), np.array([1.0, 1.0]))
    array([0.25, 5.  ])
    """

    residual_loop = "huber_residuals"

    @classmethod
    def deviations(cls, bad_share: float) -> float:
        return EFFICIENT

    def rho(self, squares: Array, cutoffs: Array | float) -> Array:
        xp = namespace(squares)
        residuals = xp.sqrt(squares)
        capped = xp.where(residuals < cutoffs, residuals, cutoffs + xp.zeros_like(residuals))
        return capped * (2 * residuals - capped)

    def weight(self, squares: Array, cutoffs: Array | float) -> Array:
        xp = namespace(squares)
        residuals = xp.sqrt(squares)
        is_small = residuals <= cutoffs
        one = xp.ones_like(residuals)
        return xp.where(is_small, one, cutoffs / xp.where(is_small, one, at_least(residuals, 0.0)))
