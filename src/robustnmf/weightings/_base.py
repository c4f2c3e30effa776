r"""A weighting is one concave, increasing function of the energies.

``value(z)`` is the objective :math:`\phi(z)`, ``weights(z)`` its gradient. The
tangent of a concave function lies above it, so any step that lowers the loss
weighted by ``weights(z)`` lowers :math:`\phi` (majorise-minimise). Two families
cover every method here:

* ``Separable``: :math:`\phi(z) = \sum_i \rho(z_i)`, weights :math:`\rho'(z_i)`.
* ``SoftMin``: :math:`\phi(z) = T(\log \sum_i e^{s(z_i)})`, weights
  proportional to :math:`e^{q s(z_i)}`; all in the log domain.

Both are read block by block: a block gives weights up to a factor it names
(``log_scale``) and a :class:`Tally` that merges with those of other blocks.
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

from robustnmf.arrays import Array, is_capturing, log_gap, namespace, safe_log
from robustnmf.weightings._profile import EnergyHistogram

SMALLEST_PARAMETER = 1e-290
"""Of parameters in units of energy: energies can be divided by them."""


@dataclass(frozen=True)
class ObjectiveSums:
    """What blocks must add up to know the objective; each field is (members, 1).

    A soft minimum keeps ``excess = sum m_i (exp(s_i - shift) - 1)``: with the
    ones taken out, the mean of nearly equal terms loses no digits. A separable
    sum is the same thing with ``shift = 0`` and ``excess`` the sum itself.
    """

    shift: Array
    excess: Array
    count: Array

    def merge(self, other: ObjectiveSums) -> ObjectiveSums:
        """Tally of the two sets of rows together."""
        xp = namespace(self.shift)
        if not is_capturing() and xp.all(self.shift == other.shift):
            return ObjectiveSums(self.shift, self.excess + other.excess, self.count + other.count)
        shift = xp.maximum(self.shift, other.shift)
        parts = [t._shifted(shift) for t in (self, other)]
        return ObjectiveSums(shift, parts[0] + parts[1], self.count + other.count)

    def _shifted(self, shift: Array) -> Array:
        """``excess`` as it would be had the tally been taken with this shift."""
        xp = namespace(shift)
        gap = log_gap(self.shift, shift)
        return xp.exp(gap) * self.excess + self.count * xp.expm1(gap)

    def faded(self, share: float) -> ObjectiveSums:
        """The tally of the same rows, each counting for a share of what it did."""
        return ObjectiveSums(self.shift, share * self.excess, share * self.count)

    def part(self, members: slice) -> ObjectiveSums:
        """The tally of consecutive members."""
        return ObjectiveSums(
            self.shift[members, :], self.excess[members, :], self.count[members, :]
        )

    def keep(self, members: Array) -> ObjectiveSums:
        """The tally of these members alone."""
        take = namespace(self.shift).take
        return ObjectiveSums(
            *(take(a, members, axis=0) for a in (self.shift, self.excess, self.count))
        )

    @property
    def log_mean_exp(self) -> Array:
        """Logarithm of the mean of ``exp(s_i)``, to full accuracy where they are alike."""
        return self.shift + namespace(self.shift).log1p(self.excess / self.count)

    @property
    def log_sum_exp(self) -> Array:
        """Logarithm of the sum, to full accuracy where one of them is all of it."""
        return self.shift + namespace(self.shift).log(self.excess + self.count)


class Weighed(NamedTuple):
    """Weights of a block up to ``exp(log_scale)``, and its tally."""

    weights: Array
    log_scale: Array
    objective_sums: ObjectiveSums


class Weighting(BaseEstimator, ABC):
    """Base of all weightings; parameters may be columns (members, 1).

    Class attributes
    ----------------
    per_entry : whether the function is applied to the energy of every entry of X
        rather than of every row.
    degree : ``value(c z)`` is ``c**degree value(z)`` once the parameters are rescaled.
    scales : for each parameter in units of energy, the power with which it scales.
    knob : the parameter to raise when too few samples keep a say.
    relative : whether the energy of a sample is also compared with its own size.
    gated : whether the first passes hear the majority alone, where parameters settle.
    """

    per_entry: ClassVar[bool] = False
    degree: ClassVar[float] = 1.0
    scales: ClassVar[dict[str, float]] = {}
    knob: ClassVar[str | None] = None
    uses_row_sizes: ClassVar[bool] = False
    needs_warmup: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list]] = {}

    @abstractmethod
    def weigh(self, energies: Array, sample_weight: Array) -> Weighed:
        """Weights and tally of a block of energies (members, rows)."""

    @abstractmethod
    def value_of(self, objective_sums: ObjectiveSums) -> Array:
        """Objective phi of all tallied rows (members, 1)."""

    def shifted_value_of(self, objective_sums: ObjectiveSums) -> Array:
        """Phi up to constants that make it zero for a perfect fit; for stopping."""
        return self.value_of(objective_sums)

    @abstractmethod
    def log_normaliser(self, objective_sums: ObjectiveSums) -> Array:
        """What to take off ``log_scale`` to make weights the gradient of phi."""

    def log_units(self, objective_sums: ObjectiveSums) -> tuple[Array, Array]:
        """Logarithms of what value and level are multiplied by to be a sum over samples.

        Then equal energies weigh one each, as without a weighting: what a penalty of the
        basis is compared with.
        """
        zero = namespace(objective_sums.shift).zeros_like(objective_sums.shift)
        return zero, zero

    @abstractmethod
    def importances(self, energies: Array, sample_weight: Array | None = None) -> Array:
        """Share of every sample; sums to one over the last axis."""

    def outliers(
        self, energies: Array, weights: Array, sample_weight: Array, sizes: Array
    ) -> Array:
        """Find the samples (samples,) whose weight is below ``LOST`` of an equal share."""
        return weights < LOST * sample_weight / namespace(sample_weight).sum(sample_weight)

    def normalised_weights(self, importances: Array, sample_weight: Array) -> Array:
        """Weights that importances stand for, divided by their sum over the last axis.

        The importances themselves, but for weightings whose weights are powers of them.
        """
        return importances

    def value(self, energies: Array) -> Array:
        """Objective phi of energies (..., samples)."""
        z, sample_weight = self._as_batch(energies)
        return self.value_of(self.weigh(z, sample_weight).objective_sums)[..., 0]

    def weights(self, energies: Array) -> Array:
        """Gradient of phi at energies (..., samples)."""
        z, sample_weight = self._as_batch(energies)
        weighed = self.weigh(z, sample_weight)
        scale = weighed.log_scale - self.log_normaliser(weighed.objective_sums)
        return weighed.weights * namespace(z).exp(scale)

    def _as_batch(self, energies: Array) -> tuple[Array, Array]:
        """Energies as an array of floats, with a mass of one for every sample."""
        if self.has_auto:
            raise ValueError(
                f'{self!r} has no parameter yet: "auto" is read off the energies of a fit. '
                "Use the weighting_ of a fitted estimator, or give a number."
            )
        z = energies if is_array_api_obj(energies) else np.asarray(energies, dtype=float)
        xp = namespace(z)
        return z, xp.ones_like(z[(0,) * (z.ndim - 1) + (...,)])

    @property
    def has_auto(self) -> bool:
        """Whether a parameter is still to be read off the energies."""
        return False

    @property
    def needs_screening(self) -> bool:
        """Whether a screening of the samples is to find its parameters, and a start."""
        return False

    def resolve_auto(self, histogram: EnergyHistogram) -> Weighting:
        """The weighting with its automatic parameters read off the energies."""
        return self

    def for_row_sizes(self, sizes: Array) -> Weighting:
        """The weighting of rows of these sizes."""
        return self

    def rescaled(self, factor: float) -> Weighting:
        """The same method for energies that are multiplied by factor."""
        copy = shallow_copy(self)  # parameters are numbers and names
        for name, power in self.scales.items():
            current = getattr(self, name)
            if not isinstance(current, str):
                scaled = current * factor**power
                # What has left the range of floats is as good as its end; zero stays zero.
                if math.isfinite(current) and current > 0:
                    scaled = min(max(scaled, SMALLEST_PARAMETER), 1 / SMALLEST_PARAMETER)
                setattr(copy, name, scaled)
        return copy


LOST = 0.1
"""Share of an equal weight below which a sample is an outlier."""

SCALE_STEP = 16.0
"""Between the units that weights may have, as logarithms: no weight is lost in float32."""


class Separable(Weighting):
    """``phi(z) = sum rho(z_i)``; a subclass supplies ``rho`` and its slope."""

    @abstractmethod
    def rho(self, energies: Array) -> Array:
        """Contribution of one energy to the objective."""

    @abstractmethod
    def weight(self, energies: Array) -> Array:
        """Derivative of rho."""

    def squared_parts(self, data: Array, before: Array, cache: Array) -> tuple | None:
        """Data and approximation, weighted at another one, where that takes fewer trips to memory.

        For weights of the entries of a squared error, (members, rows, features) each.
        """
        return None

    def squared_rows(self, data: Array, cache: Array, sample_weight: Array) -> tuple | None:
        """The same for weights at the approximation itself, counted with the mass of rows.

        With sums of rho, of squared errors and of weights over every row (members, rows).
        """
        return None

    def weigh(self, energies: Array, sample_weight: Array) -> Weighed:
        xp = namespace(energies)
        total = xp.sum(sample_weight * self.rho(energies), axis=-1, keepdims=True)
        zero = xp.zeros_like(total)
        objective_sums = ObjectiveSums(zero, total, xp.sum(sample_weight) + zero)
        # In units of the largest: no weight overflows in the dtype of X.
        weights = sample_weight * self.weight(energies)
        top = xp.max(weights, axis=-1, keepdims=True)
        some = top > 0
        log_top = safe_log(top)
        log_scale = _round_scale(log_top)
        weights = weights / xp.where(some, top, zero + 1.0) * xp.exp(log_top - log_scale)
        return Weighed(weights, xp.where(some, log_scale, zero - xp.inf), objective_sums)

    def value_of(self, objective_sums: ObjectiveSums) -> Array:
        return objective_sums.excess

    def log_normaliser(self, objective_sums: ObjectiveSums) -> Array:
        return namespace(objective_sums.shift).zeros_like(objective_sums.shift)

    def importances(self, energies: Array, sample_weight: Array | None = None) -> Array:
        z, ones = self._as_batch(energies)
        xp = namespace(z)
        sample_weight = ones if sample_weight is None else sample_weight
        weights = self.weight(z) * sample_weight
        # Divided by the largest first, so that weights near overflow do not sum to inf; where
        # all of them underflow, no sample has more of a say than another.
        top = xp.max(weights, axis=-1, keepdims=True)
        some = top > 0
        weights = xp.where(
            some, weights / xp.where(some, top, xp.ones_like(top)), sample_weight + 0 * z
        )
        return weights / xp.sum(weights, axis=-1, keepdims=True)


class SoftMin(Weighting):
    """``phi(z) = T(log sum exp s(z_i))``; a subclass supplies ``score`` and ``outer``."""

    @abstractmethod
    def score(self, energies: Array) -> Array:
        """Decreasing function s of an energy; importances are its softmax."""

    @abstractmethod
    def outer(self, log_sum: Array) -> Array:
        """The function T that turns the logarithm of the sum into phi."""

    @property
    def power(self) -> Array | float:
        """Weights are importances to this power."""
        return 1.0

    def weigh(self, energies: Array, sample_weight: Array) -> Weighed:
        xp = namespace(energies)
        score = xp.where(sample_weight > 0, self.score(energies), -xp.inf)
        shift = xp.max(score, axis=-1, keepdims=True)
        anchor = xp.where(xp.isfinite(shift), shift, xp.zeros_like(shift))
        score = score - anchor
        excess = xp.sum(
            xp.where(sample_weight > 0, sample_weight * xp.expm1(score), 0.0),
            axis=-1,
            keepdims=True,
        )
        objective_sums = ObjectiveSums(shift, excess, xp.sum(sample_weight) + xp.zeros_like(shift))
        log_top = self.power * anchor
        log_scale = _round_scale(log_top)
        weights = sample_weight * xp.exp(self.power * score + (log_top - log_scale))
        return Weighed(weights, xp.where(xp.isfinite(shift), log_scale, shift), objective_sums)

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
        # One name: for X in files these are among the largest arrays there are.
        share = xp.where(sample_weight > 0, self.score(z), -xp.inf)
        share -= xp.max(share, axis=-1, keepdims=True)
        share = xp.exp(share)
        share *= sample_weight
        share /= xp.sum(share, axis=-1, keepdims=True)
        return share

    def normalised_weights(self, importances: Array, sample_weight: Array) -> Array:
        if isinstance(self.power, float) and self.power == 1.0:
            return importances
        xp = namespace(importances)
        some = sample_weight > 0
        single = xp.where(
            some,
            importances / xp.where(some, sample_weight, 1 + 0 * sample_weight),
            0 * importances,
        )
        top = xp.max(single, axis=-1, keepdims=True)
        weights = sample_weight * (single / xp.where(top > 0, top, 1 + 0 * top)) ** self.power
        return weights / xp.sum(weights, axis=-1, keepdims=True)


def _round_scale(log_top: Array) -> Array:
    """Units for weights whose largest has this logarithm: the next of few.

    Blocks whose weights are of about one size then have one scale, and their sums just add up.
    """
    return SCALE_STEP * namespace(log_top).ceil(log_top / SCALE_STEP)


def effective_sample_size(weights: Array, sample_weight: Array | None = None) -> Array:
    """``1 / sum w^2`` of weights that sum to one: n for equal ones, 1 when one sample has it all.

    A sample that counts m times shares its weight among as many equal ones.
    """
    xp = namespace(weights)
    squares = weights**2
    if sample_weight is not None:
        squares = xp.where(
            sample_weight > 0,
            squares / xp.where(sample_weight > 0, sample_weight, 1 + 0 * sample_weight),
            0 * squares,
        )
    return 1.0 / xp.sum(squares, axis=-1)
