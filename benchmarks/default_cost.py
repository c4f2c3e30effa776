"""Time of the call that users make, ``RobustNMF(k).fit(X)``, over plain NMF and scikit-learn's.

    python benchmarks/default_cost.py [--repeats 5]

Medians, and the range of the ratios of neighbouring runs: the machine is shared.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from machine import describe_run, write_result
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import NMF

from robustnmf import RobustNMF


def tables() -> dict[str, tuple[np.ndarray, int]]:
    """Return the tables with their ranks, by name."""
    rng = np.random.default_rng(0)

    def low_rank(n: int, m: int, k: int) -> np.ndarray:
        exact = rng.gamma(0.5, size=(n, k)) @ rng.gamma(0.5, size=(k, m))
        return exact + 0.05 * rng.random((n, m))

    def corrupt(X: np.ndarray) -> np.ndarray:
        X = X.copy()
        X[: len(X) // 10] = X.max() * rng.random((len(X) // 10, X.shape[1]))
        return X

    def over_maxima(X: np.ndarray) -> np.ndarray:
        return X / X.max(axis=0)

    labels = np.repeat([0, 1, 2], [50, 150, 300])
    parts = np.kron(np.eye(3), 0.5 + rng.random((1, 10)))
    noise = np.exp(0.1 * rng.standard_normal((500, 30)))
    clusters = (0.5 + rng.random((500, 1))) * parts[labels] * noise
    return {
        "iris": (over_maxima(load_iris().data), 3),
        "wine": (over_maxima(load_wine().data), 3),
        "wdbc": (over_maxima(load_breast_cancer().data), 5),
        "three clusters": (clusters, 3),
        "digits": (load_digits().data, 12),
        "digits, a tenth noise": (corrupt(load_digits().data), 12),
        "4,000 x 600": (low_rank(4000, 600, 15), 15),
        "4,000 x 600, a tenth noise": (corrupt(low_rank(4000, 600, 15)), 15),
        "60,000 x 80": (low_rank(60_000, 80, 8), 8),
    }


def seconds(model: object, X: np.ndarray) -> float:
    """Return the seconds of one fit."""
    begin = time.perf_counter()
    model.fit(X)  # type: ignore[attr-defined]
    return time.perf_counter() - begin


def main() -> None:
    """Run the benchmark, print its rows and write the result file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, (X, k) in tables().items():
        models = {
            "default": RobustNMF(k, random_state=0),
            "plain": RobustNMF(k, weighting="uniform", init="nndsvda", random_state=0),
            "scikit-learn": NMF(k, init="nndsvda", random_state=0),
        }
        for model in models.values():
            seconds(model, X)  # compiles
        times = {which: [] for which in models}
        for _ in range(options.repeats):
            for which, model in models.items():
                times[which].append(seconds(model, X))
        row = {"table": name, "rank": k}
        for other in ("plain", "scikit-learn"):
            ratios = np.divide(times["default"], times[other])
            row[f"over {other}"] = round(float(np.median(ratios)), 2)
            row[f"over {other}, range"] = [round(float(r), 2) for r in (ratios.min(), ratios.max())]
        rows.append(row)
        print(row, flush=True)
    write_result("default_cost.json", {**describe_run(__file__), "rows": rows})


if __name__ == "__main__":
    main()
