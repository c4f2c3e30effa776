"""Methods in the benchmark of entries: ours, two-step baselines, published methods, grids."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.decomposition import NMF

from robustnmf.estimators import RobustNMF, fit_path
from robustnmf.experiments.contamination.detection import isolation_forest
from robustnmf.experiments.contamination.entries.judge import EntryJudge
from robustnmf.experiments.contamination.entries.peers import (
    penalty_of_noise,
    sparse_outlier_nmf,
    truncated_cauchy_nmf,
)
from robustnmf.experiments.contamination.entries.scenario import EntryData
from robustnmf.experiments.contamination.judge import Score, plain_basis
from robustnmf.experiments.contamination.methods import BEST, SETTINGS
from robustnmf.experiments.contamination.two_step import (
    INNER_FENCE,
    attempt,
    fences,
    outside_fences,
)
from robustnmf.experiments.protocol import METHODS
from robustnmf.metrics import residuals
from robustnmf.weightings import Huber

PLAIN, HUBER, SCIKIT = "plain NMF", "HuberRNMF", "scikit-learn NMF"
OURS = "RobustNMF truncated"
"""The method with goals."""

ENTRY_METHODS: dict[str, Callable[[int], Any]] = {
    PLAIN: lambda rank: RobustNMF(rank, weighting="uniform", init="nndsvda", random_state=0),
    "RobustNMF": lambda rank: RobustNMF(rank, random_state=0),
    "RobustNMF huber": lambda rank: RobustNMF(rank, loss="huber", random_state=0),
    OURS: lambda rank: RobustNMF(rank, loss="truncated", random_state=0),
    f"{HUBER} auto": lambda rank: RobustNMF(rank, weighting=Huber("auto"), **SETTINGS),
    SCIKIT: lambda rank: NMF(rank, init="nndsvda", random_state=0),
}
"""Estimators for a rank, by name; a new one is a line here.

Entries are ranked by ``entry_weights(X)`` if they have it, and samples by ``score_samples(X)``.
"""

NEED_COMPLETE = (SCIKIT,)
"""Methods that do not support missing values."""

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


def methods(judge: EntryJudge) -> Iterator[Score]:
    """Score all estimators with their defaults."""
    for name, make in ENTRY_METHODS.items():
        if not (judge.data.has_missing and name in NEED_COMPLETE):
            yield score_of_model(judge, name, make(judge.data.rank))


def two_step(judge: EntryJudge) -> Iterator[Score]:
    """Score plain NMF after a first step, and with the bad entries as NaN: the ceiling."""
    for name in (CEILING, *TWO_STEP):
        yield score_of_two_steps(judge, name)


def peers(judge: EntryJudge) -> Iterator[Score]:
    """Score other published methods for bad entries."""
    X, rank = judge.data.dirty, judge.data.rank
    begin = time.perf_counter()
    basis = sparse_outlier_nmf(X, rank, _penalty(judge)).basis
    yield judge.basis(SPARSE, basis, seconds=time.perf_counter() - begin)
    begin = time.perf_counter()
    basis = truncated_cauchy_nmf(X, rank).basis
    yield judge.basis(CAUCHY, basis, seconds=time.perf_counter() - begin)


def best_of_grid(judge: EntryJudge) -> Iterator[Score]:
    """Score grids of hyperparameters and starts, each with the best value on held-back samples.

    Times are for the whole grid.
    """
    X, rank = judge.data.dirty, judge.data.rank
    method = METHODS[HUBER]
    begin = time.perf_counter()
    weightings = [method.make(value) for value in method.grid]
    members = fit_path(X, rank, weightings=weightings, device=judge.device, **SETTINGS)
    bases = [member.components for member in members]
    seconds = time.perf_counter() - begin
    yield _best(judge, f"{HUBER} {BEST}", method.grid, bases, seconds)
    begin = time.perf_counter()
    penalties = tuple(factor * _penalty(judge) for factor in PENALTIES)
    bases = [sparse_outlier_nmf(X, rank, penalty).basis for penalty in penalties]
    seconds = time.perf_counter() - begin
    yield _best(judge, f"{SPARSE} {BEST}", penalties, bases, seconds)
    begin = time.perf_counter()
    starts = (None, plain_basis(X, rank))
    bases = [truncated_cauchy_nmf(X, rank, start).basis for start in starts]
    seconds = time.perf_counter() - begin
    yield _best(judge, f"{CAUCHY} {BEST_START}", (0.0, 1.0), bases, seconds)


def _best(
    judge: EntryJudge,
    name: str,
    values: tuple[float, ...],
    bases: list[np.ndarray],
    seconds: float,
) -> Score:
    """Return the score of the basis with the smallest error."""
    errors = [judge.held_back_error(basis) for basis in bases]
    best = int(np.argmin(errors))
    return judge.basis(name, bases[best], value=values[best], seconds=seconds)


def _penalty(judge: EntryJudge) -> float:
    """Return the penalty of rNMF by its rule, from residuals of plain NMF."""
    X = judge.data.dirty
    return penalty_of_noise(residuals(X, plain_basis(X, judge.data.rank)))


def score_of_model(judge: EntryJudge, name: str, model: Any) -> Score:
    """Score an estimator, with its weights of entries and scores of samples if it has any."""
    X = judge.data.dirty
    begin = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - begin
    return judge.basis(
        name, model.components_, seconds=seconds,
        entry_weights=model.entry_weights(X) if hasattr(model, "entry_weights") else None,
        sample_outlyingness=-model.score_samples(X) if hasattr(model, "score_samples") else None,
    )  # fmt: skip


def score_of_two_steps(judge: EntryJudge, name: str) -> Score:
    """Score plain NMF on the table that the first step returns."""

    def score() -> Score:
        begin = time.perf_counter()
        basis = plain_basis(FIRST_STEPS[name](judge.data), judge.data.rank)
        seconds = time.perf_counter() - begin
        return replace(judge.basis(name, basis), seconds=seconds)

    return attempt(name, score)


def _as_missing(X: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return a table with NaN at the entries of a mask, without samples that are all NaN."""
    table = np.where(mask, np.nan, X)
    empty = np.isnan(table).all(axis=1)
    if empty.all():
        raise ValueError("no entry is left.")
    return table[~empty]


def _without_flagged(data: EntryData) -> np.ndarray:
    """Return the samples that the isolation forest keeps; medians replace missing values."""
    X = data.dirty
    complete = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    flagged = isolation_forest(complete, data.rank).flagged
    assert flagged is not None
    if flagged.all():
        raise ValueError("all samples are flagged.")
    return X[~flagged]


FIRST_STEPS: dict[str, Callable[[EntryData], np.ndarray]] = {
    CEILING: lambda data: _as_missing(data.dirty, data.bad),
    INNER_FIRST: lambda data: _as_missing(data.dirty, outside_fences(data.dirty, INNER_FENCE)),
    FENCES_FIRST: lambda data: _as_missing(data.dirty, outside_fences(data.dirty)),
    CLIPPED_FIRST: lambda data: np.clip(data.dirty, *fences(data.dirty)),
    FOREST_FIRST: _without_flagged,
}
"""First steps by name; plain NMF is fitted to the table that they return."""

GROUPS: dict[str, Callable[[EntryJudge], Iterator[Score]]] = {
    "methods": methods,
    "two_step": two_step,
    "peers": peers,
    "grids": best_of_grid,
}


def score_groups(
    data: EntryData, groups: tuple[str, ...], device: str | None = None
) -> dict[str, list[Score]]:
    """Score all methods of groups on the data of a scenario; return the scores by group."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence shows in the tables
        judge = EntryJudge(data, device)
        return {group: list(GROUPS[group](judge)) for group in groups}
