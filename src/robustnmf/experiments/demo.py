"""The demo: stick figures and handwritten digits, a fifth of which are corrupted.

Figures have known components, which are compared with the learned components. On digits, every
method is fitted to the corrupted table. Its scores are the squared error of the clean samples,
relative to plain NMF fitted to the clean samples only, and the AUROC with which its reconstruction
errors separate corrupted from clean samples.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from robustnmf.corruptions import spoil
from robustnmf.estimators import ESTIMATORS, EucNMF, RobustNMF
from robustnmf.estimators.base import BaseRobustNMF
from robustnmf.exceptions import WeightCollapseWarning
from robustnmf.metrics import match_components, squared_errors

SHARE = 0.2

SHAPE = (8, 8)
RANK = 16
KINDS = ["noise", "shuffled", "occluded"]
SEED = 0
SETTINGS: dict[str, Any] = {"random_state": SEED, "max_iter": 3000, "tol": 2e-5}
REFERENCE = "EucNMF on clean"
METHODS = (*(name for name in ESTIMATORS if name != "RobustNMF"), "RobustNMF")
"""All estimators of the library, the default last."""

SIDE = 32
FIGURES_SEED = 1
"""A typical draw: NMF of its good figures finds all limbs (benchmarks/figures.py)."""

FOUND = 0.9
"""A limb is found if the cosine with its component is at least this large."""

SHOULDERS = ((11, -1), (11, 1), (20, -1), (20, 1))
"""Rows and sides of the four joints."""
ANGLES = (-60, -20, 20, 60)
FIRST, LAST = 3, 9
"""Pixels of a limb, counted from its joint."""

SCIKIT_LEARN, PLAIN, ROBUST = "scikit-learn NMF", "RobustNMF, uniform", "RobustNMF"


@dataclass(frozen=True)
class Row:
    """A fitted method, its scores, the seconds of its fit, and the messages of its warnings."""

    method: str
    model: BaseRobustNMF
    relative_error: float
    auroc: float
    seconds: float
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Demo:
    """Rows of all methods, the table they were fitted to, and the mask of its bad samples."""

    rows: list[Row]
    bad: np.ndarray
    spoiled: np.ndarray


def run(progress: Callable[[list[str]], Iterable[str]] = iter) -> Demo:
    """Fit all methods to digits; ``progress`` iterates over the list of their names."""
    clean = load_digits().data
    spoiled, bad = spoil(clean, SHARE, KINDS, SHAPE, SEED)
    good = spoiled[~bad]
    rows: list[Row] = []
    reference_error = 0.0
    for name in progress([REFERENCE, *METHODS]):
        is_reference = name == REFERENCE
        model = (EucNMF if is_reference else ESTIMATORS[name])(RANK, **SETTINGS)
        seconds, messages = _fit(model, good if is_reference else spoiled)
        error = float(squared_errors(good, model.components_).sum())
        reference_error = error if is_reference else reference_error
        auroc = roc_auc_score(bad, -model.score_samples(spoiled))
        rows.append(Row(name, model, error / reference_error, auroc, seconds, messages))
    return Demo(rows, bad, spoiled)


def _fit(model: Any, X: np.ndarray) -> tuple[float, tuple[str, ...]]:
    """Fit a model; return the seconds it takes, and the messages of its warnings."""
    with warnings.catch_warnings(record=True, action="ignore") as records:
        warnings.simplefilter("always", WeightCollapseWarning)
        warnings.simplefilter("always", ConvergenceWarning)
        begin = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - begin
    return seconds, tuple(str(record.message) for record in records)


@dataclass(frozen=True)
class Figures:
    """Table of figures (256, pixels), true components (16, pixels), and mask of bad rows."""

    X: np.ndarray
    parts: np.ndarray
    bad: np.ndarray


@dataclass(frozen=True)
class Learned:
    """Learned components (16, pixels) in the order of the true components, and their cosines.

    ``left_out`` is the mask of outliers, or None for methods without outliers.
    """

    method: str
    parts: np.ndarray
    cosines: np.ndarray
    left_out: np.ndarray | None


def draw_figures(seed: int = FIGURES_SEED) -> Figures:
    """Draw all 256 figures, a fifth of them replaced by noise.

    The Swimmer data (Donoho and Stodden, 2003) are figures with four limbs, each in one of four
    positions: 256 sums of 16 components. Here the limbs of a figure have different brightness, and
    the torso, which is the same in all figures, is left out.
    """
    rng = np.random.default_rng(seed)
    parts = np.stack([_limb(*shoulder, angle) for shoulder in SHOULDERS for angle in ANGLES])
    positions = np.stack(np.meshgrid(*[range(len(ANGLES))] * 4), axis=-1).reshape(-1, 4)
    codes = np.zeros((len(positions), len(parts)))
    for limb in range(4):
        chosen = len(ANGLES) * limb + positions[:, limb]
        codes[np.arange(len(codes)), chosen] = rng.uniform(0.5, 1.5, len(codes))
    X = codes @ parts
    bad = np.zeros(len(X), dtype=bool)
    bad[rng.choice(len(X), int(SHARE * len(X)), replace=False)] = True
    X[bad] = rng.random((bad.sum(), SIDE * SIDE))
    return Figures(X, parts, bad)


def _limb(row: int, side: int, degrees: float) -> np.ndarray:
    """Draw a line (pixels,) from a joint."""
    image = np.zeros((SIDE, SIDE))
    angle = np.deg2rad(degrees if side > 0 else 180 - degrees)
    for length in np.linspace(FIRST, LAST, 4 * LAST):
        y, x = row + length * np.sin(angle), 15.5 + 2 * side + length * np.cos(angle)
        image[round(y), round(x)] = 1.0
    return image.ravel()


def fit_figures() -> tuple[Figures, list[Learned]]:
    """Fit scikit-learn's NMF, plain NMF and the default to figures with noise."""
    figures = draw_figures()
    rank = len(figures.parts)
    models = {
        SCIKIT_LEARN: NMF(rank, random_state=0, max_iter=1000),
        PLAIN: RobustNMF(rank, weighting="uniform", random_state=0),
        ROBUST: RobustNMF(rank, random_state=0),
    }
    learned = []
    for name, model in models.items():
        with warnings.catch_warnings(action="ignore"):  # a fifth of the samples are outliers
            model.fit(figures.X)
        _, matches, cosines = match_components(figures.parts, model.components_)
        left_out = model.outliers_ if name == ROBUST else None
        learned.append(Learned(name, model.components_[matches], cosines, left_out))
    return figures, learned
