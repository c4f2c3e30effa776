"""Scores of the user's estimators in the benchmark."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from robustnmf.arrays import is_foreign, to_numpy
from robustnmf.experiments.contamination.judge import Judge, Score
from robustnmf.experiments.contamination.methods import GROUPS
from robustnmf.experiments.contamination.scenario import Data
from robustnmf.experiments.contamination.two_step import attempt

GROUP = "estimators"
"""Name of the group of the user's estimators."""


def score_estimators(
    data: Data,
    groups: tuple[str, ...],
    device: str | None = None,
    *,
    estimators: Mapping[str, Any],
    match_rank: bool = True,
) -> dict[str, list[Score]]:
    """Score groups of methods, ``GROUP`` among them, on the data of a scenario.

    If an estimator raises an error, it is stored as the failure of its score.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # failures and errors show in the tables
        judge = Judge(data, device)
        scores = {group: list(GROUPS[group](judge)) for group in groups if group != GROUP}
        if GROUP in groups:
            scores[GROUP] = [
                attempt(name, partial(_score, judge, name, estimator, match_rank), Exception)
                for name, estimator in estimators.items()
            ]
        return scores


def _score(judge: Judge, name: str, estimator: Any, match_rank: bool) -> Score:
    """Fit a copy of an estimator to the training table, and score its basis."""
    model = clone(estimator)
    if match_rank and "n_components" in model.get_params(deep=False):
        model.set_params(n_components=judge.data.rank)
    X = judge.data.dirty
    begin = time.perf_counter()
    model.fit(X)
    scores = {"seconds": time.perf_counter() - begin}
    basis = _floats(model.components_)
    if basis.ndim != 2 or basis.shape[1] != X.shape[1]:
        raise ValueError(
            f"components_ has shape {basis.shape}, but (n_components, {X.shape[1]}) is needed."
        )
    if not np.isfinite(basis).all() or basis.min(initial=0.0) < 0:
        raise ValueError("components_ holds negative values, NaN or infinity.")
    importances = getattr(model, "sample_importances_", None)
    if importances is not None:
        importances = _floats(importances)
        if importances.shape != X.shape[:1]:
            raise ValueError(
                f"sample_importances_ of {name!r} has shape {importances.shape}, but (n_samples,), "
                f"here ({X.shape[0]},), is needed."
            )
        scores["lost"] = judge.without_weight(importances)
    return judge.basis(name, basis, **scores)


def _floats(array: Any) -> np.ndarray:
    """Return an array of any library as a NumPy array of floats."""
    return np.asarray(to_numpy(array) if is_foreign(array) else array, dtype=np.float64)
