"""Scores of bases and of rankings of samples on the data of a scenario."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from robustnmf.estimators import RobustNMF
from robustnmf.experiments.contamination.scenario import Data
from robustnmf.metrics import match_components, squared_errors

NO_WEIGHT = 0.1
"""A sample has lost its weight if its importance is below this share of the mean importance."""

BEST_DESCRIBED = 0.9
"""Share of the held-back samples that ``best_described_error`` is for."""

EXACT = 1e-6
"""Samples are described exactly if their squared error over their squared norm is smaller."""


Result = TypeVar("Result")


@dataclass(frozen=True)
class Score:
    """Scores of one method in one scenario; NaN if a score does not apply."""

    method: str
    relative_error: float = np.nan  # of held-back samples: squared error over the reference's
    geometric_error: float = np.nan  # geometric mean of the same ratio, sample by sample
    lost: float = np.nan  # share of good training samples without weight, dropped or flagged
    parts_distance: float = np.nan  # mean of one minus the cosine with true components
    auroc: float = np.nan  # area under the ROC curve of the order of the samples
    precision: float = np.nan  # average precision of this order
    entry_auroc: float = np.nan  # area under the ROC curve of the order of the entries
    found: float = np.nan  # share of bad training samples that are left out
    best_described_error: float = np.nan  # relative error of the 90% that a basis describes best
    effective_share: float = np.nan  # effective sample size over the number of samples
    value: float = np.nan  # of the hyperparameter, that with the smallest error
    seconds: float = np.nan  # of the fit, and of the detector if there is one
    failure: str = ""  # message of the error that the method raised


class Detection(NamedTuple):
    """Outlyingness and mask of flagged samples (n_samples,), and the time in seconds."""

    outlyingness: np.ndarray
    flagged: np.ndarray | None = None
    seconds: float = np.nan


class Judge:
    """Scores bases on the data of a scenario; errors are relative to plain NMF of the clean data.

    ``floor`` times the mean squared norm of held-back samples is added to all errors. Weights of
    entries are fitted on ``device``.
    """

    def __init__(self, data: Data, floor: float = 0.0, device: str | None = None):
        self.data = data
        self.device = device
        self.detections: dict[str, Detection] = {}  # by name, for all groups of methods
        self.reference_basis = plain_basis(data.clean, data.rank)
        self._reference_errors = self.errors(self.reference_basis)
        norms = (data.held_back**2).sum(axis=1)
        self._floor = floor * float(norms.mean())
        self._exact = np.maximum(EXACT * norms, 1e-300)

    def basis(self, method: str, basis: np.ndarray, **scores: Any) -> Score:
        """Score a basis (rank, n_features) by its errors and its distance from true components."""
        errors, distance = self.errors(basis), np.nan
        if self.data.parts is not None:
            _, _, cosines = match_components(self.data.parts, basis)
            distance = float(1.0 - cosines.mean())
        return Score(
            method, self.relative_error(errors), self.geometric_error(errors),
            parts_distance=distance, **scores,
        )  # fmt: skip

    def best_of(self, bases: Sequence[np.ndarray]) -> int:
        """Return the index of the basis with the smallest error."""
        return int(np.argmin([self.relative_error(self.errors(basis)) for basis in bases]))

    def errors(self, basis: np.ndarray) -> np.ndarray:
        """Return the squared errors (n_held_back,) of held-back samples."""
        return squared_errors(self.data.held_back, basis)

    def relative_error(self, errors: np.ndarray, share: float = 1.0) -> float:
        """Return the mean squared error of held-back samples relative to the reference.

        With a ``share``, both means are of the samples with the smallest errors.
        """
        ours, reference = (
            (e if share == 1.0 else np.sort(e)[: math.ceil(share * len(e))]).mean() + self._floor
            for e in (errors, self._reference_errors)
        )
        return float(ours / reference)

    def geometric_error(self, errors: np.ndarray) -> float:
        """Return the geometric mean of squared errors of held-back samples over the reference's.

        Samples that both describe exactly have the ratio one.
        """
        ratios = np.maximum(errors, self._exact) / np.maximum(self._reference_errors, self._exact)
        return float(np.exp(np.log(ratios).mean()))

    def lost(self, dropped: np.ndarray) -> float:
        """Return the share of good samples, without zero rows, that a mask (n_samples,) drops."""
        good = ~self.data.bad & self.data.dirty.any(axis=1)
        return float(dropped[good].mean())

    def without_weight(self, importances: np.ndarray) -> float:
        """Return the share of the good samples whose importance (n_samples,) is near zero."""
        return self.lost(importances * len(importances) < NO_WEIGHT)

    def ranking(self, outlyingness: np.ndarray) -> dict[str, Any]:
        """Score the ranking of the training samples by their outlyingness (n_samples,)."""
        bad = self.data.bad
        if not bad.any():
            return {}
        precision = float(average_precision_score(bad, outlyingness))
        return {"auroc": float(roc_auc_score(bad, outlyingness)), "precision": precision}


Groups = Mapping[str, Callable[[Judge], Iterator[Score]]]
"""Functions that score all methods of a group, by the name of the group."""


def attempt(
    score: Callable[..., Score],
    judge: Judge,
    name: str,
    *arguments: Any,
    errors: type[Exception] = ValueError,
) -> Score:
    """Score a method; if it raises an error, store it as the failure of the score."""
    try:
        return score(judge, name, *arguments)
    except errors as error:  # LinAlgError is a ValueError
        reason = next(iter(str(error).splitlines()), "")
        return Score(name, failure=f"{type(error).__name__}: {reason}")


def timed(call: Callable[..., Result], *arguments: Any) -> tuple[Result, float]:
    """Call a function; return its result and the time in seconds."""
    begin = time.perf_counter()
    result = call(*arguments)
    return result, time.perf_counter() - begin


def plain_basis(X: np.ndarray, rank: int) -> np.ndarray:
    """Fit plain NMF and return its basis (rank, n_features).

    The start is "nndsvda", or random if X has too few rows.
    """
    init = "nndsvda" if rank <= min(X.shape) else "random"
    model = RobustNMF(rank, weighting="uniform", init=init, random_state=0)
    return model.fit(X).components_
