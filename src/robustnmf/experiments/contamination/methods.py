"""What the benchmark compares: all methods as they come, grids with the best value, detectors."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.covariance import EllipticEnvelope
from sklearn.decomposition import NMF, PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from robustnmf.estimators import ConvexNMF, RobustNMF, RobustNMFDetector, fit_path
from robustnmf.estimators.path import PathMember
from robustnmf.experiments.contamination.scenario import Data
from robustnmf.experiments.methods import METHODS
from robustnmf.experiments.residuals import squared_errors
from robustnmf.weightings import L21, Entropy, Fuzzy, Huber, Uniform, Weighting

BEST = "best of grid"
"""After the name of a method: with the value of the paper's grid that turns out best."""

CEILING = "plain NMF of the good ones"
"""A detector that is told which samples are bad, and learns from the others."""

DEFAULTS = {
    "EucNMF": Uniform(),
    "NMFL2": L21(),
    "FWRNMF p=11": Fuzzy(11.0),
    "FWRNMF auto": Fuzzy("auto"),
    "EWRNMF auto": Entropy("auto"),
}
ENTRYWISE = {"HuberRNMF cutoff=1": Huber(1.0), "HuberRNMF auto": Huber("auto")}

SETTINGS: dict[str, Any] = {"init": "nndsvda", "max_iter": 200, "tol": 0.0, "random_state": 0}
"""For the paper's methods: as many iterations as its experiments have here, and no more."""


@dataclass(frozen=True)
class Score:
    """How one method did in one scenario; what does not apply is NaN."""

    method: str
    relative_error: float = np.nan
    parts_distance: float = np.nan
    auroc: float = np.nan
    precision: float = np.nan
    effective_share: float = np.nan
    value: float = np.nan
    seconds: float = np.nan


class Judge:
    """Scores what methods have learned from the data of a scenario."""

    def __init__(self, data: Data, device: str | None = None):
        self.data = data
        self.device = device
        plain = RobustNMF(data.rank, weighting="uniform", init="nndsvda", random_state=0)
        self.undisturbed = plain.fit(data.clean).components_
        self.floor = self.error(self.undisturbed)

    def members(self, weightings: list[Weighting]) -> list[PathMember]:
        """Fits under the paper's settings; those with weights of entries on the device."""
        device = self.device if weightings[0].per_entry else None
        return fit_path(
            self.data.dirty, self.data.rank, weightings=weightings, device=device, **SETTINGS
        )

    def error(self, basis: np.ndarray) -> float:
        """Squared error of the held-back samples, with the best codes."""
        return float(squared_errors(self.data.held_back, basis).sum())

    def basis(self, method: str, basis: np.ndarray, **more: float) -> Score:
        """The score of a basis; bad samples are those that it describes badly."""
        told = self.ranking(method, squared_errors(self.data.dirty, basis))
        return Score(
            method, self.error(basis) / self.floor, self.distance(basis), told.auroc,
            told.precision, **more,
        )  # fmt: skip

    def ranking(self, method: str, outlyingness: np.ndarray, seconds: float = np.nan) -> Score:
        """The score of an order of the samples, the most suspicious last."""
        bad = self.data.bad
        if not bad.any():
            return Score(method, seconds=seconds)
        return Score(
            method, auroc=float(roc_auc_score(bad, outlyingness)),
            precision=float(average_precision_score(bad, outlyingness)), seconds=seconds,
        )  # fmt: skip

    def distance(self, basis: np.ndarray) -> float:
        """Mean of one less the cosine between learned and true parts, matched as well as can be."""
        if self.data.parts is None:
            return np.nan
        units = [p / np.maximum(np.linalg.norm(p, axis=1, keepdims=True), 1e-300)
                 for p in (self.data.parts, basis)]  # fmt: skip
        cosines = units[0] @ units[1].T
        return float(1.0 - cosines[linear_sum_assignment(-cosines)].mean())


def as_they_come(judge: Judge) -> Iterator[Score]:
    """Every method with what it has by default, and the automatic values."""
    data, n = judge.data, len(judge.data.dirty)
    for group in (DEFAULTS, ENTRYWISE):
        begin = time.perf_counter()
        members = judge.members(list(group.values()))
        seconds = (time.perf_counter() - begin) / len(group)
        for name, member in zip(group, members, strict=True):
            share = member.effective_sample_size / n
            yield judge.basis(name, member.components, effective_share=share, seconds=seconds)
    for name, model in {
        "ConvexNMF": ConvexNMF(data.rank, max_iter=SETTINGS["max_iter"], random_state=0),
        "RobustNMF": RobustNMF(data.rank, random_state=0),
        "scikit-learn NMF": NMF(data.rank, init="nndsvda", random_state=0),
    }.items():
        begin = time.perf_counter()
        model.fit(data.dirty)
        seconds = time.perf_counter() - begin
        share = getattr(model, "effective_sample_size_", n) / n
        yield judge.basis(name, model.components_, effective_share=share, seconds=seconds)


def best_of_grid(judge: Judge) -> Iterator[Score]:
    """The paper's grids, and of each the value that is best on the samples held back."""
    data = judge.data
    grids = {name: method for name, method in METHODS.items() if method.grid}
    for per_entry in (False, True):
        chosen = {n: m for n, m in grids.items() if m.make(m.grid[0]).per_entry == per_entry}
        weightings = [m.make(value) for m in chosen.values() for value in m.grid]
        names = [(name, value) for name, m in chosen.items() for value in m.grid]
        members = judge.members(weightings)
        found: dict[str, list[Score]] = {}
        for (name, value), member in zip(names, members, strict=True):
            share = member.effective_sample_size / len(data.dirty)
            score = judge.basis(
                f"{name} {BEST}", member.components, effective_share=share, value=value
            )
            found.setdefault(name, []).append(score)
        yield from (min(scores, key=lambda s: s.relative_error) for scores in found.values())


def detectors(judge: Judge) -> Iterator[Score]:
    """Detectors of scikit-learn, and ours, by how they rank the samples."""
    X, rank = judge.data.dirty, judge.data.rank
    finders: dict[str, Callable[[], np.ndarray]] = {
        "RobustNMFDetector": lambda: _outlyingness(RobustNMFDetector(rank, random_state=0), X),
        "IsolationForest": lambda: _outlyingness(IsolationForest(random_state=0), X),
        "LocalOutlierFactor": lambda: -LocalOutlierFactor().fit(X).negative_outlier_factor_,
        "EllipticEnvelope": lambda: _elliptic(X, rank),
        "PCA error": lambda: _pca_error(X, rank),
        CEILING: lambda: squared_errors(X, judge.undisturbed),
    }
    for name, find in finders.items():
        begin = time.perf_counter()
        outlyingness = find()
        yield judge.ranking(name, outlyingness, time.perf_counter() - begin)


def _elliptic(X: np.ndarray, rank: int) -> np.ndarray:
    """Robust distances; of principal components where features are too many for a covariance."""
    table = PCA(rank, random_state=0).fit_transform(X) if X.shape[1] > len(X) // 5 else X
    return _outlyingness(EllipticEnvelope(random_state=0), table)


def _outlyingness(detector: Any, X: np.ndarray) -> np.ndarray:
    return -detector.fit(X).score_samples(X)


def _pca_error(X: np.ndarray, rank: int) -> np.ndarray:
    model = PCA(rank, random_state=0).fit(X)
    return ((X - model.inverse_transform(model.transform(X))) ** 2).sum(axis=1)


GROUPS: dict[str, Callable[[Judge], Iterator[Score]]] = {
    "methods": as_they_come,
    "grids": best_of_grid,
    "detectors": detectors,
}


def scored(
    data: Data, groups: tuple[str, ...], device: str | None = None
) -> dict[str, list[Score]]:
    """The scores of all methods of some groups."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of collapse and convergence: the table tells
        judge = Judge(data, device)
        return {group: list(GROUPS[group](judge)) for group in groups}
