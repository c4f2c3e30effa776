"""How far the library is from literal transcriptions of the paper's algorithms.

    python benchmarks/exactness.py     (part of make bench)

FWRNMF and EWRNMF, 100 iterations from one start, float64: the largest difference of codes,
basis and product from the transcription, each relative to the largest entry. A fit that
has collapsed (effective sample size below the rank) is led by the rounding of a single
energy; such cells are marked, and need only be finite. Images of 0..255 are read from
ROBUSTNMF_DATA where that is set.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
from machine import write_result
from peers import start
from sklearn.datasets import load_breast_cancer
from tests.oracles import paper

from robustnmf import EWRNMF, FWRNMF

ITERATIONS = 100
GRID = [(FWRNMF, paper.fwrnmf, "p", value) for value in (1.5, 2.0, 6.0, 11.0)] + [
    (EWRNMF, paper.ewrnmf, "gamma", value) for value in (1e-4, 1.0, 1e4)
]


def tables() -> dict[str, tuple[np.ndarray, int]]:
    """Return the tables with their ranks, by name."""
    rng = np.random.default_rng(0)
    low_rank = rng.gamma(1.0, size=(200, 5)) @ rng.gamma(1.0, size=(5, 40))
    wdbc = load_breast_cancer().data
    scaled = (wdbc - wdbc.min(axis=0)) / np.ptp(wdbc, axis=0)
    by_name = {
        "random": (low_rank + rng.gamma(1.0, size=(200, 40)), 5),
        "wdbc, features in [0, 1]": (scaled, 2),
        "wdbc, as published": (wdbc, 2),
    }
    folder = os.environ.get("ROBUSTNMF_DATA")
    if folder:
        for name, k in (("yale", 15), ("orl", 40)):
            with np.load(Path(folder) / f"{name}.npz", allow_pickle=False) as archive:
                by_name[f"{name}, 0..255"] = (archive["X"].astype(float), k)
    return by_name


def compare(X: np.ndarray, k: int, cls, oracle, parameter: str, value: float) -> dict:
    """Compare one method with its transcription; return one cell of the table."""
    W, H = start(X, k, "float64")
    with np.errstate(all="ignore"):
        base, representation, _ = oracle(X.T, H.T, W.T, value, ITERATIONS)
    model = cls(k, init="custom", tol=0, max_iter=ITERATIONS, **{parameter: value})
    codes = model.fit_transform(X, W=W, H=H)
    pairs = (
        (codes, representation.T),
        (model.components_, base.T),
        (codes @ model.components_, (base @ representation).T),
    )
    difference = float(max(np.abs(a - b).max() / np.abs(b).max() for a, b in pairs))
    ours = [array for array, _ in pairs] + [model.sample_importances_, model.objective_history_]
    return {
        "method": cls.__name__,
        parameter: value,
        # None where the transcription itself ends in 0/0: a sample fitted exactly.
        "difference": difference if np.isfinite(difference) else None,
        "effective_sample_size": model.effective_sample_size_,
        "collapsed": bool(model.effective_sample_size_ < k),
        "finite": bool(all(np.all(np.isfinite(array)) for array in ours)),
    }


def main() -> None:
    """Run the benchmark, print its table and write the result file."""
    warnings.simplefilter("ignore")
    cells = []
    for name, (X, k) in tables().items():
        print(f"{name} ({X.shape[0]} x {X.shape[1]}, k = {k})")
        for cls, oracle, parameter, value in GRID:
            cell = {"data": name, **compare(X, k, cls, oracle, parameter, value)}
            cells.append(cell)
            difference = cell["difference"]
            text = "oracle 0/0" if difference is None else f"{difference:.1e}"
            print(
                f"  {cls.__name__} {parameter:5s} = {value:<7g} difference {text:10s}   "
                f"effective samples {cell['effective_sample_size']:7.1f}   "
                f"{'finite' if cell['finite'] else 'NOT FINITE'}"
                f"{', collapsed' if cell['collapsed'] else ''}"
            )
    sound = [cell["difference"] for cell in cells if not cell["collapsed"]]
    print(f"largest difference over the {len(sound)} cells that do not collapse: {max(sound):.1e}")
    print(f"all {len(cells)} cells finite: {all(cell['finite'] for cell in cells)}")
    content = {"iterations": ITERATIONS, "cells": cells}
    write_result("exactness.json", content)


if __name__ == "__main__":
    main()
