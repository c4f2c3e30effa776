"""Groups of methods for bad entries: ours, two-step baselines, published methods, grids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.decomposition import NMF
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from robustnmf.estimators import RobustNMF, fit_path
from robustnmf.experiments.contamination.first_steps import (
    INNER_FENCE,
    basis_without,
    fences,
    outside_fences,
)
from robustnmf.experiments.contamination.judge import (
    Groups,
    Judge,
    Score,
    attempt,
    plain_basis,
    timed,
)
from robustnmf.experiments.contamination.peers import (
    penalty_of_noise,
    sparse_outlier_nmf,
    truncated_cauchy_nmf,
)
from robustnmf.experiments.contamination.sample_methods import BEST, SCIKIT, SETTINGS
from robustnmf.experiments.contamination.scenario import Data
from robustnmf.experiments.protocol import METHODS
from robustnmf.metrics import residuals
from robustnmf.weightings import Huber

PLAIN, HUBER = "plain NMF", "HuberRNMF"
DEFAULT, OURS = "RobustNMF", "RobustNMF truncated"
"""With the default loss, and the method with goals."""

ENTRY_METHODS: dict[str, Callable[[int], Any]] = {
    PLAIN: lambda rank: RobustNMF(rank, weighting="uniform", init="nndsvda", random_state=0),
    DEFAULT: lambda rank: RobustNMF(rank, random_state=0),
    "RobustNMF huber": lambda rank: RobustNMF(rank, loss="huber", random_state=0),
    OURS: lambda rank: RobustNMF(rank, loss="truncated", random_state=0),
    f"{HUBER} auto": lambda rank: RobustNMF(rank, weighting=Huber("auto"), **SETTINGS),
    SCIKIT: lambda rank: NMF(rank, init="nndsvda", random_state=0),
}
"""Estimators for a rank, by name; a new one is a line here.

Entries are ranked by ``entry_weights(X)`` if they have it, and samples by ``score_samples(X)``.
"""

CEILING = "plain NMF, told the bad entries"
INNER_FIRST = "Tukey's inner fences as NaN, plain NMF"
FENCES_FIRST = "Tukey's fences as NaN, plain NMF"
CLIPPED_FIRST = "winsorised, plain NMF"
FOREST_FIRST = "isolation forest, plain NMF"
TWO_STEP = (FENCES_FIRST, CLIPPED_FIRST, FOREST_FIRST)
"""Two-step baselines: find bad entries or samples, then fit plain NMF."""

SPARSE, CAUCHY = "rNMF", "truncated Cauchy NMF"

BEST_START = "best of starts"
"""Suffix of a method with the better of a random start and a start from plain NMF."""

PENALTIES = (0.1, 0.3, 1.0, 3.0)
"""Penalties of rNMF's grid, relative to the penalty of its rule."""


def methods(judge: Judge, names: Iterable[str] = tuple(ENTRY_METHODS)) -> Iterator[Score]:
    """Score estimators with their defaults."""
    for name in names:
        if name != SCIKIT or not judge.data.has_missing:  # it does not support missing values
            yield _score_of_model(judge, name, ENTRY_METHODS[name](judge.data.rank))


def two_step(judge: Judge, names: Iterable[str] = (CEILING, *TWO_STEP)) -> Iterator[Score]:
    """Score plain NMF after a first step, and with the bad entries as NaN: the ceiling."""
    for name in names:
        yield attempt(_score_of_two_steps, judge, name)


def peers(judge: Judge) -> Iterator[Score]:
    """Score other published methods for bad entries."""
    X, rank = judge.data.dirty, judge.data.rank
    fits = {
        SPARSE: lambda: sparse_outlier_nmf(X, rank, _penalty(judge))[0],
        CAUCHY: lambda: truncated_cauchy_nmf(X, rank),
    }
    for name, fit in fits.items():
        basis, seconds = timed(fit)
        yield score_basis(judge, name, basis, seconds=seconds)


def best_of_grid(judge: Judge) -> Iterator[Score]:
    """Score grids of hyperparameters and starts, each with the best value on held-back samples.

    Times are for the whole grid.
    """
    X, rank = judge.data.dirty, judge.data.rank

    def huber() -> dict[float, np.ndarray]:
        grid = METHODS[HUBER].grid
        weightings = [METHODS[HUBER].make(value) for value in grid]
        members = fit_path(X, rank, weightings=weightings, device=judge.device, **SETTINGS)
        return {value: m.components for value, m in zip(grid, members, strict=True)}

    def sparse() -> dict[float, np.ndarray]:
        penalties = [factor * _penalty(judge) for factor in PENALTIES]
        return {penalty: sparse_outlier_nmf(X, rank, penalty)[0] for penalty in penalties}

    def cauchy() -> dict[float, np.ndarray]:
        starts = {0.0: None, 1.0: plain_basis(X, rank)}
        return {v: truncated_cauchy_nmf(X, rank, start) for v, start in starts.items()}

    grids = {f"{HUBER} {BEST}": huber, f"{SPARSE} {BEST}": sparse, f"{CAUCHY} {BEST_START}": cauchy}
    for name, fit in grids.items():
        bases, seconds = timed(fit)
        value = list(bases)[judge.best_of(list(bases.values()))]
        yield score_basis(judge, name, bases[value], value=value, seconds=seconds)


GROUPS: Groups = {"methods": methods, "two_step": two_step, "peers": peers, "grids": best_of_grid}

REAL_FIRST = (INNER_FIRST, FENCES_FIRST, CLIPPED_FIRST)
REAL_RIVALS = (*REAL_FIRST, SPARSE, CAUCHY)
REAL_METHODS = (OURS, PLAIN, DEFAULT, *REAL_RIVALS, CEILING)
"""Methods of the study of bad entries of real tables."""


def real_methods(judge: Judge) -> Iterator[Score]:
    """Score the methods of the study of real tables."""
    yield from methods(judge, (OURS, PLAIN, DEFAULT))
    yield from two_step(judge, (*REAL_FIRST, CEILING))
    yield from peers(judge)


def _penalty(judge: Judge) -> float:
    """Return the penalty of rNMF by its rule, from residuals of plain NMF."""
    X = judge.data.dirty
    return penalty_of_noise(residuals(X, plain_basis(X, judge.data.rank)))


def _score_of_model(judge: Judge, name: str, model: Any) -> Score:
    """Score an estimator, with its weights of entries and scores of samples if it has any."""
    X = judge.data.dirty
    _, seconds = timed(model.fit, X)
    return score_basis(
        judge, name, model.components_, seconds=seconds,
        entry_weights=model.entry_weights(X) if hasattr(model, "entry_weights") else None,
        sample_outlyingness=-model.score_samples(X) if hasattr(model, "score_samples") else None,
    )  # fmt: skip


def _score_of_two_steps(judge: Judge, name: str) -> Score:
    """Score plain NMF of the table that the first step returns."""
    basis, seconds = timed(FIRST_STEPS[name], judge.data)
    return score_basis(judge, name, basis, seconds=seconds)


def _without_flagged(data: Data) -> np.ndarray:
    """Fit the samples that the isolation forest keeps; medians replace missing values for it."""
    X = data.dirty
    complete = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    flagged = IsolationForest(random_state=0).fit_predict(complete) == -1
    return basis_without(X, flagged, data.rank)[0]


def _without_entries(find: Callable[[Data], np.ndarray]) -> Callable[[Data], np.ndarray]:
    """Return a function that fits plain NMF without the entries of a mask."""
    return lambda data: basis_without(data.dirty, find(data), data.rank)[0]


FIRST_STEPS: dict[str, Callable[[Data], np.ndarray]] = {
    CEILING: _without_entries(lambda data: data.bad_entries),
    INNER_FIRST: _without_entries(lambda data: outside_fences(data.dirty, INNER_FENCE)),
    FENCES_FIRST: _without_entries(lambda data: outside_fences(data.dirty)),
    CLIPPED_FIRST: lambda data: plain_basis(np.clip(data.dirty, *fences(data.dirty)), data.rank),
    FOREST_FIRST: _without_flagged,
}
"""Bases (rank, n_features) of plain NMF after a first step, by name."""


def score_basis(
    judge: Judge,
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
    data = judge.data
    differences = residuals(data.dirty, basis)
    outlyingness = np.abs(differences)
    if entry_weights is not None:
        outlyingness = outlyingness_by_weights(entry_weights, differences)
    if sample_outlyingness is None:
        sample_outlyingness = np.nansum(differences**2, axis=1)
    known = ~np.isnan(data.dirty)
    return judge.basis(
        method, basis, auroc=float(roc_auc_score(data.bad, sample_outlyingness)),
        entry_auroc=float(roc_auc_score(data.bad_entries[known], outlyingness[known])), **scores,
    )  # fmt: skip


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
