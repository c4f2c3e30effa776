"""The demo: handwritten digits with a fifth of the samples spoiled, all methods.

Every method learns its basis from the spoiled table. It is judged by how well that basis
describes the clean samples, relative to plain NMF that has seen the clean samples
only, and by how well its energies tell the spoiled samples from the clean ones.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from robustnmf.corruptions import spoil
from robustnmf.estimators import ESTIMATORS, EucNMF
from robustnmf.exceptions import WeightCollapseWarning
from robustnmf.experiments.residuals import squared_errors

SHAPE = (8, 8)
RANK = 16
SHARE = 0.2
KINDS = ["noise", "shuffled", "occluded"]
SEED = 0
SETTINGS = {"random_state": SEED, "max_iter": 3000, "tol": 2e-5}
REFERENCE = "EucNMF on clean"


@dataclass(frozen=True)
class Row:
    """What the demo shows of one method."""

    method: str
    relative_error: float
    auroc: float
    effective_sample_size: float
    seconds: float
    iterations: int
    basis: np.ndarray = field(repr=False)
    importances: np.ndarray = field(repr=False)
    history: np.ndarray = field(repr=False)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Demo:
    """Rows of all methods; the data they were fitted to."""

    rows: list[Row]
    bad: np.ndarray
    spoiled: np.ndarray


def methods() -> dict[str, Callable]:
    """What the demo fits, by name: everything the library has."""
    names = [name for name in ESTIMATORS if name != "RobustNMF"] + ["RobustNMF"]
    return {name: lambda name=name: ESTIMATORS[name](RANK, **SETTINGS) for name in names}


def run(progress: Callable[[list[str]], Iterator[str]] = iter) -> Demo:
    """Fit everything; ``progress`` wraps the list of method names as it is worked off."""
    clean = load_digits().data
    spoiled, bad = spoil(clean, SHARE, KINDS, SHAPE, SEED)
    good = spoiled[~bad]
    fits = {REFERENCE: lambda: EucNMF(RANK, **SETTINGS), **methods()}
    rows: list[Row] = []
    floor = 0.0
    for name in progress(list(fits)):
        model = fits[name]()
        only_clean = name == REFERENCE
        seconds, caught = _fit(model, good if only_clean else spoiled)
        error = float(squared_errors(good, model.components_).sum())
        floor = error if only_clean else floor
        rows.append(
            Row(
                name,
                error / floor,
                roc_auc_score(bad, -model.score_samples(spoiled)),
                model.effective_sample_size_,
                seconds,
                model.n_iter_,
                model.components_,
                model.sample_importances_,
                model.objective_history_,
                caught,
            )
        )
    return Demo(rows, bad, spoiled)


def _fit(model, X: np.ndarray) -> tuple[float, tuple[str, ...]]:
    """Seconds of the fit, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", WeightCollapseWarning)
        warnings.simplefilter("always", ConvergenceWarning)
        begin = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - begin
    return seconds, tuple(str(warning.message) for warning in caught)
