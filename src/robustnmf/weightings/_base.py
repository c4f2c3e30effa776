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

from robustnmf.arrays import Array, log_gap, namespace, safe_log, unwatched
from robustnmf.weightings._profile import Profile

SMALLEST_PARAMETER = 1e-290
"""Of parameters in units of energy: energies can be divided by them."""


@dataclass(frozen=True)
class Tally:
    """What blocks must add up to know the objective; each field is (members, 1).

    A soft minimum keeps ``excess = sum m_i (exp(s_i - shift) - 1)``: with the
    ones taken out, the mean of nearly equal terms loses no digits. A separable
    sum is the same thing with ``shift = 0`` and ``excess`` the sum itself.
    """

    shift: Array
    excess: Array
    count: Array

    def merge(self, other: Tally) -> Tally:
        """Tally of the two sets of rows together."""
        xp = namespace(self.shift)
        if not unwatched() and xp.all(self.shift == other.shift):
            return Tally(self.shift, self.excess + other.excess, self.count + other.count)
        shift = xp.maximum(self.shift, other.shift)
        parts = [t._shifted(shift) for t in (self, other)]
        return Tally(shift, parts[0] + parts[1], self.count + other.count)

    def _shifted(self, shift: Array) -> Array:
        """``excess`` as it would be had the tally been taken with this shift."""
        xp = namespace(shift)
        gap = log_gap(self.shift, shift)
        return xp.exp(gap) * self.excess + self.count * xp.expm1(gap)

    def faded(self, share: float) -> Tally:
        """The tally of the same rows, each counting for a share of what it did."""
        return Tally(self.shift, share * self.excess, share * self.count)

    def part(self, members: slice) -> Tally:
        """The tally of consecutive members."""
        return Tally(self.shift[members, :], self.excess[members, :], self.count[members, :])

    def keep(self, members: Array) -> Tally:
        """The tally of these members alone."""
        take = namespace(self.shift).take
        return Tally(*(take(a, members, axis=0) for a in (self.shift, self.excess, self.count)))

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
    tally: Tally


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
    relative: ClassVar[bool] = False
    gated: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list]] = {}

    @abstractmethod
    def weigh(self, energies: Array, mass: Array) -> Weighed:
        """Weights and tally of a block of energies (members, rows)."""

    @abstractmethod
    def value_of(self, tally: Tally) -> Array:
        """Objective phi of all tallied rows (members, 1)."""

    def level_of(self, tally: Tally) -> Array:
        """Phi up to constants that make it zero for a perfect fit; for stopping."""
        return self.value_of(tally)

    @abstractmethod
    def log_normaliser(self, tally: Tally) -> Array:
        """What to take off ``log_scale`` to make weights the gradient of phi."""

    def log_units(self, tally: Tally) -> tuple[Array, Array]:
        """Logarithms of what value and level are multiplied by to be a sum over samples.

        Then equal energies weigh one each, as without a weighting: what a penalty of the
        basis is compared with.
        """
        zero = namespace(tally.shift).zeros_like(tally.shift)
        return zero, zero

    @abstractmethod
    def importances(self, energies: Array, mass: Array | None = None) -> Array:
        """Share of every sample; sums to one over the last axis."""

    def outliers(self, energies: Array, weights: Array, mass: Array, sizes: Array) -> Array:
        """Find the samples (samples,) whose weight is below ``LOST`` of an equal share."""
        return weights < LOST * mass / namespace(mass).sum(mass)

    def normalised_weights(self, importances: Array, mass: Array) -> Array:
        """Weights that importances stand for, divided by their sum over the last axis.

        The importances themselves, but for weightings whose weights are powers of them.
        """
        return importances

    def value(self, energies: Array) -> Array:
        """Objective phi of energies (..., samples)."""
        z, mass = self._as_batch(energies)
        return self.value_of(self.weigh(z, mass).tally)[..., 0]

    def weights(self, energies: Array) -> Array:
        """Gradient of phi at energies (..., samples)."""
        z, mass = self._as_batch(energies)
        weighed = self.weigh(z, mass)
        scale = weighed.log_scale - self.log_normaliser(weighed.tally)
        return weighed.weights * namespace(z).exp(scale)

    def _as_batch(self, energies: Array) -> tuple[Array, Array]:
        """Energies as an array of floats, with a mass of one for every sample."""
        if self.settles:
            raise ValueError(
                f'{self!r} has no parameter yet: "auto" is read off the energies of a fit. '
                "Use the weighting_ of a fitted estimator, or give a number."
            )
        z = energies if is_array_api_obj(energies) else np.asarray(energies, dtype=float)
        xp = namespace(z)
        return z, xp.ones_like(z[(0,) * (z.ndim - 1) + (...,)])

    @property
    def settles(self) -> bool:
        """Whether a parameter is still to be read off the energies."""
        return False

    @property
    def needs_screening(self) -> bool:
        """Whether a screening of the samples is to find its parameters, and a start."""
        return False

    def settle(self, profile: Profile) -> Weighting:
        """The weighting with its automatic parameters read off the energies."""
        return self

    def among(self, sizes: Array) -> Weighting:
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
    def slope(self, energies: Array) -> Array:
        """Derivative of rho."""

    def squared_parts(self, data: Array, before: Array, seen: Array) -> tuple | None:
        """Data and approximation, weighted at another one, where that takes fewer trips to memory.

        For weights of the entries of a squared error, (members, rows, features) each.
        """
        return None

    def squared_rows(self, data: Array, seen: Array, mass: Array) -> tuple | None:
        """The same for weights at the approximation itself, counted with the mass of rows.

        With sums of rho, of squared errors and of weights over every row (members, rows).
        """
        return None

    def weigh(self, energies: Array, mass: Array) -> Weighed:
        xp = namespace(energies)
        total = xp.sum(mass * self.rho(energies), axis=-1, keepdims=True)
        zero = xp.zeros_like(total)
        tally = Tally(zero, total, xp.sum(mass) + zero)
        # In units of the largest: no weight overflows in the dtype of X.
        weights = mass * self.slope(energies)
        top = xp.max(weights, axis=-1, keepdims=True)
        some = top > 0
        log_top = safe_log(top)
        log_scale = _round_scale(log_top)
        weights = weights / xp.where(some, top, zero + 1.0) * xp.exp(log_top - log_scale)
        return Weighed(weights, xp.where(some, log_scale, zero - xp.inf), tally)

    def value_of(self, tally: Tally) -> Array:
        return tally.excess

    def log_normaliser(self, tally: Tally) -> Array:
        return namespace(tally.shift).zeros_like(tally.shift)

    def importances(self, energies: Array, mass: Array | None = None) -> Array:
        z, ones = self._as_batch(energies)
        xp = namespace(z)
        mass = ones if mass is None else mass
        weights = self.slope(z) * mass
        # Divided by the largest first, so that weights near overflow do not sum to inf; where
        # all of them underflow, no sample has more of a say than another.
        top = xp.max(weights, axis=-1, keepdims=True)
        some = top > 0
        weights = xp.where(some, weights / xp.where(some, top, xp.ones_like(top)), mass + 0 * z)
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

    def weigh(self, energies: Array, mass: Array) -> Weighed:
        xp = namespace(energies)
        score = xp.where(mass > 0, self.score(energies), -xp.inf)
        shift = xp.max(score, axis=-1, keepdims=True)
        anchor = xp.where(xp.isfinite(shift), shift, xp.zeros_like(shift))
        score = score - anchor
        excess = xp.sum(xp.where(mass > 0, mass * xp.expm1(score), 0.0), axis=-1, keepdims=True)
        tally = Tally(shift, excess, xp.sum(mass) + xp.zeros_like(shift))
        log_top = self.power * anchor
        log_scale = _round_scale(log_top)
        weights = mass * xp.exp(self.power * score + (log_top - log_scale))
        return Weighed(weights, xp.where(xp.isfinite(shift), log_scale, shift), tally)

    def value_of(self, tally: Tally) -> Array:
        return self.outer(tally.log_sum_exp)

    def level_of(self, tally: Tally) -> Array:
        return self.outer(tally.log_mean_exp)

    def log_normaliser(self, tally: Tally) -> Array:
        return self.power * tally.log_sum_exp

    def log_units(self, tally: Tally) -> tuple[Array, Array]:
        log_count = namespace(tally.count).log(tally.count)
        return self.power * log_count, log_count

    def importances(self, energies: Array, mass: Array | None = None) -> Array:
        z, ones = self._as_batch(energies)
        xp = namespace(z)
        mass = ones if mass is None else mass
        # One name: for X in files these are among the largest arrays there are.
        share = xp.where(mass > 0, self.score(z), -xp.inf)
        share -= xp.max(share, axis=-1, keepdims=True)
        share = xp.exp(share)
        share *= mass
        share /= xp.sum(share, axis=-1, keepdims=True)
        return share

    def normalised_weights(self, importances: Array, mass: Array) -> Array:
        if isinstance(self.power, float) and self.power == 1.0:
            return importances
        xp = namespace(importances)
        some = mass > 0
        single = xp.where(some, importances / xp.where(some, mass, 1 + 0 * mass), 0 * importances)
        top = xp.max(single, axis=-1, keepdims=True)
        weights = mass * (single / xp.where(top > 0, top, 1 + 0 * top)) ** self.power
        return weights / xp.sum(weights, axis=-1, keepdims=True)


def _round_scale(log_top: Array) -> Array:
    """Units for weights whose largest has this logarithm: the next of few.

    Blocks whose weights are of about one size then have one scale, and their sums just add up.
    """
    return SCALE_STEP * namespace(log_top).ceil(log_top / SCALE_STEP)


def effective_sample_size(weights: Array, mass: Array | None = None) -> Array:
    """``1 / sum w^2`` of weights that sum to one: n for equal ones, 1 when one sample has it all.

    A sample that counts m times shares its weight among as many equal ones.
    """
    xp = namespace(weights)
    squares = weights**2
    if mass is not None:
        squares = xp.where(mass > 0, squares / xp.where(mass > 0, mass, 1 + 0 * mass), 0 * squares)
    return 1.0 / xp.sum(squares, axis=-1)
