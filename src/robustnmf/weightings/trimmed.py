r"""Samples count in full up to an energy, and hardly at all beyond it."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from robustnmf.arrays import Array, at_least, at_most, floored, namespace
from robustnmf.weightings._base import Separable
from robustnmf.weightings._profile import Bulk, EnergyHistogram

REACH, REACH_OF_FEW = 2.5, 3.0
"""Standard deviations of log energies from their centre within which samples count in full."""

TYPICAL = 1.5
"""Standard deviations within which the energy of a sample is typical, whatever its size."""

FEW = 120.0
"""Up to so many samples are few. The half of them that lies closest together is closer than half
of their distribution, all the more as the basis was fitted to it: they may reach further."""

FALL = 4.0
"""Power over the standard deviation: one more of them costs a factor e to the fourth."""

MARGIN = 1.35
"""Half of the samples have at most the cutoff over this."""

LEAST = 1e-2
"""Share of its size below which the energy of a sample never costs it its say: what is fitted to a
tenth of its norm is fitted. Parts of clean data may be learned from few samples, late."""

NARROW = 1e-4
"""The same while the gate opens: who is kept out for now comes back."""

FAINT = 1e-100
"""What samples count at least while they are kept out: should it happen to all, none is lost, and
none is so large that it counts for all that."""


class Trimmed(Separable):
    r"""Equal weights up to a cutoff, and a steep fall beyond.

    .. math::

        \phi(z) = \sum_i \begin{cases} z_i & z_i \le t_i \\
        t_i \left(1 + \frac{1 - (t_i / z_i)^{q - 1}}{q - 1}\right) & z_i > t_i \end{cases},
        \qquad w_i = \min\left(1, \Big(\frac{t_i}{z_i}\Big)^{q}\right)

    with :math:`t_i = \max(f, \min(t, r\, |x_i|^2))`. Large powers q approach trimming: what is
    beyond has no weight at all. Unlike weights that fall from the smallest energies on, these cost
    clean data nearly nothing.

    Energies alone do not tell the sizes of samples: called with them, ``weights``, ``value`` and
    ``importances`` take the cutoff for all.

    Parameters
    ----------
    cutoff : float > 0 or "auto", default="auto"
        Energy t up to which a sample counts in full, in the squared units of X. With "auto" all
        parameters are read off the logarithms of the energies while the fit settles, and are then
        frozen: the cutoff lies 2.5 standard deviations of the majority above its centre (3 where
        samples are few).
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
        bounded = _least_of(self.cutoff, self.share, sizes)
        return Trimmed(
            namespace(sizes).maximum(bounded, self.floor + 0.0 * bounded), np.inf, self.power
        )

    def outliers(
        self, energies: Array, weights: Array, sample_weight: Array, sizes: Array
    ) -> Array:
        """Find the samples (samples,) that count and are beyond their cutoffs."""
        return (energies > self.for_row_sizes(sizes).cutoff) & (sample_weight > 0)

    def rho(self, energies: Array) -> Array:
        xp = namespace(energies)
        beyond = -xp.expm1((1.0 - self.power) * self._log_excess(energies)) / (self.power - 1.0)
        inside = at_most(energies, self.cutoff)
        return inside + self.cutoff * beyond

    def weight(self, energies: Array) -> Array:
        return namespace(energies).exp(-self.power * self._log_excess(energies))

    def _log_excess(self, energies: Array) -> Array:
        """By how much log energies exceed the cutoff; zero below it."""
        return _log_ratio(energies, self.cutoff)

    @property
    def has_auto(self) -> bool:
        return isinstance(self.cutoff, str)

    @property
    def needs_screening(self) -> bool:
        return self.has_auto

    def resolve_auto(self, histogram: EnergyHistogram, further: float = 0.0) -> Trimmed:
        """The cutoffs above the majority; half of all samples stay a margin below them.

        They lie ``further`` standard deviations from its centre than while it is being found.
        """
        reach = _reach(histogram) + further
        of_energies, of_shares = (
            histogram.energies.bulk(reach),
            histogram.relative_energies.bulk(reach),
        )
        logs = [bulk.centre + reach * bulk.deviation for bulk in (of_energies, of_shares)]
        raised = histogram.larger(*logs).median() + np.log(MARGIN)
        log_cutoff, log_share = (log + max(0.0, raised) for log in logs)
        return Trimmed(
            max(float(np.exp(log_cutoff)), LEAST) * histogram.unit,
            max(float(np.exp(log_share)), LEAST),
            FALL / of_energies.deviation,
            float(np.exp(of_energies.centre + TYPICAL * of_energies.deviation)) * histogram.unit,
        )

    def stricter(self, deviations: float, unit: float) -> Trimmed:
        """Lower the cutoffs by some standard deviations of log energies, to no less than fits.

        ``unit`` is the size of a typical sample.
        """
        by = float(np.exp(-deviations * FALL / self.power))
        cutoff, share = max(by * self.cutoff, LEAST * unit), max(by * self.share, LEAST)
        return Trimmed(cutoff, share, self.power, by * self.floor)

    def covering(
        self, energies: Array, sizes: Array, sample_weight: Array, share: float
    ) -> Trimmed:
        """Raise the cutoffs, all by the same factor, until they cover a share of the samples."""
        excess = energies / np.maximum(self.for_row_sizes(sizes).cutoff, np.finfo(float).tiny)
        by = max(1.0, _quantile(excess, sample_weight, share))
        return Trimmed(by * self.cutoff, by * self.share, self.power, by * self.floor)


class WarmupWeights(Trimmed):
    """Weights of the first passes: only the majority counts, and not what fits too well.

    A component that a group of bad samples has taken at the start describes them better than
    the others are described. Left out for some passes they lose it, and then show the energy
    that they have without. The gate opens as the passes go by.
    """

    _parameter_constraints = {}

    def __init__(self, cutoff: Any, share: Any, power: Any, least: Any):
        super().__init__(cutoff, share, power)
        self.least = least

    @classmethod
    def at(cls, histogram: EnergyHistogram, openness: float) -> WarmupWeights:
        """The gate for the energies of a pass, from 0 (narrow) to 1 (as wide as the cutoffs)."""
        of_energies, of_shares = histogram.energies.core(), histogram.relative_energies.core()
        reach = _reach(histogram) * openness

        def edge(bulk: Bulk, way: float) -> float:
            return float(np.exp(bulk.centre + way * reach * bulk.deviation))

        fitted = of_shares.centre < np.log(NARROW)  # all of them: there is nothing to tell apart
        return cls(
            max(edge(of_energies, 1.0), NARROW) * histogram.unit,
            max(edge(of_shares, 1.0), NARROW),
            FALL / of_energies.deviation,
            0.0 if fitted else edge(of_shares, -1.0),
        )

    def for_row_sizes(self, sizes: Array) -> WarmupWeights:
        cutoff = _least_of(self.cutoff, self.share, sizes)
        return WarmupWeights(cutoff, np.inf, self.power, self.least * sizes)

    def weight(self, energies: Array) -> Array:
        xp = namespace(energies)
        short = _log_ratio(self.least + 0.0 * energies, energies)
        heard = super().weight(energies) * xp.exp(-self.power * short)
        return at_least(heard, FAINT)


def _reach(histogram: EnergyHistogram) -> float:
    """Standard deviations within which samples count in full."""
    few = min(1.0, FEW / max(histogram.energies.total, 1.0)) ** 2
    return REACH + (REACH_OF_FEW - REACH) * few


def _quantile(values: np.ndarray, sample_weight: np.ndarray, share: float) -> float:
    """The value that a share of all values, each as often as it counts, does not exceed."""
    order = np.argsort(values)
    passed = np.cumsum(sample_weight[order])
    return float(values[order[np.searchsorted(passed, share * passed[-1] * (1 - 1e-12))]])


def _least_of(cutoff: Any, share: Any, sizes: Array) -> Array:
    """Cutoffs of rows: the one of all, or the share of their own size."""
    xp = namespace(sizes)
    own = share * xp.where(sizes > 0, sizes, xp.inf + 0.0 * sizes)
    return xp.minimum(own, cutoff + 0.0 * sizes)


def _log_ratio(above: Array, below: Any) -> Array:
    """Logarithm of a ratio, zero where it is below one."""
    xp = namespace(above)
    below = floored(below + 0.0 * above)
    return xp.log(xp.maximum(above, below)) - xp.log(below)
