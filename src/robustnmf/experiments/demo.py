"""The demo: all methods on handwritten digits, a fifth of which are corrupted.

Every method learns its basis from the corrupted table. Its scores are the squared error of the
clean samples under that basis, relative to plain NMF fitted to the clean samples only, and the
AUROC of its energies for telling corrupted samples from clean ones.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from robustnmf.corruptions import spoil
from robustnmf.estimators import ESTIMATORS, EucNMF
from robustnmf.exceptions import WeightCollapseWarning
from robustnmf.metrics import squared_errors

SHAPE = (8, 8)
RANK = 16
SHARE = 0.2
KINDS = ["noise", "shuffled", "occluded"]
SEED = 0
SETTINGS: dict[str, Any] = {"random_state": SEED, "max_iter": 3000, "tol": 2e-5}
REFERENCE = "EucNMF on clean"


@dataclass(frozen=True)
class Row:
    """Scores, basis, importances and history of one method."""

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
    """Rows of all methods, and the table they were fitted to with the mask of its bad samples."""

    rows: list[Row]
    bad: np.ndarray
    spoiled: np.ndarray


def methods() -> dict[str, Callable[[], Any]]:
    """Return functions that make the estimators, by name: all of the library, RobustNMF last."""
    names = [name for name in ESTIMATORS if name != "RobustNMF"] + ["RobustNMF"]
    return {name: partial(_make, name) for name in names}


def _make(name: str) -> Any:
    return ESTIMATORS[name](RANK, **SETTINGS)


def run(progress: Callable[[list[str]], Iterator[str]] = iter) -> Demo:
    """Fit all methods; ``progress`` iterates over the list of their names."""
    clean = load_digits().data
    spoiled, bad = spoil(clean, SHARE, KINDS, SHAPE, SEED)
    good = spoiled[~bad]
    makers: dict[str, Callable[[], Any]] = {
        REFERENCE: partial(EucNMF, RANK, **SETTINGS),
        **methods(),
    }
    rows: list[Row] = []
    reference_error = 0.0
    for name in progress(list(makers)):
        model = makers[name]()
        is_reference = name == REFERENCE
        seconds, messages = _fit(model, good if is_reference else spoiled)
        error = float(squared_errors(good, model.components_).sum())
        reference_error = error if is_reference else reference_error
        rows.append(
            Row(
                name,
                error / reference_error,
                roc_auc_score(bad, -model.score_samples(spoiled)),
                model.effective_sample_size_,
                seconds,
                model.n_iter_,
                model.components_,
                model.sample_importances_,
                model.objective_history_,
                messages,
            )
        )
    return Demo(rows, bad, spoiled)


def _fit(model: Any, X: np.ndarray) -> tuple[float, tuple[str, ...]]:
    """Fit a model; return the seconds it takes, and the messages of its warnings."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", WeightCollapseWarning)
        warnings.simplefilter("always", ConvergenceWarning)
        begin = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - begin
    return seconds, tuple(str(record.message) for record in records)
