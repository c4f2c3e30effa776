"""Base class of all losses, and formulas that several of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from robustnmf.arrays import (
    Array,
    Block,
    at_least,
    energy_rounding,
    eps,
    namespace,
    positive,
    recompute_cancelled,
)

LEAST_CURVATURE = 0.1


class Loss(BaseEstimator, ABC):
    """Loss between an entry x of X and its approximation y.

    Attributes
    ----------
    degree : ``entries(c x, c y)`` is ``c**degree entries(x, y)``.
    exponent : power of the multiplicative update that never raises the loss.
    curved_exponent : the same for the loss plus a quadratic penalty.
    unit : derivative of ``entries`` over the difference of the parts that ``split`` returns.
    quadratic : whether the loss is ``unit / 2`` times the squared error, so that energies follow
        from Gram matrices of the factors.
    takes_zeros : whether an entry of X may be zero.
    slope_at_zero : where x is zero, the loss is this times y, and the negative part of its gradient
        is zero, so that the zeros of sparse X need not be visited one by one; None for other
        losses.
    row_loop : name of the compiled loop that sums the loss over rows, where there is one.
    divides : whether ``split`` returns ``x / y`` and ones.
    weighs_entries : whether the loss gives every entry a weight, so that weighted squares majorise
        it (:class:`ReweightedLoss`).
    """

    degree: float
    exponent: float = 1.0
    curved_exponent: float = 1.0
    unit: float = 1.0
    quadratic: bool = False
    takes_zeros: bool = True
    slope_at_zero: float | None = None
    row_loop: str | None = None
    divides: bool = False
    weighs_entries: bool = False
    _parameter_constraints: ClassVar[dict[str, list]] = {}

    @property
    def has_auto(self) -> bool:
        """Whether a parameter is "auto" and still to be read off the residuals of a fit."""
        return False

    def check_features(self, features: int) -> None:
        """Raise ``ValueError`` where parameters are not those of X with so many features."""

    def rescaled(self, factor: float) -> Loss:
        """Return the loss that does for ``factor * x`` what this one does for x."""
        return self

    def of_features(self, features: np.ndarray) -> Loss:
        """Return the loss of entries whose features (entries,) are given, one by one."""
        return self

    def encoding_path(self) -> tuple[Loss, ...]:
        """Return the losses under which codes are solved for, each from the codes of the last."""
        return (self,)

    @abstractmethod
    def entries(self, data: Array, approximation: Array) -> Array:
        """Compute the loss of every entry."""

    def row_losses(self, block: Block, approximation: Array) -> Array:
        """Sum the loss over the stored or known entries of every row (members, rows), float64."""
        sums = block.divergence(self.row_loop, approximation, per_row=True)
        return block.row_sums(self.entries(block.values(), approximation)) if sums is None else sums

    @abstractmethod
    def split(self, data: Array, approximation: Array) -> tuple[Array | None, Array | None]:
        """Compute negative and positive part of the gradient with respect to y, up to a factor.

        Their ratio, after multiplying with the other factor, is the multiplicative
        update. None stands for ones.
        """

    def split_block(self, block: Block, approximation: Array) -> tuple[Array | None, Array | None]:
        """Compute ``split`` for the values of a block."""
        loop = "ratio_entries" if self.divides else None
        ratios = block.divergence(loop, approximation, per_row=False)
        return self.split(block.values(), approximation) if ratios is None else (ratios, None)

    @abstractmethod
    def curvature(self, data: Array, approximation: Array) -> Array:
        """Compute the second derivative with respect to y, up to the same factor.

        Where the loss is not convex, raised to ``LEAST_CURVATURE`` of its value at x = y,
        which is positive for every loss.
        """

    def expanded_energies(self, block: Block, codes: Array, basis: Array, rest: Array) -> Array:
        """Compute energies (members, rows) of a quadratic loss without forming residuals.

        Up to ``unit / 2`` these are ``|x|^2 + |a C|^2 - 2 a.(x C^T)`` over known entries, of which
        ``rest`` (members, rows) are the terms with codes. The three cancel when a row is fitted
        well, and an absolute error of ``eps |x|^2`` is left. Energies below ``sqrt(eps) |x|^2``,
        where that would change the weights, are recomputed from the residual.
        """
        assert self.quadratic
        xp = namespace(codes)
        doubtful, least = eps(codes) ** 0.5, energy_rounding(codes)
        energies = None
        if block.is_complete_table:
            energies = block.kernels.add_sq_norms(
                block.rows, block.unit, block.sq_norms, rest, codes, basis, doubtful, least
            )
        if energies is None:
            energies = block.sq_norms + block.as_whole(rest)
            cancelled = energies < doubtful * block.sq_norms
            energies = recompute_cancelled(block, energies, cancelled, codes, basis)
            energies = xp.maximum(energies, least * block.sq_norms)
        return energies if self.unit == 2.0 else 0.5 * self.unit * energies


def log_excess(over: Array, under: Array) -> Array:
    """Compute ``r - 1 - log r`` of the ratio r of two positive arrays.

    Nonnegative, accurate to rounding where they nearly agree, and finite where they are far
    apart.
    """
    xp = namespace(over)
    t = (over - under) / under
    is_small = xp.abs(t) < 0.5
    zero = xp.zeros_like(t)
    log_of_small = xp.log1p(xp.where(is_small, t, zero))
    log_of_large = xp.log(xp.where(is_small, zero + 1.0, over / under))
    return at_least(t - xp.where(is_small, log_of_small, log_of_large), 0.0)


def power_excess(
    data: Array, approximation: Array, power: float, unit: Array, direct: Array
) -> Array:
    """Return ``direct``, replaced by a series where x and y nearly agree and it would cancel.

    With ``x = y (1 + t)``, alpha and beta divergences are ``unit`` times
    ``((1 + t)^p - 1 - p t) / (p (p - 1))``: 1 and p t are taken off 1 + p t + O(t^2). Below
    ``eps**(1/6)`` five terms of its series have more digits.
    """
    xp = namespace(data)
    t = (data - approximation) / approximation
    is_small = xp.abs(t) < eps(t) ** (1 / 6)
    t = xp.where(is_small, t, xp.zeros_like(t))
    series = 1 + (power - 4) / 5 * t * (1 + (power - 5) / 6 * t)
    series = 1 + (power - 2) / 3 * t * (1 + (power - 3) / 4 * t * series)
    return xp.where(is_small, 0.5 * t**2 * series * unit, at_least(direct, 0.0))


def kullback_leibler(data: Array, approximation: Array) -> Array:
    """Compute ``x log(x / y) - x + y`` of every entry, a member of several families of losses."""
    xp = namespace(data)
    nonzero = xp.where(data > 0, data, xp.ones_like(data))
    return xp.where(data > 0, nonzero * log_excess(positive(approximation), nonzero), approximation)
