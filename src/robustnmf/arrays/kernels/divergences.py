r"""Divergences of whole rows in one compiled loop (numba), with a logarithm that runs on vectors.

Kullback-Leibler and Itakura-Saito divergences are sums of :math:`g(r) = r - 1 - \ln r`. With
:math:`r = 2^e m`, where m is between :math:`\sqrt{1/2}` and :math:`\sqrt 2`, and
:math:`s = (m - 1) / (m + 1)`,

.. math:: \ln r = e \ln 2 + 2 s + 2 s^3 \left(\frac13 + \frac{s^2}5 + \frac{s^4}7 + \dots\right)

If e is zero, :math:`r - 1 - 2 s = (r - 1) s`, so that nothing cancels, and g is accurate if the
approximation nearly agrees with the data.
"""

from __future__ import annotations

import math

import numpy as np

from robustnmf.arrays.kernels.compiled import compiled
from robustnmf.arrays.namespace import Array

LN2 = math.log(2.0)
HALF_ROOT = 0x3FE6A09E667F3BCD  # bits of the square root of one half
MANTISSA = (1 << 52) - 1
LARGEST = 1e300


@compiled(inline="always")
def _excess(over: float, under: float) -> float:
    """Compute ``under (r - 1 - log r)`` for ``r = over / under``, both positive."""
    inverse = 1.0 / under
    above = np.float64(min(over * inverse, LARGEST)).view(np.int64) - HALF_ROOT
    exponent = np.float64(np.int32(above >> 52))
    m = np.int64((above & MANTISSA) + HALF_ROOT).view(np.float64)
    difference = over - under
    t = difference * inverse
    near = exponent == 0.0
    s = (t if near else m - 1.0) / ((2.0 + t) if near else (m + 1.0))
    q = s * s
    series = 1 / 21 + q * (1 / 23)
    series = 1 / 19 + q * series
    series = 1 / 17 + q * series
    series = 1 / 15 + q * series
    series = 1 / 13 + q * series
    series = 1 / 11 + q * series
    series = 1 / 9 + q * series
    series = 1 / 7 + q * series
    series = 1 / 5 + q * series
    tail = 2.0 * s * q * (1 / 3 + q * series)
    of_near = under * (t * s - tail)
    of_far = difference - under * (exponent * LN2 + 2.0 * s + tail)
    return of_near if near else of_far


@compiled(inline="always")
def _kullback_leibler(row: Array, unit: float, approximation: Array, least: float) -> float:
    """Sum ``x log(x / y) - x + y`` over a row, for x in units of ``1 / unit``, y at least least."""
    total = 0.0
    for j in range(len(row)):
        x, y = np.float64(row[j]) * unit, np.float64(approximation[j])
        positive = x > 0.0
        value = _excess(max(y, least), x if positive else 1.0)
        total += max(value, 0.0) if positive else y
    return total


@compiled()
def kullback_leibler_rows(
    rows: Array, unit: float, approximation: Array, least: float, out: Array
) -> None:
    """Compute the divergence (rows,) of an approximation (rows, features)."""
    for i in range(len(out)):
        out[i] = _kullback_leibler(rows[i], unit, approximation[i], least)


@compiled()
def kullback_leibler_stored(
    entries: Array, pointers: Array, unit: float, approximation: Array, least: float, out: Array
) -> None:
    """As ``kullback_leibler_rows``, for stored entries (stored,) of rows beginning at pointers."""
    for i in range(len(out)):
        begin, end = pointers[i], pointers[i + 1]
        out[i] = _kullback_leibler(entries[begin:end], unit, approximation[begin:end], least)


@compiled()
def itakura_saito_rows(
    rows: Array, unit: float, approximation: Array, least: float, out: Array
) -> None:
    """Sum ``x / y - log(x / y) - 1`` over each row; parameters as for Kullback-Leibler."""
    count, features = rows.shape
    for i in range(count):
        total = 0.0
        for j in range(features):
            x, y = np.float64(rows[i, j]) * unit, max(np.float64(approximation[i, j]), least)
            total += max(_excess(x, y) / y, 0.0)
        out[i] = total


@compiled()
def ratio_entries(rows: Array, unit: float, approximation: Array, least: float, out: Array) -> None:
    """Compute ``x / y`` of every entry (rows, features); parameters as for Kullback-Leibler."""
    count, features = rows.shape
    for i in range(count):
        for j in range(features):
            y = approximation[i, j]
            out[i, j] = rows[i, j] * unit / (y if y > least else least)
