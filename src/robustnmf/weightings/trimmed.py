r"""Trimmed weights: samples count in full up to a cutoff of their energy, and hardly beyond."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from robustnmf.arrays import Array, kernels_for, namespace, weighted_quantile
from robustnmf.weightings._base import Separable
from robustnmf.weightings._histogram import EnergyHistogram
from robustnmf.weightings._trimming import (
    FALL,
    reach_of,
    row_cutoffs,
    trimmed_rho,
    trimmed_weight,
)

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
        bounded = row_cutoffs(self.cutoff, self.share, sizes)
        return Trimmed(
            namespace(sizes).maximum(bounded, self.floor + 0.0 * bounded), np.inf, self.power
        )

    def rho_and_weight(self, energies: Array, sizes: Array) -> tuple[Array, Array]:
        known = kernels_for(energies).trimmed_rows(
            energies, sizes, self.cutoff, self.share, self.power, floor=self.floor
        )
        return super().rho_and_weight(energies, sizes) if known is None else known

    def outliers(
        self, energies: Array, weights: Array, sample_weight: Array, sizes: Array
    ) -> Array:
        """Find the samples (samples,) of positive weight whose energies exceed their cutoffs."""
        return (energies > self.for_row_sizes(sizes).cutoff) & (sample_weight > 0)

    def rho(self, energies: Array) -> Array:
        return trimmed_rho(energies, self.cutoff, self.power)

    def weight(self, energies: Array) -> Array:
        return trimmed_weight(energies, self.cutoff, self.power)

    @property
    def has_auto(self) -> bool:
        return isinstance(self.cutoff, str)

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
        reach = reach_of(histogram) + extra_reach
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
