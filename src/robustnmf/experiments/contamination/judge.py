"""Scores of what methods have learned from the data of a scenario."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import average_precision_score, roc_auc_score

from robustnmf.estimators import RobustNMF
from robustnmf.experiments.contamination.detection import Detection
from robustnmf.experiments.contamination.scenario import Data
from robustnmf.experiments.residuals import squared_errors

NO_WEIGHT = 0.1
"""A sample has lost its weight where its importance is below this share of the average one."""

EXACT = 1e-6
"""Squared error, relative to the squared norm, below which samples count as described exactly."""


@dataclass(frozen=True)
class Score:
    """How one method did in one scenario; what does not apply is NaN.

    Attributes
    ----------
    relative_error : float
        Squared error of the held-back samples over that under the undisturbed basis.
    geometric_error : float
        Geometric mean over the held-back samples of the same ratio, sample by sample.
    lost : float
        Share of the good samples of the training table without weight, dropped or flagged.
    parts_distance : float
        Mean of one less the cosine between learned and true parts.
    auroc, precision : float
        Area under the ROC curve and average precision of the order of the samples.
    effective_share : float
        Effective sample size over the number of samples.
    value : float
        Hyperparameter that was best.
    seconds : float
        Time of the fit; of the detector too where there is one.
    failure : str
        Message of the error that ended the method, empty where there was none.
    """

    method: str
    relative_error: float = np.nan
    geometric_error: float = np.nan
    lost: float = np.nan
    parts_distance: float = np.nan
    auroc: float = np.nan
    precision: float = np.nan
    effective_share: float = np.nan
    value: float = np.nan
    seconds: float = np.nan
    failure: str = ""


class Judge:
    """Scores bases and detectors by the data of a scenario.

    Parameters
    ----------
    data : Data
    device : str, optional
        Where weights of entries are fitted.

    Attributes
    ----------
    undisturbed : ndarray (rank, n_features)
        Basis of plain NMF of the good samples, the reference of all errors.
    detections : dict
        Cache of what detectors return, so that several groups of methods can use them.
    """

    def __init__(self, data: Data, device: str | None = None):
        self.data = data
        self.device = device
        self.detections: dict[str, Detection] = {}
        self.undisturbed = plain_basis(data.clean, data.rank)
        self._reference = squared_errors(data.held_back, self.undisturbed)
        self._exact = np.maximum(EXACT * (data.held_back**2).sum(axis=1), 1e-300)

    def basis(self, method: str, basis: np.ndarray, **more: float) -> Score:
        """Score a basis; the order of the samples is that of their squared errors."""
        order = self.ranking(method, squared_errors(self.data.dirty, basis))
        errors = squared_errors(self.data.held_back, basis)
        return Score(
            method, self.relative_error(errors), self.geometric_error(errors),
            parts_distance=self.distance(basis), auroc=order.auroc, precision=order.precision,
            **more,
        )  # fmt: skip

    def relative_error(self, errors: np.ndarray) -> float:
        """Return the sum of the held-back samples' squared errors over that of the reference."""
        return float(errors.sum() / self._reference.sum())

    def geometric_error(self, errors: np.ndarray) -> float:
        """Return the geometric mean of the held-back samples' squared errors over the reference's.

        Samples that both describe exactly have the ratio one.
        """
        ratios = np.maximum(errors, self._exact) / np.maximum(self._reference, self._exact)
        return float(np.exp(np.log(ratios).mean()))

    def lost(self, dropped: np.ndarray) -> float:
        """Return the share of the good samples that a mask (n_samples,) drops; zero rows aside."""
        good = ~self.data.bad & self.data.dirty.any(axis=1)
        return float(dropped[good].mean())

    def without_weight(self, importances: np.ndarray) -> float:
        """Return the share of the good samples whose importance (n_samples,) is next to none."""
        return self.lost(importances * len(importances) < NO_WEIGHT)

    def ranking(self, method: str, outlyingness: np.ndarray, **more: float) -> Score:
        """Score an order of the samples, the most suspicious last."""
        bad = self.data.bad
        if not bad.any():
            return Score(method, **more)
        return Score(
            method, auroc=float(roc_auc_score(bad, outlyingness)),
            precision=float(average_precision_score(bad, outlyingness)), **more,
        )  # fmt: skip

    def distance(self, basis: np.ndarray) -> float:
        """Return the mean of one less the cosine between learned and true parts, best matched."""
        if self.data.parts is None:
            return np.nan
        units = [p / np.maximum(np.linalg.norm(p, axis=1, keepdims=True), 1e-300)
                 for p in (self.data.parts, basis)]  # fmt: skip
        cosines = units[0] @ units[1].T
        return float(1.0 - cosines[linear_sum_assignment(-cosines)].mean())


def plain_basis(X: np.ndarray, rank: int) -> np.ndarray:
    """Fit plain NMF and return its basis (rank, n_features).

    The start is "nndsvda"; random where X has too few rows for that.
    """
    init = "nndsvda" if rank <= min(X.shape) else "random"
    model = RobustNMF(rank, weighting="uniform", init=init, random_state=0)
    return model.fit(X).components_
