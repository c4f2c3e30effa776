"""Bad entries in real tables: the biweight loss beside Tukey's fences and plain NMF.

    python benchmarks/real_entries.py --half odd --step 4    # needs the extra real

Tables are those of `robustnmf benchmark --real`. A quarter of the samples (of at most 1,200) is
held out, and a share of the entries of the others is spoiled: one to five times the largest entry
of the table ("large"), or zero or the largest entry ("extreme"). Errors are those of held-out
samples, relative to plain NMF of the table before it was spoiled.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from joblib import Parallel, delayed
from machine import write_result

from robustnmf import RobustNMF
from robustnmf.experiments.contamination import real
from robustnmf.experiments.contamination.judge import plain_basis
from robustnmf.metrics import squared_errors

CASES = (("clean", 0.0), ("large", 0.03), ("large", 0.1), ("extreme", 0.08))
LARGEST, SEED = 1200, 5


def fit_plain(X: np.ndarray, rank: int) -> np.ndarray:
    """Fit plain NMF, missing entries left out, and return its components."""
    X = X[~np.isnan(X).all(axis=1)]
    X[0, np.isnan(X).all(axis=0)] = 0.0
    return plain_basis(X, rank)


def beyond_fences(X: np.ndarray) -> np.ndarray:
    """Find the entries beyond Tukey's fences of their features."""
    low, high = np.quantile(X, [0.25, 0.75], axis=0)
    reach = 1.5 * np.maximum(high - low, 1e-3 * X.max())
    return (low - reach > X) | (high + reach < X)


def errors_of(name: str) -> list[dict[str, float]]:
    """Compute the relative errors of all methods on one table, for every case."""
    warnings.simplefilter("ignore")
    X = real._load_table(name, None)
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(X))[:LARGEST]
    held_out, X = X[order[: len(order) // 4]], X[order[len(order) // 4 :]]
    rank = int(min(max(2, X.shape[1] // 3), 10, len(X) // 10))
    floor = real.FLOOR * (held_out**2).sum(axis=1).mean()
    reference = squared_errors(held_out, fit_plain(X.copy(), rank)).mean() + floor
    rows = []
    for kind, share in CASES:
        bad = rng.random(X.shape) < share
        size = bad.sum()
        values = rng.uniform(1, 5, size) if kind == "large" else rng.integers(0, 2, size)
        dirty = X.copy()
        dirty[bad] = values * X.max()
        bases = {
            "plain NMF": fit_plain(dirty.copy(), rank),
            "Tukey's fences, plain NMF": fit_plain(
                np.where(beyond_fences(dirty), np.nan, dirty), rank
            ),
            'RobustNMF(loss="biweight")': RobustNMF(rank, loss="biweight", random_state=0)
            .fit(dirty)
            .components_,
            "given the bad entries, plain NMF": fit_plain(np.where(bad, np.nan, dirty), rank),
        }
        rows.append(
            {
                method: float((squared_errors(held_out, basis).mean() + floor) / reference)
                for method, basis in bases.items()
            }
        )
    return rows


def main() -> None:
    """Print geometric means and 97th percentiles, and write the result file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=tuple(real.HALVES), default="even")
    parser.add_argument("--step", type=int, default=4)
    arguments = parser.parse_args()
    with real._open(real.tables_file()) as tables:
        names = sorted(tables.files)[real.HALVES[arguments.half] :: 2][:: arguments.step]
    results = Parallel(n_jobs=-1)(delayed(errors_of)(name) for name in names)
    titles = [f"{kind} {share:.0%}" if share else kind for kind, share in CASES]
    print(f"{len(names)} tables at {arguments.half} positions\n")
    print("| method | " + " | ".join(titles) + " |")
    print("|---" * (1 + len(titles)) + "|")
    rows = []
    for method in results[0][0]:
        cells = []
        for case, title in enumerate(titles):
            values = np.array([table[case][method] for table in results])
            mean, high = float(np.exp(np.log(values).mean())), float(np.quantile(values, 0.97))
            cells.append(f"{mean:.3f} / {high:.2f}")
            rows.append({"method": method, "case": title, "mean": mean, "97th percentile": high})
        print(f"| {method} | " + " | ".join(cells) + " |")
    command = f"python benchmarks/real_entries.py --half {arguments.half} --step {arguments.step}"
    content = {"command": command, "tables": len(names), "rows": rows}
    write_result(f"real_entries_{arguments.half}.json", content)


if __name__ == "__main__":
    main()
