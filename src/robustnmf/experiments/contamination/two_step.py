"""Baselines in two steps, without robust NMF: remove outliers, then fit plain NMF."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from robustnmf.experiments.contamination.detection import (
    DETECTORS,
    ELLIPTIC,
    FACTOR,
    FOREST,
    Detection,
)
from robustnmf.experiments.contamination.judge import Judge, Score, plain_basis

FOREST_FIRST = f"{FOREST}, plain NMF"
FACTOR_FIRST = f"{FACTOR}, plain NMF"
FENCES_FIRST = "entries outside Tukey's fences missing, plain NMF"
ORACLE_FIRST = "best detector by oracle, plain NMF"
"""The best of all detectors by held-back error, each with the true share of bad samples."""

TWO_STEP = (FOREST_FIRST, FACTOR_FIRST, FENCES_FIRST)
"""Baselines without knowledge of the bad samples."""

FENCE, INNER_FENCE = 3.0, 1.5
"""Distance of Tukey's outer and inner fences from the quartiles, in interquartile ranges."""


def two_step(judge: Judge) -> Iterator[Score]:
    """Score every two-step baseline."""
    yield attempt(FOREST_FIRST, lambda: _without_flagged(judge, FOREST_FIRST, FOREST))
    yield attempt(FACTOR_FIRST, lambda: _without_flagged(judge, FACTOR_FIRST, FACTOR))
    yield attempt(FENCES_FIRST, lambda: _with_missing_entries(judge))
    yield attempt(ORACLE_FIRST, lambda: _best_by_oracle(judge))


def attempt(name: str, score: Callable[[], Score], errors: type[Exception] = ValueError) -> Score:
    """Score a method; if it raises an error, store it as the failure of the score."""
    try:
        return score()
    except errors as error:  # LinAlgError is a ValueError
        reason = next(iter(str(error).splitlines()), "")
        return Score(name, failure=f"{type(error).__name__}: {reason}")


def detect(judge: Judge, name: str) -> Detection:
    """Run a detector on the training table once; later calls return the cached detection."""
    if name not in judge.detections:
        begin = time.perf_counter()
        detection = DETECTORS[name](judge.data.dirty, judge.data.rank)
        seconds = time.perf_counter() - begin
        judge.detections[name] = detection._replace(seconds=seconds)
    return judge.detections[name]


def fences(X: np.ndarray, ranges: float = FENCE) -> tuple[np.ndarray, np.ndarray]:
    """Return Tukey's lower and upper fence (n_features,) of every feature, without NaN."""
    lower, upper = np.nanquantile(X, [0.25, 0.75], axis=0)
    width = ranges * (upper - lower)
    return lower - width, upper + width


def outside_fences(X: np.ndarray, ranges: float = FENCE) -> np.ndarray:
    """Return the mask (n_samples, n_features) of entries outside Tukey's fences."""
    lower, upper = fences(X, ranges)
    return (lower > X) | (upper < X)


def _without_flagged(judge: Judge, name: str, detector: str) -> Score:
    detection = detect(judge, detector)
    assert detection.flagged is not None
    score = _score_without(judge, name, detection.flagged)
    return replace(score, seconds=score.seconds + detection.seconds)


def _with_missing_entries(judge: Judge) -> Score:
    X = judge.data.dirty
    outside = outside_fences(X)
    dropped = np.asarray(outside.all(axis=1))
    return _score_without(judge, FENCES_FIRST, dropped, np.where(outside, np.nan, X))


def _best_by_oracle(judge: Judge) -> Score:
    """Drop as many samples as are bad, ranked by each detector; return the best score."""
    bad = judge.data.bad
    if not bad.any():
        return _score_without(judge, ORACLE_FIRST, bad)
    scores = [
        attempt(ORACLE_FIRST, partial(_without_most_suspicious, judge, detector))
        for detector in (FOREST, FACTOR, ELLIPTIC)
    ]
    successes = [score for score in scores if not score.failure]
    if not successes:
        return scores[0]
    return min(successes, key=lambda score: score.relative_error)


def _without_most_suspicious(judge: Judge, detector: str) -> Score:
    detection = detect(judge, detector)
    order = np.argsort(-detection.outlyingness, kind="stable")
    dropped = np.zeros(len(order), dtype=bool)
    dropped[order[: judge.data.bad.sum()]] = True
    score = _score_without(judge, ORACLE_FIRST, dropped)
    return replace(score, seconds=score.seconds + detection.seconds)


def _score_without(
    judge: Judge, name: str, dropped: np.ndarray, X: np.ndarray | None = None
) -> Score:
    """Score plain NMF of the samples (of the training table, or of X) that are not dropped."""
    X = judge.data.dirty if X is None else X
    if dropped.all():
        raise ValueError(f"all {len(dropped)} samples are dropped.")
    begin = time.perf_counter()
    basis = plain_basis(X[~dropped], judge.data.rank)
    seconds = time.perf_counter() - begin
    return judge.basis(
        name, basis, lost=judge.lost(dropped), seconds=seconds,
        effective_share=float(1.0 - dropped.mean()),
    )  # fmt: skip
