"""Formulas shared by trimmed weights and the weights of the first passes."""

from __future__ import annotations

from typing import Any

from robustnmf.arrays import Array, at_most, floored, namespace
from robustnmf.weightings._histogram import EnergyHistogram

REACH, REACH_OF_FEW = 2.5, 3.0
"""Standard deviations of log energies from their centre within which samples count in full."""

FEW = 120.0
"""Up to so many samples are few. The half of them that lies closest together is closer than half
of their distribution, all the more as the basis was fitted to it: they may reach further."""

FALL = 4.0
"""Power times the standard deviation: one more of them costs a factor e to the fourth."""


def reach_of(histogram: EnergyHistogram) -> float:
    """Return the number of standard deviations within which samples count in full."""
    few = min(1.0, FEW / max(histogram.samples, 1.0)) ** 2
    return REACH + (REACH_OF_FEW - REACH) * few


def row_cutoffs(cutoff: Any, share: Any, sizes: Array) -> Array:
    """Return the cutoff of every row (..., rows): ``min(cutoff, share * size)``.

    Rows of size zero have the common cutoff.
    """
    xp = namespace(sizes)
    relative = share * xp.where(sizes > 0, sizes, xp.inf + 0.0 * sizes)
    return xp.minimum(relative, cutoff + 0.0 * sizes)


def log_excess_over(energies: Array, bound: Any) -> Array:
    """Return ``max(0, log(energies / bound))`` of every energy."""
    xp = namespace(energies)
    bound = floored(bound + 0.0 * energies)
    return xp.log(xp.maximum(energies, bound)) - xp.log(bound)


def trimmed_rho(energies: Array, cutoff: Any, power: Any) -> Array:
    """Return the contribution of every energy to phi: linear up to the cutoff, bounded beyond."""
    xp = namespace(energies)
    log_excess = log_excess_over(energies, cutoff)
    beyond = -xp.expm1((1.0 - power) * log_excess) / (power - 1.0)
    inside = at_most(energies, cutoff)
    return inside + cutoff * beyond


def trimmed_weight(energies: Array, cutoff: Any, power: Any) -> Array:
    """Return ``min(1, (cutoff / energy)^power)`` of every energy, the derivative of rho."""
    return namespace(energies).exp(-power * log_excess_over(energies, cutoff))
