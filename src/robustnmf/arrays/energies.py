"""Compiled loops (numba) over energies: rounding, trimmed weights, their scale, histograms.

For tables of a few hundred rows the array calls that they replace cost more than the arithmetic.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from robustnmf.arrays.kernels import OPTIONS
from robustnmf.arrays.namespace import Array


@njit(**OPTIONS)
def complete_energies(
    energies: Array,
    sq_norms: Array,
    rows: Array,
    unit: float,
    codes: Array,
    basis: Array,
    doubtful: float,
    least: float,
    residual: Array,
) -> None:
    """Add squared norms (rows,) to the other terms of energies (members, rows), in place.

    Energies below a share ``doubtful`` of the squared norm are recomputed from the residuals of
    ``unit * rows`` (rows, features), which are written to ``residual`` (features,). No energy is
    below a share ``least`` of it.
    """
    members, count, k = codes.shape
    features = residual.shape[0]
    for b in range(members):
        for i in range(count):
            energy = sq_norms[i] + energies[b, i]
            if energy < doubtful * sq_norms[i]:
                for j in range(features):
                    residual[j] = rows[i, j] * unit
                for c in range(k):
                    code = codes[b, i, c]
                    for j in range(features):
                        residual[j] -= code * basis[b, c, j]
                energy = 0.0
                for j in range(features):
                    energy += np.float64(residual[j]) * np.float64(residual[j])
            energies[b, i] = max(energy, least * sq_norms[i])


@njit(**OPTIONS)
def trim_rows(
    energies: Array,
    sizes: Array,
    cutoff: float,
    share: float,
    power: float,
    floor: float,
    least: float,
    least_weight: float,
    rho: Array,
    weight: Array,
) -> None:
    """Compute rho and trimmed weights of energies (members, rows) with sizes (rows,).

    The cutoff of a row is ``max(floor, min(cutoff, share size))``. Energies below ``least size``
    lose weight as well, and no weight is below ``least_weight``.
    """
    members, count = energies.shape
    tiny = np.finfo(np.float64).tiny
    for b in range(members):
        for i in range(count):
            energy, size = energies[b, i], sizes[i]
            bound = max(min(share * size, cutoff) if size > 0.0 else cutoff, floor)
            if energy <= max(bound, tiny):
                rho[b, i], factor = min(energy, bound), 1.0
            else:
                excess = math.log(energy) - math.log(max(bound, tiny))
                rho[b, i] = bound - bound * math.expm1((1.0 - power) * excess) / (power - 1.0)
                factor = math.exp(-power * excess)
            from_below = max(energy, tiny)
            if least * size > from_below:
                factor *= math.exp(-power * (math.log(least * size) - math.log(from_below)))
            weight[b, i] = max(factor, least_weight)


@njit(**OPTIONS)
def scale_weights(
    rho: Array,
    weight: Array,
    sample_weight: Array,
    scale_step: float,
    weights: Array,
    sums: Array,
) -> None:
    """Multiply weights (members, rows) by those of samples (rows,), in units of the largest.

    ``sums`` (3, members, 1) are the logarithm of the unit, rounded up to a multiple of
    ``scale_step``, the weighted sum of ``rho``, and the sum of the sample weights.
    """
    members, count = weight.shape
    for b in range(members):
        total, samples, top = 0.0, 0.0, 0.0
        for i in range(count):
            total += sample_weight[i] * rho[b, i]
            samples += sample_weight[i]
            value = sample_weight[i] * weight[b, i]
            weights[b, i] = value
            top = value if not value <= top else top
        log_scale = 0.0
        if not top > 0.0:
            log_scale = -np.inf
        elif not (math.exp(-scale_step) < top <= 1.0):
            log_top = math.log(max(top, np.finfo(np.float64).tiny))
            log_scale = scale_step * math.ceil(log_top / scale_step)
            factor = math.exp(-log_scale)
            for i in range(count):
                weights[b, i] *= factor
        sums[0, b, 0], sums[1, b, 0], sums[2, b, 0] = log_scale, total, samples


@njit(**OPTIONS)
def count_shared(lists: Array, sample_weight: Array, counts: Array) -> None:
    """Add positions (lists, rows) with weights (rows,) to counts (lists, nodes).

    A position between two nodes is shared by them, in proportion to how close they are. NaN, and
    what does not lie between the first node and the last one, is not counted.
    """
    for b in range(lists.shape[0]):
        for i in range(lists.shape[1]):
            position = lists[b, i]
            # Not by int(position): of NaN that is any number, and counts would be written anywhere.
            if not 0.0 <= position < counts.shape[1] - 1:
                continue
            left = int(position)
            right_share = position - left
            counts[b, left] += sample_weight[i] * (1.0 - right_share)
            counts[b, left + 1] += sample_weight[i] * right_share
