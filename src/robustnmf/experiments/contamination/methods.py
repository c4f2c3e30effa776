"""Groups of methods that the benchmark compares: defaults, baselines, grids, detectors."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.decomposition import NMF

from robustnmf.estimators import ConvexNMF, RobustNMF, fit_path
from robustnmf.estimators.path import PathMember
from robustnmf.experiments.contamination.detection import DETECTORS, FLAGGING
from robustnmf.experiments.contamination.judge import Judge, Score
from robustnmf.experiments.contamination.scenario import Data
from robustnmf.experiments.contamination.two_step import attempt, detect, two_step
from robustnmf.experiments.protocol import METHODS
from robustnmf.metrics import squared_errors
from robustnmf.weightings import L21, Entropy, Fuzzy, Huber, Uniform, Weighting

BEST = "best of grid"
"""Suffix of a method with the value of the paper's grid that has the smallest error."""

CEILING = "plain NMF of the good ones"
"""A detector that is fitted to the good samples only, as an upper limit for the others."""

OURS, PLAIN = "RobustNMF", "EucNMF"

ROWWISE = {
    "NMFL2": L21(),
    "FWRNMF p=11": Fuzzy(11.0),
    "FWRNMF auto": Fuzzy("auto"),
    "EWRNMF auto": Entropy("auto"),
}
ENTRYWISE = {"HuberRNMF cutoff=1": Huber(1.0), "HuberRNMF auto": Huber("auto")}

SETTINGS: dict[str, Any] = {"init": "nndsvda", "max_iter": 200, "tol": 0.0, "random_state": 0}
"""Settings of the paper's methods: as many iterations as in the reproduction of its tables."""


def methods(judge: Judge) -> Iterator[Score]:
    """Score RobustNMF with its defaults, and plain NMF of this library and of scikit-learn."""
    rank = judge.data.rank
    yield from _scores_of_members(judge, {PLAIN: Uniform()})
    yield _score_of_model(judge, OURS, RobustNMF(rank, random_state=0))
    plain = NMF(rank, init="nndsvda", random_state=0)
    yield _score_of_model(judge, "scikit-learn NMF", plain)


def paper(judge: Judge) -> Iterator[Score]:
    """Score the paper's other methods, with their defaults and automatic values."""
    for group in (ROWWISE, ENTRYWISE):
        yield from _scores_of_members(judge, group)
    convex = ConvexNMF(judge.data.rank, max_iter=SETTINGS["max_iter"], random_state=0)
    yield _score_of_model(judge, "ConvexNMF", convex)


def best_of_grid(judge: Judge) -> Iterator[Score]:
    """Score the paper's grids, each with the value that is best on held-back samples."""
    grids = {name: method for name, method in METHODS.items() if method.grid}
    for per_entry in (False, True):
        batch = {n: m for n, m in grids.items() if m.make(m.grid[0]).per_entry == per_entry}
        names = [(name, value) for name, m in batch.items() for value in m.grid]
        members = _fit_members(judge, [m.make(value) for m in batch.values() for value in m.grid])
        scores: dict[str, list[Score]] = {}
        for (name, value), member in zip(names, members, strict=True):
            score = _score_of_member(judge, f"{name} {BEST}", member, value=value)
            scores.setdefault(name, []).append(score)
        for grid_scores in scores.values():
            yield min(grid_scores, key=lambda score: score.relative_error)


def detectors(judge: Judge) -> Iterator[Score]:
    """Score the ranking of the samples by our detector and by scikit-learn's.

    ``lost`` is the share of the good samples that a detector flags by default. It is the only score
    on clean data, so detectors without flags are skipped there.
    """
    for name in DETECTORS if judge.data.bad.any() else FLAGGING:
        yield attempt(name, partial(_score_of_detector, judge, name))
    yield judge.ranking(CEILING, squared_errors(judge.data.dirty, judge.reference_basis))


def _score_of_detector(judge: Judge, name: str) -> Score:
    detection = detect(judge, name)
    flagged = detection.flagged
    lost = np.nan if flagged is None else judge.lost(flagged)
    return judge.ranking(name, detection.outlyingness, seconds=detection.seconds, lost=lost)


def _fit_members(judge: Judge, weightings: list[Weighting]) -> list[PathMember]:
    """Fit weightings with the paper's settings; those with weights of entries on the device."""
    device = judge.device if weightings[0].per_entry else None
    data = judge.data
    return fit_path(data.dirty, data.rank, weightings=weightings, device=device, **SETTINGS)


def _scores_of_members(judge: Judge, weightings: dict[str, Weighting]) -> Iterator[Score]:
    begin = time.perf_counter()
    members = _fit_members(judge, list(weightings.values()))
    seconds = (time.perf_counter() - begin) / len(weightings)
    for name, member in zip(weightings, members, strict=True):
        yield _score_of_member(judge, name, member, seconds=seconds)


def _score_of_member(judge: Judge, name: str, member: PathMember, **scores: float) -> Score:
    return judge.basis(
        name, member.components, lost=judge.without_weight(member.sample_importances),
        effective_share=member.effective_sample_size / len(judge.data.dirty), **scores,
    )  # fmt: skip


def _score_of_model(judge: Judge, name: str, model: Any) -> Score:
    X = judge.data.dirty
    begin = time.perf_counter()
    model.fit(X)
    scores = {"seconds": time.perf_counter() - begin}
    if hasattr(model, "sample_importances_"):
        scores["lost"] = judge.without_weight(model.sample_importances_)
        scores["effective_share"] = model.effective_sample_size_ / len(X)
    return judge.basis(name, model.components_, **scores)


GROUPS: dict[str, Callable[[Judge], Iterator[Score]]] = {
    "methods": methods,
    "two_step": two_step,
    "paper": paper,
    "grids": best_of_grid,
    "detectors": detectors,
}


def score_groups(
    data: Data, groups: tuple[str, ...], device: str | None = None
) -> dict[str, list[Score]]:
    """Score all methods of groups on the data of a scenario; return the scores by group."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # collapse and convergence show in the tables
        judge = Judge(data, device)
        return {group: list(GROUPS[group](judge)) for group in groups}
