"""Fit stick figures with known parts, a fifth of which are replaced by noise.

The Swimmer data (Donoho and Stodden, 2003) are figures with four limbs, each in one of four
positions: 256 sums of 16 parts. Here every limb has a brightness of its own, and the torso, which
is in all figures and belongs to no part, is left out.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import NMF

from robustnmf.estimators import RobustNMF
from robustnmf.metrics import match_parts

SIDE = 32
SHARE = 0.2
SEED = 1
"""A draw like most: NMF of its good figures alone finds all limbs (benchmarks/figures.py)."""

FOUND = 0.9
"""Cosine with its component from which on a limb is found."""

SHOULDERS = ((11, -1), (11, 1), (20, -1), (20, 1))
"""Row of the four joints, and on which side they are."""
ANGLES = (-60, -20, 20, 60)
FIRST, LAST = 3, 9
"""Pixels of a limb, counted from its joint."""

SCIKIT_LEARN, PLAIN, ROBUST = "scikit-learn NMF", "RobustNMF, uniform", "RobustNMF"


@dataclass(frozen=True)
class Figures:
    """Table of figures (256, pixels) with noise, the true parts (16, pixels), and bad rows."""

    X: np.ndarray
    parts: np.ndarray
    bad: np.ndarray


@dataclass(frozen=True)
class Learned:
    """Parts (16, pixels) that a method learned, in the order of the true ones, and their cosines.

    ``left_out`` are the samples it left out, where it leaves out any.
    """

    method: str
    parts: np.ndarray
    cosines: np.ndarray
    left_out: np.ndarray | None


def draw(seed: int = SEED) -> Figures:
    """Draw all 256 figures, a fifth of them replaced by noise."""
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
    """Draw a line (pixels,) that begins near a joint."""
    image = np.zeros((SIDE, SIDE))
    angle = np.deg2rad(degrees if side > 0 else 180 - degrees)
    for length in np.linspace(FIRST, LAST, 4 * LAST):
        y, x = row + length * np.sin(angle), 15.5 + 2 * side + length * np.cos(angle)
        image[round(y), round(x)] = 1.0
    return image.ravel()


def run(seed: int = SEED) -> tuple[Figures, list[Learned]]:
    """Fit scikit-learn's NMF, plain NMF and the default to figures with noise."""
    figures = draw(seed)
    rank = len(figures.parts)
    models = {
        SCIKIT_LEARN: NMF(rank, random_state=0, max_iter=1000),
        PLAIN: RobustNMF(rank, weighting="uniform", random_state=0),
        ROBUST: RobustNMF(rank, random_state=0),
    }
    learned = []
    for name, model in models.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a fifth of the samples is left out, too
            model.fit(figures.X)
        _, matches, cosines = match_parts(figures.parts, model.components_)
        left_out = model.outliers_ if name == ROBUST else None
        learned.append(Learned(name, model.components_[matches], cosines, left_out))
    return figures, learned
