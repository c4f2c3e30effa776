r"""A weighting is a concave, increasing function of the energies (reconstruction errors).

``value(z)`` is the objective :math:`\phi(z)`, ``weights(z)`` its gradient. The
tangent of a concave function lies above it, so any step that lowers the loss
weighted by ``weights(z)`` lowers :math:`\phi` (majorise-minimise). There are two
families:

* ``Separable``: :math:`\phi(z) = \sum_i \rho(z_i)`, weights :math:`\rho'(z_i)`.
* ``SoftMin``: :math:`\phi(z) = T(\log \sum_i e^{s(z_i)})`, weights
  proportional to :math:`e^{q s(z_i)}`; all in the log domain.

Both are evaluated block by block: a block gives weights up to a factor ``exp(log_scale)``
and :class:`ObjectiveSums`, which are merged with the sums of other blocks.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from copy import copy as shallow_copy
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.base import BaseEstimator

from robustnmf.arrays import Array, EnergyHistogram, kernels_for, log_gap, namespace, quotient

SMALLEST_PARAMETER = 1e-290
"""Least value of a parameter in units of energy, which avoids division by zero."""

SCALE_STEP = 16.0
"""Distance between two values of ``log_scale``, so that no weight underflows in float32."""

LOST = 0.1
"""A sample is an outlier if its weight is below this share of an equal weight."""


@dataclass(frozen=True)
class ObjectiveSums:
    """Sums over rows that determine the objective; each field is (members, 1).

    For a soft minimum, ``excess = sum m_i (exp(s_i - shift) - 1)`` over rows of weight ``m_i``:
    subtracting one keeps all digits if the terms are nearly equal. For a separable
    objective, ``shift = 0`` and ``excess`` is the sum itself.
    """

    shift: Array
    excess: Array
    count: Array

    def merge(self, other: ObjectiveSums) -> ObjectiveSums:
        """Return the sums over the rows of both objects."""
        shift = namespace(self.shift).maximum(self.shift, other.shift)
        parts = [t._shifted(shift) for t in (self, other)]
        return ObjectiveSums(shift, parts[0] + parts[1], self.count + other.count)

    def _shifted(self, shift: Array) -> Array:
        """Return ``excess`` (members, 1) for another shift."""
        xp = namespace(shift)
        gap = log_gap(self.shift, shift)
        return xp.exp(gap) * self.excess + self.count * xp.expm1(gap)

    def discount(self, factor: float) -> ObjectiveSums:
        """Return the sums with the weights of all rows multiplied by a factor."""
        return ObjectiveSums(self.shift, factor * self.excess, factor * self.count)

    def part(self, members: slice) -> ObjectiveSums:
        """Return the sums of consecutive members."""
        if members.start == 0 and members.stop == self.shift.shape[0]:
            return self
        return ObjectiveSums(*(a[members, :] for a in vars(self).values()))

    def keep(self, members: Array) -> ObjectiveSums:
        """Return the sums of the members with these indices."""
        take = namespace(self.shift).take
        return ObjectiveSums(*(take(a, members, axis=0) for a in vars(self).values()))

    @property
    def log_mean_exp(self) -> Array:
        """Logarithm of the mean of ``exp(s_i)``, accurate if all ``s_i`` are nearly equal."""
        return self.shift + namespace(self.shift).log1p(self.excess / self.count)

    @property
    def log_sum_exp(self) -> Array:
        """Logarithm of the sum of ``exp(s_i)``, accurate if one term dominates."""
        return self.shift + namespace(self.shift).log(self.excess + self.count)


class BlockWeights(NamedTuple):
    """Weights (members, rows) of a block in units of ``exp(log_scale)``, and its objective sums."""

    weights: Array
    log_scale: Array
    objective_sums: ObjectiveSums


class Weighting(BaseEstimator, ABC):
    """Base class of all weightings; parameters can be columns (members, 1).

    Attributes
    ----------
    per_entry : whether the function is applied to the energy of every entry of X
        rather than of every row.
    entry_loop : name of the compiled loop that multiplies entries by weights for the squared
        error, if there is one (:meth:`robustnmf.arrays.Kernels.weighted_parts`).
    degree : ``value(c z)`` is ``c**degree value(z)`` after the parameters are rescaled.
    scales : for each parameter in units of energy, the power with which it scales.
    knob : the parameter to raise if too few samples have most of the weight; it can be "auto".
    uses_row_sizes : whether the energy of a sample is also compared with the sample's size.
    needs_warmup : whether only the majority of the samples has weight in the first passes
        (:class:`WarmupWeights`), if parameters are automatic.
    """

    per_entry: ClassVar[bool] = False
    entry_loop: ClassVar[str | None] = None
    degree: ClassVar[float] = 1.0
    scales: ClassVar[dict[str, float]] = {}
    knob: ClassVar[str | None] = None
    uses_row_sizes: ClassVar[bool] = False
    needs_warmup: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list]] = {}

    @abstractmethod
    def weigh(self, energies: Array, sample_weight: Array) -> BlockWeights:
        """Compute weights and objective sums of a block of energies (members, rows)."""

    @abstractmethod
    def value_of(self, objective_sums: ObjectiveSums) -> Array:
        """Compute the objective phi (members, 1) from sums over all rows."""

    def shifted_value_of(self, objective_sums: ObjectiveSums) -> Array:
        """Compute phi minus a constant (members, 1), so that it is zero for a perfect fit.

        Convergence is tested with it: adding the constant can lose all digits of phi.
        """
        return self.value_of(objective_sums)

    @abstractmethod
    def log_normaliser(self, objective_sums: ObjectiveSums) -> Array:
        """Compute the number (members, 1) to subtract from ``log_scale`` to get phi's gradient."""

    def log_units(self, objective_sums: ObjectiveSums) -> tuple[Array, Array]:
        """Return the logs of the factors (members, 1) that turn phi and shifted phi into sums.

        With these factors, samples of equal energies have weight one, as without a weighting. The
        basis penalty is added in these units, so that it has the same strength for all weightings.
        """
        zero = namespace(objective_sums.shift).zeros_like(objective_sums.shift)
        return zero, zero

    @abstractmethod
    def importances(self, energies: Array, sample_weight: Array | None = None) -> Array:
        """Compute the importance of every sample; they sum to one over the last axis."""

    def outliers(
        self, energies: Array, weights: Array, sample_weight: Array, sizes: Array
    ) -> Array:
        """Find the samples (samples,) whose weight is below ``LOST`` times an equal weight."""
        return weights < LOST * sample_weight / namespace(sample_weight).sum(sample_weight)

    def normalised_weights(self, importances: Array, sample_weight: Array) -> Array:
        """Return the weights for given importances, divided by their sum over the last axis.

        These are the importances themselves, unless weights are powers of importances.
        """
        return importances

    def value(self, energies: Array) -> Array:
        """Compute the objective phi of energies (..., samples)."""
        z, sample_weight = self._as_batch(energies)
        return self.value_of(self.weigh(z, sample_weight).objective_sums)[..., 0]

    def weights(self, energies: Array) -> Array:
        """Compute the gradient of phi at energies (..., samples)."""
        z, sample_weight = self._as_batch(energies)
        block = self.weigh(z, sample_weight)
        scale = block.log_scale - self.log_normaliser(block.objective_sums)
        return block.weights * namespace(z).exp(scale)

    def _as_batch(self, energies: Array) -> tuple[Array, Array]:
        """Return energies as an array of floats, and unit sample weights (samples,)."""
        if self.has_auto:
            raise ValueError(
                f'{self!r} has no parameter yet: "auto" is estimated during a fit. '
                "Use weighting_ of a fitted estimator, or give a number."
            )
        z = energies if is_array_api_obj(energies) else np.asarray(energies, dtype=float)
        xp = namespace(z)
        return z, xp.ones_like(z[(0,) * (z.ndim - 1) + (...,)])

    @property
    def has_auto(self) -> bool:
        """Whether a parameter is "auto" and must be estimated from the energies of a fit."""
        return self.knob is not None and isinstance(getattr(self, self.knob), str)

    @property
    def needs_screening(self) -> bool:
        """Whether a screening of the samples determines the parameters and a start."""
        return False

    def resolve_auto(self, histogram: EnergyHistogram) -> Weighting:
        """Return the weighting with "auto" parameters estimated from a histogram of energies."""
        return self

    def for_row_sizes(self, sizes: Array) -> Weighting:
        """Return the weighting for rows of these sizes (rows,), if it depends on them."""
        return self

    def rescaled(self, factor: float) -> Weighting:
        """Return the weighting of ``factor * z`` that is equivalent to this weighting of z."""
        copy = shallow_copy(self)  # parameters are numbers and names
        for name, power in self.scales.items():
            current = getattr(self, name)
            if not isinstance(current, str):
                scaled = current * factor**power
                # Outside the range of floats, the limit is equivalent; zero remains zero.
                if math.isfinite(current) and current > 0:
                    scaled = min(max(scaled, SMALLEST_PARAMETER), 1 / SMALLEST_PARAMETER)
                setattr(copy, name, scaled)
        return copy


class Separable(Weighting):
    """``phi(z) = sum rho(z_i)``; a subclass defines ``rho`` and its derivative ``weight``."""

    @abstractmethod
    def rho(self, energies: Array) -> Array:
        """Compute the contribution of every energy to the objective."""

    @abstractmethod
    def weight(self, energies: Array) -> Array:
        """Compute the derivative of rho at every energy."""

    def weigh(self, energies: Array, sample_weight: Array) -> BlockWeights:
        rho, weight = self.rho(energies), self.weight(energies)
        weights, log_scale, total, count = kernels_for(weight).weigh_rows(
            rho, weight, sample_weight, SCALE_STEP
        )
        zero = namespace(total).zeros_like(total)
        return BlockWeights(weights, log_scale, ObjectiveSums(zero, total, count))

    def value_of(self, objective_sums: ObjectiveSums) -> Array:
        return objective_sums.excess

    def log_normaliser(self, objective_sums: ObjectiveSums) -> Array:
        return namespace(objective_sums.shift).zeros_like(objective_sums.shift)

    def importances(self, energies: Array, sample_weight: Array | None = None) -> Array:
        z, ones = self._as_batch(energies)
        xp = namespace(z)
        sample_weight = ones if sample_weight is None else sample_weight
        weights = self.weight(z) * sample_weight
        # Divided by the largest first, so that weights near overflow do not sum to inf. If all
        # weights underflow, importances are equal.
        top = xp.max(weights, axis=-1, keepdims=True)
        weights = xp.where(top > 0, quotient(weights, top), sample_weight + 0 * z)
        return weights / xp.sum(weights, axis=-1, keepdims=True)


class SoftMin(Weighting):
    """``phi(z) = T(log sum exp s(z_i))``; a subclass defines ``score`` (s) and ``outer`` (T)."""

    @abstractmethod
    def score(self, energies: Array) -> Array:
        """Compute the decreasing function s of every energy; importances are its softmax."""

    @abstractmethod
    def outer(self, log_sum: Array) -> Array:
        """Compute phi from the logarithm of the sum (the function T)."""

    @property
    def power(self) -> Array | float:
        """Exponent that turns importances into weights."""
        return 1.0

    def weigh(self, energies: Array, sample_weight: Array) -> BlockWeights:
        xp = namespace(energies)
        score = xp.where(sample_weight > 0, self.score(energies), -xp.inf)
        shift = xp.max(score, axis=-1, keepdims=True)
        anchor = xp.where(xp.isfinite(shift), shift, xp.zeros_like(shift))
        score = score - anchor
        terms = xp.where(sample_weight > 0, sample_weight * xp.expm1(score), 0.0)
        excess = xp.sum(terms, axis=-1, keepdims=True)
        objective_sums = ObjectiveSums(shift, excess, xp.sum(sample_weight) + xp.zeros_like(shift))
        log_top = self.power * anchor
        # A multiple of SCALE_STEP, so that blocks with similar weights have the same scale, and
        # their sums can be added directly.
        log_scale = SCALE_STEP * xp.ceil(log_top / SCALE_STEP)
        weights = sample_weight * xp.exp(self.power * score + (log_top - log_scale))
        log_scale = xp.where(xp.isfinite(shift), log_scale, shift)
        return BlockWeights(weights, log_scale, objective_sums)

    def value_of(self, objective_sums: ObjectiveSums) -> Array:
        return self.outer(objective_sums.log_sum_exp)

    def shifted_value_of(self, objective_sums: ObjectiveSums) -> Array:
        return self.outer(objective_sums.log_mean_exp)

    def log_normaliser(self, objective_sums: ObjectiveSums) -> Array:
        return self.power * objective_sums.log_sum_exp

    def log_units(self, objective_sums: ObjectiveSums) -> tuple[Array, Array]:
        log_count = namespace(objective_sums.count).log(objective_sums.count)
        return self.power * log_count, log_count

    def importances(self, energies: Array, sample_weight: Array | None = None) -> Array:
        z, ones = self._as_batch(energies)
        xp = namespace(z)
        sample_weight = ones if sample_weight is None else sample_weight
        # In place: if X is in files, these are among the largest arrays in memory.
        importances = xp.where(sample_weight > 0, self.score(z), -xp.inf)
        importances -= xp.max(importances, axis=-1, keepdims=True)
        importances = xp.exp(importances)
        importances *= sample_weight
        importances /= xp.sum(importances, axis=-1, keepdims=True)
        return importances

    def normalised_weights(self, importances: Array, sample_weight: Array) -> Array:
        if isinstance(self.power, float) and self.power == 1.0:
            return importances
        xp = namespace(importances)
        per_unit = quotient(importances, sample_weight)
        top = xp.max(per_unit, axis=-1, keepdims=True)
        weights = sample_weight * quotient(per_unit, top) ** self.power
        return weights / xp.sum(weights, axis=-1, keepdims=True)


def effective_sample_size(weights: Array, sample_weight: Array | None = None) -> Array:
    """Compute ``1 / sum w^2`` of weights (..., samples) that sum to one.

    It is n for n equal weights, and 1 if one sample has all the weight. A sample of sample
    weight m is equivalent to m equal samples.
    """
    squares = weights**2 if sample_weight is None else quotient(weights**2, sample_weight)
    return 1.0 / namespace(weights).sum(squares, axis=-1)
