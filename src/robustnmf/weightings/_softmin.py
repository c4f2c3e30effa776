"""Base class of the weightings whose importances are a softmax of the energies."""

from __future__ import annotations

from abc import abstractmethod

from robustnmf.arrays import Array, namespace
from robustnmf.weightings._base import Weighting
from robustnmf.weightings._sums import BlockWeights, ObjectiveSums, round_scale


class SoftMin(Weighting):
    """``phi(z) = T(log sum exp s(z_i))``; a subclass defines ``score`` (s) and ``outer`` (T)."""

    @abstractmethod
    def score(self, energies: Array) -> Array:
        """Compute the decreasing function s of every energy; importances are its softmax."""

    @abstractmethod
    def outer(self, log_sum: Array) -> Array:
        """Compute phi from the logarithm of the sum: the function T."""

    @property
    def power(self) -> Array | float:
        """Weights are importances to this power."""
        return 1.0

    def weigh(self, energies: Array, sample_weight: Array) -> BlockWeights:
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
        log_scale = round_scale(log_top)
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
        # In place: for X in files these are among the largest arrays in memory.
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
        counts = sample_weight > 0
        per_unit = xp.where(  # importance for a sample weight of one
            counts,
            importances / xp.where(counts, sample_weight, 1 + 0 * sample_weight),
            0 * importances,
        )
        top = xp.max(per_unit, axis=-1, keepdims=True)
        weights = sample_weight * (per_unit / xp.where(top > 0, top, 1 + 0 * top)) ** self.power
        return weights / xp.sum(weights, axis=-1, keepdims=True)
