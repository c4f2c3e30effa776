"""First steps before plain NMF: detectors of bad samples, and Tukey's fences for bad entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.covariance import EllipticEnvelope
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from robustnmf.estimators import RobustNMFDetector
from robustnmf.experiments.contamination.judge import Detection, Judge, plain_basis, timed

MANY_FEATURES = 20
"""With more features, a robust covariance takes seconds or is singular."""

FENCE, INNER_FENCE = 3.0, 1.5
"""Distance of Tukey's outer and inner fences from the quartiles, in interquartile ranges."""


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


def pca_error(X: np.ndarray, rank: int) -> Detection:
    """Return the squared errors of PCA."""
    model = PCA(rank, random_state=0).fit(X)
    return Detection(((X - model.inverse_transform(model.transform(X))) ** 2).sum(axis=1))


def _detect(detector: Any, X: np.ndarray) -> Detection:
    """Fit a detector; return its scores and the samples below its offset."""
    scores = detector.fit(X).score_samples(X)
    return Detection(-scores, scores < detector.offset_)


FOREST, FACTOR, ELLIPTIC = "IsolationForest", "LocalOutlierFactor", "EllipticEnvelope"
OUR_DETECTOR = "RobustNMFDetector"
DETECTORS: dict[str, Callable[[np.ndarray, int], Detection]] = {
    OUR_DETECTOR: lambda X, rank: _detect(RobustNMFDetector(rank, random_state=0), X),
    FOREST: lambda X, rank: _detect(IsolationForest(random_state=0), X),
    FACTOR: local_outlier_factor,
    ELLIPTIC: elliptic_envelope,
    "PCA error": pca_error,
}
FLAGGING = (OUR_DETECTOR, FOREST, FACTOR)
"""Detectors that choose the number of outliers themselves."""


def detect(judge: Judge, name: str) -> Detection:
    """Run a detector on the training table once; later calls return the cached detection."""
    if name not in judge.detections:
        detection, seconds = timed(DETECTORS[name], judge.data.dirty, judge.data.rank)
        judge.detections[name] = detection._replace(seconds=seconds)
    return judge.detections[name]


def most_outlying(judge: Judge, name: str) -> np.ndarray:
    """Return the mask (n_samples,) of the most outlying samples, as many as are bad."""
    dropped = np.zeros_like(judge.data.bad)
    order = np.argsort(-detect(judge, name).outlyingness, kind="stable")
    dropped[order[: judge.data.bad.sum()]] = True
    return dropped


def flagged(judge: Judge, name: str) -> np.ndarray:
    """Return the mask (n_samples,) of the samples that a detector flags."""
    mask = detect(judge, name).flagged
    assert mask is not None
    return mask


def fences(X: np.ndarray, ranges: float = FENCE) -> tuple[np.ndarray, np.ndarray]:
    """Return Tukey's lower and upper fence (n_features,) of every feature, without NaN."""
    lower, upper = np.nanquantile(X, [0.25, 0.75], axis=0)
    width = ranges * (upper - lower)
    return lower - width, upper + width


def outside_fences(X: np.ndarray, ranges: float = FENCE) -> np.ndarray:
    """Return the mask (n_samples, n_features) of entries outside Tukey's fences."""
    lower, upper = fences(X, ranges)
    return (lower > X) | (upper < X)


def basis_without(X: np.ndarray, bad: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Fit plain NMF without samples (n_samples,) or entries (n_samples, n_features) of a mask.

    Returns the basis (rank, n_features) and the mask (n_samples,) of samples without any entry.
    """
    X = np.where(bad if bad.ndim == 2 else bad[:, None], np.nan, X)
    dropped = np.isnan(X).all(axis=1)
    if dropped.all():
        raise ValueError(f"all {len(dropped)} samples are dropped.")
    return plain_basis(X[~dropped], rank), dropped
