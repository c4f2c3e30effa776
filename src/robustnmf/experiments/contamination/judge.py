"""Scores of bases and detectors on the data of a scenario."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from robustnmf.estimators import RobustNMF
from robustnmf.experiments.contamination.detection import Detection
from robustnmf.experiments.contamination.scenario import Data
from robustnmf.metrics import match_components, squared_errors

NO_WEIGHT = 0.1
"""A sample has lost its weight if its importance is below this share of the mean importance."""

EXACT = 1e-6
"""Samples are described exactly if their squared error over their squared norm is smaller."""


@dataclass(frozen=True)
class Score:
    """Scores of one method in one scenario; NaN if a score does not apply.

    Attributes
    ----------
    relative_error : float
        Squared error of the held-back samples, divided by the error of the reference basis.
    geometric_error : float
        Geometric mean over the held-back samples of the same ratio, sample by sample.
    lost : float
        Share of the good samples of the training table without weight, dropped or flagged.
    parts_distance : float
        Mean of one minus the cosine between learned and true components.
    auroc, precision : float
        Area under the ROC curve and average precision of the order of the samples.
    entry_auroc : float
        Area under the ROC curve of the order of the entries.
    found : float
        Share of the bad samples of the training table that are left out.
    best_described_error : float
        As ``relative_error``, on the 90% of the held-back samples that each basis describes best.
    effective_share : float
        Effective sample size over the number of samples.
    value : float
        Value of the hyperparameter with the smallest error.
    seconds : float
        Time of the fit, and of the detector if there is one.
    failure : str
        Message of the error that the method raised; empty if there was none.
    """

    method: str
    relative_error: float = np.nan
    geometric_error: float = np.nan
    lost: float = np.nan
    parts_distance: float = np.nan
    auroc: float = np.nan
    precision: float = np.nan
    entry_auroc: float = np.nan
    found: float = np.nan
    best_described_error: float = np.nan
    effective_share: float = np.nan
    value: float = np.nan
    seconds: float = np.nan
    failure: str = ""


class Reference:
    """Errors of held-back samples with a basis, relative to plain NMF of the clean data.

    Parameters
    ----------
    clean : ndarray (n_samples, n_features)
    held_back : ndarray (n_held_back, n_features)
    rank : int
    parts : ndarray (n_parts, n_features), optional
        True components, if they are known.

    Attributes
    ----------
    reference_basis : ndarray (rank, n_features)
        Basis of plain NMF of the clean samples, the reference of all errors.
    """

    floor_share = 0.0
    """Share of the mean squared norm of held-back samples that is added to all errors."""

    def __init__(
        self, clean: np.ndarray, held_back: np.ndarray, rank: int, parts: np.ndarray | None
    ):
        self.reference_basis = plain_basis(clean, rank)
        self._parts = parts
        self._reference_errors = squared_errors(held_back, self.reference_basis)
        self._floor = self.floor_share * float((held_back**2).sum(axis=1).mean())
        self._exact = np.maximum(EXACT * (held_back**2).sum(axis=1), 1e-300)

    def relative_error(self, errors: np.ndarray) -> float:
        """Return the mean squared error of held-back samples relative to the reference."""
        return float((errors.mean() + self._floor) / (self._reference_errors.mean() + self._floor))

    def geometric_error(self, errors: np.ndarray) -> float:
        """Return the geometric mean of squared errors of held-back samples over the reference's.

        Samples that both describe exactly have the ratio one.
        """
        ratios = np.maximum(errors, self._exact) / np.maximum(self._reference_errors, self._exact)
        return float(np.exp(np.log(ratios).mean()))

    def distance(self, basis: np.ndarray) -> float:
        """Return one minus the mean cosine between true components and their matches in a basis."""
        if self._parts is None:
            return np.nan
        _, _, cosines = match_components(self._parts, basis)
        return float(1.0 - cosines.mean())


class Judge(Reference):
    """Scores bases and detectors on the data of a scenario.

    Parameters
    ----------
    data : Data
    device : str, optional
        Device on which weights of entries are fitted.

    Attributes
    ----------
    detections : dict
        Cache of the detections by name, shared by the groups of methods.
    """

    def __init__(self, data: Data, device: str | None = None):
        super().__init__(data.clean, data.held_back, data.rank, data.parts)
        self.data = data
        self.device = device
        self.detections: dict[str, Detection] = {}

    def basis(self, method: str, basis: np.ndarray, **scores: float) -> Score:
        """Score a basis; training samples are ranked by their squared errors."""
        ranking = self.ranking(method, squared_errors(self.data.dirty, basis))
        errors = squared_errors(self.data.held_back, basis)
        return Score(
            method, self.relative_error(errors), self.geometric_error(errors),
            parts_distance=self.distance(basis), auroc=ranking.auroc, precision=ranking.precision,
            failure="", **scores,
        )  # fmt: skip

    def lost(self, dropped: np.ndarray) -> float:
        """Return the share of good samples, without zero rows, that a mask (n_samples,) drops."""
        good = ~self.data.bad & self.data.dirty.any(axis=1)
        return float(dropped[good].mean())

    def without_weight(self, importances: np.ndarray) -> float:
        """Return the share of the good samples whose importance (n_samples,) is near zero."""
        return self.lost(importances * len(importances) < NO_WEIGHT)

    def ranking(self, method: str, outlyingness: np.ndarray, **scores: float) -> Score:
        """Score the ranking of the training samples by their outlyingness (n_samples,)."""
        bad = self.data.bad
        if not bad.any():
            return Score(method, failure="", **scores)
        return Score(
            method, auroc=float(roc_auc_score(bad, outlyingness)),
            precision=float(average_precision_score(bad, outlyingness)), failure="",
            **scores,
        )  # fmt: skip


def plain_basis(X: np.ndarray, rank: int) -> np.ndarray:
    """Fit plain NMF and return its basis (rank, n_features).

    The start is "nndsvda", or random if X has too few rows.
    """
    init = "nndsvda" if rank <= min(X.shape) else "random"
    model = RobustNMF(rank, weighting="uniform", init=init, random_state=0)
    return model.fit(X).components_
