r"""Trimmed weights: full weight up to a cutoff of the energy, and almost none beyond.

In the first passes of a fit, before automatic parameters are estimated from the energies, related
weights (:class:`WarmupWeights`) exclude small energies as well.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from robustnmf.arrays import (
    Array,
    Bulk,
    EnergyHistogram,
    at_least,
    at_most,
    floored,
    namespace,
    weighted_quantile,
)
from robustnmf.weightings._base import Separable

REACH, REACH_OF_FEW = 2.5, 3.0
"""Samples within this many standard deviations of the centre of log energies have full weight."""

FEW = 120.0
"""Up to this number of samples the larger reach is used. The shortest half of few energies is
shorter than half of their distribution, also because the basis was fitted to these samples."""

FALL = 4.0
"""Power times the standard deviation: each further deviation divides the weight by e**4."""

TYPICAL = 1.5
"""Energies within this many standard deviations are typical for a sample of any size."""

MARGIN = 1.35
"""Half of the samples have energies of at most the cutoff divided by this number."""

FEWEST_SAMPLES = 20
"""With fewer samples all are kept: a bad sample cannot be distinguished from a small group, and
the shortest half of their energies is a poor estimate of the others."""

BEYOND_ALL = 100.0
"""Cutoff for so few samples, relative to their largest energy or a typical sample's size."""

LEAST_RELATIVE_CUTOFF = 1e-2
"""Relative energy up to which a sample is never down-weighted: a residual of a tenth of the norm
is a good fit. Components of clean data can be learned late and from few samples."""

LEAST_WARMUP_CUTOFF = 1e-4
"""Relative energy up to which a sample is never excluded during the warm-up. It is smaller than
that of :class:`Trimmed`, because a sample excluded in the warm-up can be included later."""

LEAST_WEIGHT = 1e-250
"""Least weight during the warm-up. It matters only if all samples are excluded, which would
otherwise all have weight zero."""


class _Cut(Separable):
    """Full weight up to a cutoff, and a steep fall beyond it."""

    cutoff: Any  # a number, or one per row and member
    power: Any

    def rho(self, energies: Array) -> Array:
        xp = namespace(energies)
        log_excess = _log_excess_over(energies, self.cutoff)
        beyond = -xp.expm1((1.0 - self.power) * log_excess) / (self.power - 1.0)
        return at_most(energies, self.cutoff) + self.cutoff * beyond

    def weight(self, energies: Array) -> Array:
        return namespace(energies).exp(-self.power * _log_excess_over(energies, self.cutoff))


class Trimmed(_Cut):
    r"""Equal weights up to a cutoff, and a steep fall beyond it.

    Use it for data with outliers; on clean data it is nearly as good as plain NMF.

    .. math::

        \phi(z) = \sum_i \begin{cases} z_i & z_i \le t_i \\
        t_i \left(1 + \frac{1 - (t_i / z_i)^{q - 1}}{q - 1}\right) & z_i > t_i \end{cases},
        \qquad w_i = \min\left(1, \Big(\frac{t_i}{z_i}\Big)^{q}\right)

    with :math:`t_i = \max(f, \min(t, r\, |x_i|^2))` for the energy (reconstruction error)
    :math:`z_i` of a sample. Large powers q approach trimming, where samples above the cutoff have
    weight zero. Most samples of clean data keep full weight, so that little precision is lost.

    ``weights``, ``value`` and ``importances`` take energies without the sizes of the samples, and
    use the cutoff t for all samples.

    Parameters
    ----------
    cutoff : float > 0 or "auto", default="auto"
        Energy t up to which a sample has full weight, in the squared units of X. With "auto" all
        parameters are estimated from the logarithms of the energies in the first passes, and are
        then frozen: the cutoff lies 2.5 standard deviations of the majority above its centre (3 for
        few samples; with fewer than 20 samples, it lies above all of them).
    share : float > 0, default=inf
        The same limit as a share r of the sample's size (its squared norm).
    power : float > 1, default=8.0
        Steepness of the fall of the weights.
    floor : float >= 0, default=0.0
        Energy f up to which even a small sample has full weight: with a constant noise
        level, noise is a large share of a small sample.

    Examples
    --------
    >>> from robustnmf import Trimmed
    >>> Trimmed(cutoff=1.0, power=2.0).weights([0.5, 1.0, 10.0])
    array([1.  , 1.  , 0.01])
    """

    scales = {"cutoff": 1.0, "floor": 1.0}
    knob = "cutoff"
    uses_row_sizes = True
    needs_warmup = True
    _parameter_constraints = {
        "cutoff": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "share": [Interval(Real, 0, None, closed="right")],
        "power": [Interval(Real, 1, None, closed="neither")],
        "floor": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        cutoff: float | str = "auto",
        share: float = np.inf,
        power: float = 8.0,
        floor: float = 0.0,
    ):
        self.cutoff = cutoff
        self.share = share
        self.power = power
        self.floor = floor

    def for_row_sizes(self, sizes: Array) -> Trimmed:
        bounded = _row_cutoffs(self.cutoff, self.share, sizes)
        return Trimmed(
            namespace(sizes).maximum(bounded, self.floor + 0.0 * bounded), np.inf, self.power
        )

    def outliers(
        self, energies: Array, weights: Array, sample_weight: Array, sizes: Array
    ) -> Array:
        """Find the samples (samples,) of positive weight whose energies exceed their cutoffs."""
        return (energies > self.for_row_sizes(sizes).cutoff) & (sample_weight > 0)

    @property
    def needs_screening(self) -> bool:
        return self.has_auto

    def resolve_auto(self, histogram: EnergyHistogram, extra_reach: float = 0.0) -> Trimmed:
        """Return the weighting with cutoffs above the majority of the energies.

        ``extra_reach`` standard deviations are added to the usual distance from the centre.
        """
        if histogram.samples < FEWEST_SAMPLES:
            largest = max(1.0, float(np.exp(histogram.energies.last())))
            return Trimmed(BEYOND_ALL * largest * histogram.unit)
        reach = _reach_of(histogram) + extra_reach
        absolute = histogram.energies.bulk(reach)
        relative = histogram.relative_energies.bulk(reach)
        logs = [bulk.centre + reach * bulk.deviation for bulk in (absolute, relative)]
        shortfall = histogram.larger(*logs).median() + np.log(MARGIN)
        log_cutoff, log_share = (log + max(0.0, shortfall) for log in logs)
        return Trimmed(
            max(float(np.exp(log_cutoff)), LEAST_RELATIVE_CUTOFF) * histogram.unit,
            max(float(np.exp(log_share)), LEAST_RELATIVE_CUTOFF),
            FALL / absolute.deviation,
            float(np.exp(absolute.centre + TYPICAL * absolute.deviation)) * histogram.unit,
        )

    def lower_cutoffs(self, deviations: float, unit: float) -> Trimmed:
        """Return the weighting with cutoffs lowered by some standard deviations of log energies.

        They remain at least ``LEAST_RELATIVE_CUTOFF`` relative to ``unit``, the size of a typical
        sample.
        """
        factor = float(np.exp(-deviations * FALL / self.power))
        cutoff = max(factor * self.cutoff, LEAST_RELATIVE_CUTOFF * unit)
        share = max(factor * self.share, LEAST_RELATIVE_CUTOFF)
        return Trimmed(cutoff, share, self.power, factor * self.floor)

    def raise_cutoffs_to_cover(
        self, energies: Array, sizes: Array, sample_weight: Array, share: float
    ) -> Trimmed:
        """Return the weighting with cutoffs that cover a share of the samples (samples,).

        All cutoffs are raised by the same factor; none is lowered.
        """
        ratios = energies / np.maximum(self.for_row_sizes(sizes).cutoff, np.finfo(float).tiny)
        factor = max(1.0, weighted_quantile(ratios, sample_weight, share))
        return Trimmed(factor * self.cutoff, factor * self.share, self.power, factor * self.floor)


class WarmupWeights(_Cut):
    """Weights for the warm-up: only the majority of the energies has weight, no extreme ones.

    If a group of bad samples has taken a component at the start, it is fitted better than the
    other samples. While these samples are excluded, they lose the component, and their energies
    then show that the other components fit them badly. The interval of energies with full weight
    grows from pass to pass.

    These weights are not the gradient of an objective. ``rho`` is the one of trimmed weights; its
    sum is reported during the fit, and no decision depends on it.

    ``cutoff``, ``share`` and ``power`` are those of trimmed weights. ``least`` is the least
    relative energy with full weight, or the least energy if sizes are known.
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

        ``progress`` grows from 0 (only the centre of the energies) to 1 (the reach of trimmed
        weights).
        """
        absolute, relative = histogram.energies.core(), histogram.relative_energies.core()
        reach = _reach_of(histogram) * progress

        def edge(bulk: Bulk, sign: float) -> float:
            return float(np.exp(bulk.centre + sign * reach * bulk.deviation))

        # If all samples are fitted well, small energies do not indicate a group of bad samples.
        are_fitted = relative.centre < np.log(LEAST_WARMUP_CUTOFF)
        return cls(
            max(edge(absolute, 1.0), LEAST_WARMUP_CUTOFF) * histogram.unit,
            max(edge(relative, 1.0), LEAST_WARMUP_CUTOFF),
            FALL / absolute.deviation,
            0.0 if are_fitted else edge(relative, -1.0),
        )

    def for_row_sizes(self, sizes: Array) -> WarmupWeights:
        cutoff = _row_cutoffs(self.cutoff, self.share, sizes)
        return WarmupWeights(cutoff, np.inf, self.power, self.least * sizes)

    def weight(self, energies: Array) -> Array:
        log_deficit = _log_excess_over(self.least + 0.0 * energies, energies)
        upper = super().weight(energies)
        lower = namespace(energies).exp(-self.power * log_deficit)
        return at_least(upper * lower, LEAST_WEIGHT)


def _reach_of(histogram: EnergyHistogram) -> float:
    """Return the number of standard deviations within which samples have full weight."""
    few = min(1.0, FEW / max(histogram.samples, 1.0)) ** 2
    return REACH + (REACH_OF_FEW - REACH) * few


def _row_cutoffs(cutoff: Any, share: Any, sizes: Array) -> Array:
    """Return the cutoff of every row (..., rows): ``min(cutoff, share * size)``.

    Rows of size zero have the common cutoff.
    """
    xp = namespace(sizes)
    relative = share * xp.where(sizes > 0, sizes, xp.inf + 0.0 * sizes)
    return xp.minimum(relative, cutoff + 0.0 * sizes)


def _log_excess_over(energies: Array, bound: Any) -> Array:
    """Return ``max(0, log(energies / bound))`` of every energy."""
    xp = namespace(energies)
    bound = floored(bound + 0.0 * energies)
    return xp.log(xp.maximum(energies, bound)) - xp.log(bound)
