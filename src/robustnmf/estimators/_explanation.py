"""Which features make a sample an outlier."""

from __future__ import annotations

from typing import Any

import numpy as np

from robustnmf.arrays import eps, to_numpy
from robustnmf.encoding import encode
from robustnmf.losses import Loss
from robustnmf.sources import in_memory_engine
from robustnmf.weightings._base import LOST

MAX_HIDDEN = 3
"""Most features that are hidden from an outlier to find out what makes it one."""


def find_outliers(model: Any, energies: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Find the outliers among samples of these energies and sizes (n,), by the rule of the fit."""
    weighting = model.weighting_
    if weighting.uses_row_sizes:
        ones = np.ones_like(energies)
        return np.asarray(weighting.outliers(energies, ones, ones, sizes))
    fitted = to_numpy(model.energies_)
    if weighting.per_entry:  # energies of samples do not tell the weights of their entries
        inside = fitted[~to_numpy(model.outliers_)]
        return energies > (inside.max() if len(inside) else np.inf)
    # Weights are compared with those of the fit: new samples alone may all be outliers.
    weights = weighting.weights(np.concatenate([fitted, energies]))
    return weights[len(fitted) :] < LOST * weights[: len(fitted)].mean()


def explain_rows(model: Any, rows: np.ndarray) -> np.ndarray:
    """Split the energies of rows (n, m) among their features (n, m), signed; NaN where missing.

    A bad entry of a feature that dominates the components determines the codes, so that the
    residuals of all other features are large. Features of an outlier are therefore hidden, one
    after the other, until it is not an outlier any more, and the energy is split by the residuals
    under the codes from the other features. If `MAX_HIDDEN` features are not enough, the codes are
    those from all features.
    """
    loss, basis = model._problem.loss, to_numpy(model.components_) / model._scale
    known = ~np.isnan(rows)
    codes, energies, is_outlier = _encode(model, rows, basis)
    hidden = rows.copy()
    remaining = np.flatnonzero(is_outlier)
    trial = codes[remaining]
    explained = np.zeros(len(rows), dtype=bool)
    for _ in range(MAX_HIDDEN):
        # What is left must determine the codes, and more.
        has_spare = (~np.isnan(hidden[remaining])).sum(axis=1) > len(basis) + 1
        remaining, trial = remaining[has_spare], trial[has_spare]
        if not len(remaining):
            break
        for i, row_codes in zip(remaining, trial, strict=True):
            hidden[i, _most_influential(loss, hidden[i] / model._scale, row_codes, basis)] = np.nan
        trial, _, is_outlier = _encode(model, hidden[remaining], basis)
        codes[remaining[~is_outlier]] = trial[~is_outlier]
        explained[remaining[~is_outlier]] = True
        remaining, trial = remaining[is_outlier], trial[is_outlier]
    data = rows / model._scale
    approximation = codes.astype(data.dtype) @ basis
    entries = loss.entries(np.where(known, data, approximation), approximation).astype(np.float64)
    # What is known stands for what is not, as in energies.
    factors = model._unit * data.shape[1] / np.maximum(known.sum(axis=1), 1)
    totals = np.where(known, entries, 0.0).sum(axis=1)
    factors = np.where(
        explained & (totals > 0), energies / np.where(totals > 0, totals, 1), factors
    )
    signed = np.sign(data - approximation) * entries * factors[:, None]
    return np.where(known, signed, np.nan)


def _encode(
    model: Any, rows: np.ndarray, basis: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return codes (n, k), energies (n,) in the user's units, and whether rows are outliers."""
    engine = in_memory_engine(
        rows, model._problem, model.weighting_, len(basis), scale=model._scale
    )
    codes, energies = encode(engine, model._problem, model._scaled_weighting, basis)
    energies = to_numpy(energies) * model._unit
    if not (model.weighting_.uses_row_sizes or hasattr(model, "energies_")):
        return codes, energies, np.zeros(len(rows), dtype=bool)  # fitted by minibatches
    sizes = to_numpy(engine.row_sizes(model._problem.loss.degree)) * model._unit
    return codes, energies, find_outliers(model, energies, sizes)


def _most_influential(loss: Loss, row: np.ndarray, codes: np.ndarray, basis: np.ndarray) -> int:
    """Return the feature without which the energy of a row (m,) would be least.

    Without a feature of leverage h, the energy is lower by its loss over 1 - h: exactly so for the
    squared error, if the same codes stay positive.
    """
    approximation = codes @ basis
    known = ~np.isnan(row)
    row = np.where(known, row, approximation)
    active = basis[codes > 0].astype(np.float64)
    curvatures = np.where(known, loss.curvature(row, approximation), 0.0)
    gram = (active * curvatures) @ active.T
    leverages = curvatures * (active * (np.linalg.pinv(gram, hermitian=True) @ active)).sum(axis=0)
    rest = np.maximum(1.0 - leverages, eps(row) ** 0.5)
    return int(np.where(known, loss.entries(row, approximation) / rest, -1.0).argmax())
