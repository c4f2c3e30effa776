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
    degree : degree of homogeneity: ``entries(c x, c y)`` is ``c**degree entries(x, y)``.
    exponent : exponent of the multiplicative update with which the loss never increases.
    curved_exponent : the same exponent for the loss plus a quadratic penalty.
    unit : ratio of the derivative of ``entries`` to the difference of the terms of ``split``.
    quadratic : whether the loss is ``unit / 2`` times the squared error, so that energies can be
        computed from Gram matrices of the factors.
    takes_zeros : whether entries of X can be zero.
    slope_at_zero : slope s, if the loss is ``s y`` at x = 0 and its gradient has no negative part
        there, so that the zeros of sparse X need not be visited one by one; None for other losses.
    row_loop : name of the compiled loop that sums the loss over rows, if there is one.
    divides : whether ``split`` returns ``x / y`` and ones.
    weighs_entries : whether the loss gives every entry a weight and has a majorant of weighted
        squares (:class:`ReweightedLoss`).
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
        """Whether a parameter is "auto" and must be estimated from the residuals of a fit."""
        return False

    def check_features(self, features: int) -> None:
        """Raise ``ValueError`` if a parameter does not match the number of features of X."""

    def rescaled(self, factor: float) -> Loss:
        """Return the loss of ``factor * x`` that is equivalent to this loss of x."""
        return self

    def of_features(self, features: np.ndarray) -> Loss:
        """Return the loss of single entries (entries,) that belong to the given features."""
        return self

    def encoding_path(self) -> tuple[Loss, ...]:
        """Return the losses for which codes are solved in turn, each from the previous codes."""
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
        """Compute the negative and positive part of the gradient with respect to y, up to a factor.

        The multiplicative update is their ratio, after each is multiplied with the other factor.
        None means ones.
        """

    def split_block(self, block: Block, approximation: Array) -> tuple[Array | None, Array | None]:
        """Compute ``split`` for the values of a block."""
        loop = "ratio_entries" if self.divides else None
        ratios = block.divergence(loop, approximation, per_row=False)
        return self.split(block.values(), approximation) if ratios is None else (ratios, None)

    @abstractmethod
    def curvature(self, data: Array, approximation: Array) -> Array:
        """Compute the second derivative with respect to y, up to the same factor.

        If the loss is not convex, it is at least ``LEAST_CURVATURE`` times its value at x = y,
        which is positive for every loss.
        """

    def expanded_energies(self, block: Block, codes: Array, basis: Array, rest: Array) -> Array:
        """Compute energies (members, rows) of a quadratic loss without forming residuals.

        Up to ``unit / 2`` these are ``|x|^2 + |a C|^2 - 2 a.(x C^T)`` over known entries; ``rest``
        (members, rows) is the sum of the two terms with codes. The three terms cancel if a row is
        fitted well, which leaves an absolute error of ``eps |x|^2``. Energies below
        ``sqrt(eps) |x|^2``, whose error would change the weights, are recomputed from the residual.
        """
        assert self.quadratic
        xp = namespace(codes)
        energies = None
        if block.is_complete_table:
            energies = block.kernels.add_sq_norms(
                block.rows, block.unit, block.sq_norms, rest, codes, basis
            )
        if energies is None:
            energies = block.sq_norms + block.as_whole(rest)
            cancelled = energies < eps(codes) ** 0.5 * block.sq_norms
            energies = recompute_cancelled(block, energies, cancelled, codes, basis)
            energies = xp.maximum(energies, energy_rounding(codes) * block.sq_norms)
        return energies if self.unit == 2.0 else 0.5 * self.unit * energies


def log_excess(over: Array, under: Array) -> Array:
    """Compute ``r - 1 - log r`` of the ratio r of two positive arrays.

    The result is nonnegative, accurate to rounding if they nearly agree, and finite if they are far
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
    """Return ``direct``, replaced by a series for nearly equal x and y, if it would cancel.

    With ``x = y (1 + t)``, alpha and beta divergences are ``unit`` times
    ``((1 + t)^p - 1 - p t) / (p (p - 1))``: the numerator subtracts 1 + p t from 1 + p t + O(t^2).
    If t is below ``eps**(1/6)``, five terms of the series are more accurate.
    """
    xp = namespace(data)
    t = (data - approximation) / approximation
    is_small = xp.abs(t) < eps(t) ** (1 / 6)
    t = xp.where(is_small, t, xp.zeros_like(t))
    series = 1 + (power - 4) / 5 * t * (1 + (power - 5) / 6 * t)
    series = 1 + (power - 2) / 3 * t * (1 + (power - 3) / 4 * t * series)
    return xp.where(is_small, 0.5 * t**2 * series * unit, at_least(direct, 0.0))


def kullback_leibler(data: Array, approximation: Array) -> Array:
    """Compute ``x log(x / y) - x + y`` of every entry; several families of losses include it."""
    xp = namespace(data)
    nonzero = xp.where(data > 0, data, xp.ones_like(data))
    return xp.where(data > 0, nonzero * log_excess(positive(approximation), nonzero), approximation)
