"""Weights of the first passes of a fit, before automatic parameters are read off the energies."""

from __future__ import annotations

from typing import Any

import numpy as np

from robustnmf.arrays import Array, at_least, kernels_for, namespace
from robustnmf.weightings._base import Separable
from robustnmf.weightings._histogram import Bulk, EnergyHistogram
from robustnmf.weightings._trimming import (
    FALL,
    log_excess_over,
    reach_of,
    row_cutoffs,
    trimmed_rho,
    trimmed_weight,
)

LEAST_RELATIVE_CUTOFF = 1e-4
"""Relative energy up to which a sample is never excluded during the warm-up. Smaller than the one
of :class:`Trimmed`: a sample that is excluded for now comes back."""

LEAST_WEIGHT = 1e-250
"""Least weight during the warm-up. Where all samples are excluded they still have weights, and
these are so small that they do not matter otherwise."""


class WarmupWeights(Separable):
    """Give weight to the majority of the energies only, neither to larger nor to smaller ones.

    A component that a group of bad samples has taken at the start describes them better than
    the other samples are described. Excluded for some passes, they lose the component, and
    their energies then show how badly the other components describe them. The interval of
    energies with full weight grows from pass to pass.

    These weights are not the gradient of an objective. ``rho`` is that of trimmed weights; its
    sum is reported while the fit runs, and nothing is decided by it.

    Parameters
    ----------
    cutoff : float
        Energy up to which a sample counts in full.
    share : float
        The same as a share of the size of the sample.
    power : float
        How steeply weights fall outside.
    least : float
        Relative energy (or energy, once sizes are known) from which on a sample counts in full.
    """

    scales = {"cutoff": 1.0}
    uses_row_sizes = True

    def __init__(self, cutoff: Any, share: Any, power: Any, least: Any):
        self.cutoff = cutoff
        self.share = share
        self.power = power
        self.least = least

    @classmethod
    def at(cls, histogram: EnergyHistogram, progress: float) -> WarmupWeights:
        """Build the weights for the energies of a pass.

        ``progress`` grows from 0 (the centre of the energies only) to 1 (the reach of trimmed
        weights).
        """
        absolute, relative = histogram.energies.core(), histogram.relative_energies.core()
        reach = reach_of(histogram) * progress

        def edge(bulk: Bulk, sign: float) -> float:
            return float(np.exp(bulk.centre + sign * reach * bulk.deviation))

        # Where all samples are fitted, small energies are no sign of a group of bad samples.
        are_fitted = relative.centre < np.log(LEAST_RELATIVE_CUTOFF)
        return cls(
            max(edge(absolute, 1.0), LEAST_RELATIVE_CUTOFF) * histogram.unit,
            max(edge(relative, 1.0), LEAST_RELATIVE_CUTOFF),
            FALL / absolute.deviation,
            0.0 if are_fitted else edge(relative, -1.0),
        )

    def for_row_sizes(self, sizes: Array) -> WarmupWeights:
        cutoff = row_cutoffs(self.cutoff, self.share, sizes)
        return WarmupWeights(cutoff, np.inf, self.power, self.least * sizes)

    def rho_and_weight(self, energies: Array, sizes: Array) -> tuple[Array, Array]:
        known = kernels_for(energies).trimmed_rows(
            energies, sizes, self.cutoff, self.share, self.power,
            least=self.least, least_weight=LEAST_WEIGHT,
        )  # fmt: skip
        return super().rho_and_weight(energies, sizes) if known is None else known

    def rho(self, energies: Array) -> Array:
        return trimmed_rho(energies, self.cutoff, self.power)

    def weight(self, energies: Array) -> Array:
        log_deficit = log_excess_over(self.least + 0.0 * energies, energies)
        upper = trimmed_weight(energies, self.cutoff, self.power)
        lower = namespace(energies).exp(-self.power * log_deficit)
        return at_least(upper * lower, LEAST_WEIGHT)
