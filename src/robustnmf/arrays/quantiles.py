"""Quantiles of weighted values on the host (NumPy)."""

from __future__ import annotations

from typing import Literal

import numpy as np

ROUNDING = 1e-12
"""Relative error of cumulative weights: a share that is met to this accuracy is met exactly."""


def weighted_quantile(
    values: np.ndarray,
    weight: np.ndarray,
    share: float,
    side: Literal["left", "right"] = "left",
) -> float:
    """Return the value (one of ``values``) at which the cumulative weight meets a share.

    Parameters
    ----------
    values, weight : arrays (n,)
    share : float in [0, 1]
        Share of the total weight.
    side : "left" or "right"
        "left" returns the smallest value up to which the cumulative weight is at least the share,
        "right" the smallest one up to which it exceeds the share.
    """
    order = np.argsort(values)
    cumulative = np.cumsum(weight[order])
    tolerance = 1 - ROUNDING if side == "left" else 1 + ROUNDING
    place = np.searchsorted(cumulative, share * cumulative[-1] * tolerance, side=side)
    return float(values[order[place]])


def weighted_quantiles(table: np.ndarray, weight: np.ndarray, share: float = 0.5) -> np.ndarray:
    """Compute a weighted quantile of every column (columns,) of a table, without NaN.

    The smallest entry up to which the cumulative weight is at least the share, so that a row of
    weight two counts as the same row twice; zero for a column of NaN.
    """
    if np.all(weight == weight[0]):  # the usual case, which takes a fourth of the time
        values = np.sort(table, axis=0)  # NaN last
        known = len(table) - np.isnan(values).sum(axis=0)
        place = np.maximum(np.ceil(share * known * (1 - ROUNDING)).astype(int) - 1, 0)
    else:
        order = np.argsort(table, axis=0)
        values = np.take_along_axis(table, order, axis=0)
        cumulative = np.cumsum(np.where(np.isnan(values), 0.0, weight[order]), axis=0)
        below = cumulative < share * cumulative[-1] * (1 - ROUNDING)
        place = np.minimum(below.sum(axis=0), len(table) - 1)
    quantiles = values[place, np.arange(table.shape[1])]
    return np.where(np.isnan(quantiles), 0.0, quantiles)
