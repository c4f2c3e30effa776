"""Sparse Kullback-Leibler factorisation: peak memory and seconds per pass, beside scikit-learn.

    make bench        (or: python benchmarks/sparse_rows.py [--quick])

Poisson counts of a low-rank rate, 200,000 x 20,000 with density 1e-3, rank 20, float64. Every
contender runs in a process of its own on the same data from the same start, so that its peak
memory is its own; contenders take turns. A pass is the difference between a long and a short
fit over the difference in iterations; what validation and start cost is not in it. Memory is
the peak over what the process held with the data and the start loaded and everything imported
and compiled; that is shown as well.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path

import scipy.sparse as sp
from harness import in_own_process, memory, parse, reset_peak, write_result
from peers import sparse_counts, start

SHORT, LONG = 1, 4
CONTENDERS = {
    "scikit-learn mu": ("sklearn", {}),
    "RobustNMF uniform": ("ours", {"weighting": "uniform"}),
    "RobustNMF entropy": ("ours", {"weighting": "entropy"}),
}


def child(contender: str, folder: Path, k: int) -> None:
    """Fit one contender; print its seconds, memory and error as JSON."""
    kind, parameters = CONTENDERS[contender]
    X = sp.load_npz(folder / "X.npz").tocsr()
    W, H = start(X, k, "float64")
    run = _sklearn if kind == "sklearn" else _ours
    run(X[:1000], W[:1000].copy(), H.copy(), k, 1, parameters)  # everything is compiled
    program = memory("VmRSS")
    reset_peak()
    times, objectives = {}, {}
    for iterations in (SHORT, LONG):
        codes, basis = W.copy(), H.copy()
        begin = time.perf_counter()
        objectives[iterations] = run(X, codes, basis, k, iterations, parameters)
        times[iterations] = time.perf_counter() - begin
    result = {
        "seconds_per_pass": (times[LONG] - times[SHORT]) / (LONG - SHORT),
        "seconds_short_fit": times[SHORT],
        "peak_mb": memory("VmHWM") - program,
        "program_mb": program,
        "reconstruction_err": objectives[LONG],
    }
    print(json.dumps(result))


def _ours(X, W, H, k, iterations, parameters) -> float:
    from robustnmf import RobustNMF

    model = RobustNMF(
        k, loss="kullback-leibler", solver="mu", init="custom", tol=0, max_iter=iterations,
        **parameters,
    )  # fmt: skip
    return float(model.fit(X, W=W, H=H).reconstruction_err_)


def _sklearn(X, W, H, k, iterations, parameters) -> float:
    from sklearn.decomposition import NMF

    model = NMF(
        k, solver="mu", beta_loss="kullback-leibler", init="custom", tol=0, max_iter=iterations
    )
    model.fit_transform(X, W=W, H=H)
    return float(model.reconstruction_err_)


def main() -> None:
    """Run all contenders in turn, print the table and write the result file."""
    arguments = parse(__doc__, quick="a tenth of the rows, one repeat", child={"nargs": 3})
    if arguments.child:
        contender, folder, rank = arguments.child
        child(contender, Path(folder), int(rank))
        return
    n, m, k, density = (20_000 if arguments.quick else 200_000), 20_000, 20, 1e-3
    repeats = 1 if arguments.quick else 3
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
    with tempfile.TemporaryDirectory() as folder:
        X = sparse_counts(n, m, k, density)
        sp.save_npz(Path(folder) / "X.npz", X, compressed=False)
        for _ in range(repeats):
            for name in CONTENDERS:
                runs[name].append(in_own_process(__file__, name, folder, k))
    stored_mb = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20
    factors_mb = (n + m) * k * 8 / 2**20
    print(
        f"Kullback-Leibler, {n} x {m}, {X.nnz} stored entries ({stored_mb:.0f} MB), rank {k} "
        f"(factors {factors_mb:.0f} MB; dense X would take {n * m * 8 / 2**20:,.0f} MB)\n"
    )
    print(
        "| contender | seconds per pass (best; worst over best) | over scikit-learn | "
        "peak memory MB | before, with data |"
    )
    print("|---|---|---|---|---|")
    reference = [run["seconds_per_pass"] for run in runs["scikit-learn mu"]]
    rows = []
    for name, own_runs in runs.items():
        seconds = [run["seconds_per_pass"] for run in own_runs]
        ratio = statistics.median(a / b for a, b in zip(seconds, reference, strict=True))
        spread = max(seconds) / min(seconds)
        peak, program = (max(run[key] for run in own_runs) for key in ("peak_mb", "program_mb"))
        print(
            f"| {name} | {min(seconds):.2f} ({spread:.2f}) | {ratio:.2f} | {peak:.0f} | "
            f"{program:.0f} |"
        )
        rows.append({"contender": name, "ratio": ratio, "runs": own_runs})
    if not arguments.quick:
        shape = {"n": n, "m": m, "k": k, "stored": int(X.nnz), "stored_mb": stored_mb}
        write_result("sparse.json", {"shape": shape, "rows": rows})


if __name__ == "__main__":
    main()
