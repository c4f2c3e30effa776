"""Which start a robust fit should have: error on clean samples, by start and corruption.

    make bench        (or: python benchmarks/starts.py [--quick])

``RobustNMF`` with its defaults but for the start is fitted on a table of which a share of the rows
is corrupted. The basis then describes the clean rows; the root of their mean energy is
divided by that of plain NMF fitted on the clean rows alone (random start). Mean and worst over
tables and seeds, for both solvers: multiplicative updates stay closer to where they start.
"""

from __future__ import annotations

import numpy as np
from harness import parse, seconds, write_result
from peers import low_rank
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import minmax_scale

from robustnmf import RobustNMF

STARTS = ("robust", "nndsvda", "random")
SHARE = 0.2


def corrupt(X: np.ndarray, kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Corrupt rows of X; return the new table and the indices of clean rows."""
    n, m = X.shape
    X = X.copy()
    bad = rng.choice(n, size=int(SHARE * n), replace=False)
    if kind == "clean":
        return X, np.arange(n)
    if kind == "shuffled":
        X[bad] = rng.permuted(X[bad], axis=1)
    elif kind == "scaled":
        X[bad] *= 10
    elif kind == "huge":
        bad = bad[:3]
        X[bad] = 1e5 * X.max() * rng.random((3, m))
    elif kind == "occluded":
        X[np.ix_(bad, np.arange(m // 2))] = X.max()
    elif kind == "repeated":
        X[bad] = X.max() * rng.random(m)
    return X, np.delete(np.arange(n), bad)


def main() -> None:
    """Run the benchmark, print its table and write the result file."""
    seeds = range(1 if parse(__doc__, quick="one seed").quick else 4)
    tables = {
        "digits": (load_digits().data / 16, 10),
        "wdbc": (minmax_scale(load_breast_cancer().data), 5),
        "low rank": (low_rank(600, 60, 8), 8),
    }
    kinds = ("clean", "shuffled", "scaled", "huge", "occluded", "repeated")
    rows = []
    for kind in kinds:
        for name, (X, k) in tables.items():
            for seed in seeds:
                dirty, clean = corrupt(X, kind, np.random.default_rng(seed))
                plain = RobustNMF(k, weighting="uniform", init="random", random_state=seed)
                reference = plain.fit(dirty[clean]).energies_.mean()
                for solver in ("hals", "mu"):
                    for init in STARTS:
                        model = RobustNMF(k, init=init, solver=solver, random_state=seed)
                        spent = seconds(model.fit, dirty)
                        error = float(np.sqrt(-model.score(dirty[clean]) / reference))
                        row = [kind, name, seed, solver, init, error, model.n_iter_, spent]
                        rows.append(row)
    print("| solver | start |" + "".join(f" {kind} |" for kind in kinds) + " all | passes |")
    print("|---|---|" + "---|" * (len(kinds) + 2))
    for solver in ("hals", "mu"):
        for init in STARTS:
            own = [row for row in rows if row[3:5] == [solver, init]]
            cells = []
            for kind in (*kinds, None):
                errors = [row[5] for row in own if kind in (row[0], None)]
                cells.append(f" {np.mean(errors):.3f} / {np.max(errors):.2f} |")
            passes = np.mean([row[6] for row in own])
            print(f"| {solver} | {init} |" + "".join(cells) + f" {passes:.0f} |")
    if len(seeds) > 1:
        columns = ["kind", "table", "seed", "solver", "start", "error", "passes", "seconds"]
        write_result("starts.json", {"columns": columns, "rows": rows})


if __name__ == "__main__":
    main()
