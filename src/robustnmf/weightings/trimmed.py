r"""Trimmed weights: samples count in full up to a cutoff of their energy, and hardly beyond.

In the first passes of a fit, before automatic parameters are read off the energies, related weights
(:class:`WarmupWeights`) exclude small energies as well.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from robustnmf.arrays import (
    Array,
    at_least,
    at_most,
    floored,
    namespace,
    weighted_quantile,
)
from robustnmf.weightings._base import Separable
from robustnmf.weightings._histogram import Bulk, EnergyHistogram

REACH, REACH_OF_FEW = 2.5, 3.0
"""Standard deviations of log energies from their centre within which samples count in full."""

FEW = 120.0
"""Up to so many samples are few. The half of them that lies closest together is closer than half
of their distribution, all the more as the basis was fitted to it: they may reach further."""

FALL = 4.0
"""Power times the standard deviation: one more of them costs a factor e to the fourth."""

TYPICAL = 1.5
"""Standard deviations within which the energy of a sample is typical, whatever its size."""

MARGIN = 1.35
"""Half of the samples have at most the cutoff over this."""

FEWEST_SAMPLES = 20
"""Fewer samples are all kept: a bad one cannot be distinguished from one of a small group, and the
half of them that lies closest together says little about the others."""

BEYOND_ALL = 100.0
"""Cutoff of so few samples over their largest energy, or over the size of a typical one."""

LEAST_RELATIVE_CUTOFF = 1e-2
"""Relative energy up to which a sample is never down-weighted: what is fitted to a tenth of its
norm is fitted. Parts of clean data may be learned from few samples, late."""

LEAST_WARMUP_CUTOFF = 1e-4
"""Relative energy up to which a sample is never excluded during the warm-up. Smaller than the one
of :class:`Trimmed`: a sample that is excluded for now comes back."""

LEAST_WEIGHT = 1e-250
"""Least weight during the warm-up. Where all samples are excluded they still have weights, and
these are so small that they do not matter otherwise."""


class Trimmed(Separable):
    r"""Equal weights up to a cutoff, and a steep fall beyond.

    Use it for bad samples among good ones; clean tables are fitted as by plain NMF, on average.

    .. math::

        \phi(z) = \sum_i \begin{cases} z_i & z_i \le t_i \\
        t_i \left(1 + \frac{1 - (t_i / z_i)^{q - 1}}{q - 1}\right) & z_i > t_i \end{cases},
        \qquad w_i = \min\left(1, \Big(\frac{t_i}{z_i}\Big)^{q}\right)

    with :math:`t_i = \max(f, \min(t, r\, |x_i|^2))`. Large powers q approach trimming: what is
    beyond has no weight at all. Unlike weights that fall from the smallest energies on, these cost
    clean data nearly nothing.

    ``weights``, ``value`` and ``importances`` take energies without the sizes of the samples, and
    apply the cutoff t to all of them.

    Parameters
    ----------
    cutoff : float > 0 or "auto", default="auto"
        Energy t up to which a sample counts in full, in the squared units of X. With "auto" all
        parameters are read off the logarithms of the energies in the first passes, and are then
        frozen: the cutoff lies 2.5 standard deviations of the majority above its centre (3 where
        samples are few, beyond all samples where they are fewer than 20).
    share : float > 0, default=inf
        The same as a share r of the size of the sample (its squared norm).
    power : float > 1, default=8.0
        How steeply weights fall.
    floor : float >= 0, default=0.0
        Energy f up to which a sample counts in full however small it is: noise that is the same
        for all samples is a large share of small ones.

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

    cutoff: Any  # a number, or one for every row and member
    power: Any

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

    def rho(self, energies: Array) -> Array:
        return _trimmed_rho(energies, self.cutoff, self.power)

    def weight(self, energies: Array) -> Array:
        return _trimmed_weight(energies, self.cutoff, self.power)

    @property
    def needs_screening(self) -> bool:
        return self.has_auto

    def resolve_auto(self, histogram: EnergyHistogram, extra_reach: float = 0.0) -> Trimmed:
        """Return the weighting with cutoffs above the majority of the energies.

        ``extra_reach`` standard deviations are added to the usual distance from its centre. The
        cutoffs are raised where needed, so that half of all samples stay a margin below them.
        Fewer than ``FEWEST_SAMPLES`` samples are all below them.
        """
        if histogram.samples < FEWEST_SAMPLES:
            largest = max(1.0, float(np.exp(histogram.energies.last())))
            return Trimmed(BEYOND_ALL * largest * histogram.unit)
        reach = _reach_of(histogram) + extra_reach
        absolute, relative = (
            histogram.energies.bulk(reach),
            histogram.relative_energies.bulk(reach),
        )
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

        Relative to ``unit``, the size of a typical sample, they stay at least
        ``LEAST_RELATIVE_CUTOFF``.
        """
        factor = float(np.exp(-deviations * FALL / self.power))
        cutoff = max(factor * self.cutoff, LEAST_RELATIVE_CUTOFF * unit)
        share = max(factor * self.share, LEAST_RELATIVE_CUTOFF)
        return Trimmed(cutoff, share, self.power, factor * self.floor)

    def raise_cutoffs_to_cover(
        self, energies: Array, sizes: Array, sample_weight: Array, share: float
    ) -> Trimmed:
        """Return the weighting with cutoffs that cover a share of the samples (samples,).

        All cutoffs are raised by the same factor, and none is lowered.
        """
        ratios = energies / np.maximum(self.for_row_sizes(sizes).cutoff, np.finfo(float).tiny)
        factor = max(1.0, weighted_quantile(ratios, sample_weight, share))
        return Trimmed(factor * self.cutoff, factor * self.share, self.power, factor * self.floor)


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
        reach = _reach_of(histogram) * progress

        def edge(bulk: Bulk, sign: float) -> float:
            return float(np.exp(bulk.centre + sign * reach * bulk.deviation))

        # Where all samples are fitted, small energies are no sign of a group of bad samples.
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

    def rho(self, energies: Array) -> Array:
        return _trimmed_rho(energies, self.cutoff, self.power)

    def weight(self, energies: Array) -> Array:
        log_deficit = _log_excess_over(self.least + 0.0 * energies, energies)
        upper = _trimmed_weight(energies, self.cutoff, self.power)
        lower = namespace(energies).exp(-self.power * log_deficit)
        return at_least(upper * lower, LEAST_WEIGHT)


def _reach_of(histogram: EnergyHistogram) -> float:
    """Return the number of standard deviations within which samples count in full."""
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


def _trimmed_rho(energies: Array, cutoff: Any, power: Any) -> Array:
    """Return the contribution of every energy to phi: linear up to the cutoff, bounded beyond."""
    xp = namespace(energies)
    log_excess = _log_excess_over(energies, cutoff)
    beyond = -xp.expm1((1.0 - power) * log_excess) / (power - 1.0)
    inside = at_most(energies, cutoff)
    return inside + cutoff * beyond


def _trimmed_weight(energies: Array, cutoff: Any, power: Any) -> Array:
    """Return ``min(1, (cutoff / energy)^power)`` of every energy, the derivative of rho."""
    return namespace(energies).exp(-power * _log_excess_over(energies, cutoff))
