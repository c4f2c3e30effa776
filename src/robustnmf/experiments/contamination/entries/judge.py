"""Scores of bases: errors on held-back clean samples, and rankings of bad entries and samples."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from robustnmf.experiments.contamination.entries.scenario import EntryData
from robustnmf.experiments.contamination.judge import Reference, Score
from robustnmf.metrics import residuals, squared_errors


class EntryJudge(Reference):
    """Scores bases on the data of a scenario; the reference is plain NMF of the clean table.

    Parameters
    ----------
    data : EntryData
    device : str, optional
        Device on which weights of entries are fitted.
    """

    def __init__(self, data: EntryData, device: str | None = None):
        super().__init__(data.clean, data.held_back, data.rank, data.parts)
        self.data = data
        self.device = device

    def basis(
        self,
        method: str,
        basis: np.ndarray,
        *,
        entry_weights: np.ndarray | None = None,
        sample_outlyingness: np.ndarray | None = None,
        **scores: float,
    ) -> Score:
        """Score a basis (rank, n_features).

        Entries are ranked by their weights (n_samples, n_features) if the method has any, else by
        their residuals; samples by their outlyingness (n_samples,), else by squared errors.
        """
        differences = residuals(self.data.dirty, basis)
        outlyingness = np.abs(differences)
        if entry_weights is not None:
            outlyingness = outlyingness_by_weights(entry_weights, differences)
        if sample_outlyingness is None:
            sample_outlyingness = np.nansum(differences**2, axis=1)
        errors = squared_errors(self.data.held_back, basis)
        known = ~np.isnan(self.data.dirty)
        return Score(
            method, self.relative_error(errors), self.geometric_error(errors),
            parts_distance=self.distance(basis), failure="",
            auroc=_area(self.data.bad_samples, sample_outlyingness),
            entry_auroc=_area(self.data.bad[known], outlyingness[known]), **scores,
        )  # fmt: skip

    def held_back_error(self, basis: np.ndarray) -> float:
        """Return the relative error of a basis (rank, n_features)."""
        return self.relative_error(squared_errors(self.data.held_back, basis))


def outlyingness_by_weights(weights: np.ndarray, differences: np.ndarray) -> np.ndarray:
    """Return ranks (n_samples, n_features) of entries by decreasing weight, larger for worse ones.

    Ties are broken by the absolute residual, relative to the median of its feature; NaN are last.
    """
    sizes = np.abs(differences)
    medians = np.nanmedian(sizes, axis=0)
    scaled = sizes / np.where(medians > 0, medians, 1.0)
    by_size = np.nan_to_num(rankdata(scaled, nan_policy="omit"), nan=0.0)
    by_weight = rankdata(-np.nan_to_num(weights, nan=1.0), method="dense")
    return by_weight.reshape(weights.shape) + by_size.reshape(weights.shape) / (sizes.size + 1)


def _area(bad: np.ndarray, outlyingness: np.ndarray) -> float:
    """Return the area under the ROC curve; NaN if nothing or everything is bad."""
    if not bad.any() or bad.all():
        return np.nan
    return float(roc_auc_score(bad, outlyingness))
