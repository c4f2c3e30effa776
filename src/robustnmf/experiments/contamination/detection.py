"""Outlier detectors of scikit-learn and of this library, and errors of plain PCA."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.covariance import EllipticEnvelope
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from robustnmf.estimators import RobustNMFDetector


class Detection(NamedTuple):
    """Outlyingness and mask of flagged samples (n_samples,), and the time in seconds."""

    outlyingness: np.ndarray
    flagged: np.ndarray | None = None
    seconds: float = np.nan


def isolation_forest(X: np.ndarray, rank: int) -> Detection:
    """Run IsolationForest with its defaults."""
    return _detect(IsolationForest(random_state=0), X)


MANY_FEATURES = 20
"""With more features, a robust covariance takes seconds or is singular."""


def local_outlier_factor(X: np.ndarray, rank: int) -> Detection:
    """Run LocalOutlierFactor with its defaults."""
    model = LocalOutlierFactor().fit(X)
    factors = model.negative_outlier_factor_
    return Detection(-factors, factors < model.offset_)


def elliptic_envelope(X: np.ndarray, rank: int) -> Detection:
    """Run EllipticEnvelope, on principal components if there are too many features.

    It always flags a tenth of the samples, so its flags are not used.
    """
    if X.shape[1] > MANY_FEATURES:
        X = PCA(min(rank, MANY_FEATURES), random_state=0).fit_transform(X)
    return Detection(_detect(EllipticEnvelope(random_state=0), X).outlyingness)


def robust_nmf(X: np.ndarray, rank: int) -> Detection:
    """Run RobustNMFDetector."""
    model = RobustNMFDetector(rank, random_state=0).fit(X)
    return Detection(-model.score_samples(X), model.predict(X) == -1)


def pca_error(X: np.ndarray, rank: int) -> Detection:
    """Return the squared errors of PCA."""
    model = PCA(rank, random_state=0).fit(X)
    return Detection(((X - model.inverse_transform(model.transform(X))) ** 2).sum(axis=1))


def _detect(detector: IsolationForest | EllipticEnvelope, X: np.ndarray) -> Detection:
    """Fit a detector; return its scores and the samples below its offset."""
    scores = detector.fit(X).score_samples(X)
    return Detection(-scores, scores < detector.offset_)


FOREST, FACTOR, ELLIPTIC = "IsolationForest", "LocalOutlierFactor", "EllipticEnvelope"
OUR_DETECTOR = "RobustNMFDetector"
DETECTORS: dict[str, Callable[[np.ndarray, int], Detection]] = {
    OUR_DETECTOR: robust_nmf,
    FOREST: isolation_forest,
    FACTOR: local_outlier_factor,
    ELLIPTIC: elliptic_envelope,
    "PCA error": pca_error,
}
FLAGGING = (OUR_DETECTOR, FOREST, FACTOR)
"""Detectors that choose the number of outliers themselves."""
